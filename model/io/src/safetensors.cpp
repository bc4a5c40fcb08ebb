// SPDX-License-Identifier: Apache-2.0
#include "refit/io/safetensors.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "refit/io/json_file.hpp"

namespace refit::io {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kMostHeaderBytes = 100'000'000;
constexpr const char* kIndex = "model.safetensors.index.json";

std::string quoted(const std::string& name) {
    return "'" + name + "'";
}

/// Unit: bit. Nothing for a dtype that the format does not have.
std::optional<std::uint64_t> bits_of(const std::string& dtype) {
    static constexpr std::array<std::pair<std::string_view, std::uint64_t>, 20> kBits{
        {{"BOOL", 8},    {"U8", 8},   {"I8", 8},      {"F8_E5M2", 8}, {"F8_E4M3", 8},
         {"F8_E8M0", 8}, {"F4", 4},   {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"I16", 16},
         {"U16", 16},    {"F16", 16}, {"BF16", 16},   {"I32", 32},    {"U32", 32},
         {"F32", 32},    {"F64", 64}, {"I64", 64},    {"U64", 64},    {"C64", 64}}};
    const auto* found = std::ranges::find(kBits, dtype, &std::pair<std::string_view, std::uint64_t>::first);
    return found == kBits.end() ? std::nullopt : std::optional{found->second};
}

std::optional<std::uint64_t> product(std::uint64_t a, std::uint64_t b) {
    std::uint64_t result = 0;
    return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional{result};
}

/// Bytes of a tensor; nothing where they do not fit 64 bits or are no whole number.
std::optional<std::uint64_t> bytes_of(const std::vector<std::uint64_t>& shape, std::uint64_t bits) {
    std::optional<std::uint64_t> total = bits;
    if (std::ranges::find(shape, std::uint64_t{0}) != shape.end()) {
        return 0;
    }
    for (std::size_t i = 0; total && i < shape.size(); ++i) {
        total = product(*total, shape[i]);
    }
    return total && *total % 8 == 0 ? std::optional{*total / 8} : std::nullopt;
}

std::optional<std::vector<std::uint64_t>> counts_of(const Json& tensor, const char* key) {
    const auto found = tensor.find(key);
    if (found == tensor.end() || !found->is_array() ||
        !std::ranges::all_of(*found, [](const Json& item) { return item.is_number_unsigned(); })) {
        return std::nullopt;
    }
    return found->get<std::vector<std::uint64_t>>();
}

class HeaderReader {
public:
    HeaderReader(std::string_view head, std::uint64_t file_bytes, const fs::path& file)
        : head_{head}, file_bytes_{file_bytes}, file_{file} {}

    Result<std::vector<StoredTensor>> run() {
        const auto length = read_length();
        if (!length) {
            return fail(std::move(faults_));
        }
        data_begin_ = kLengthBytes + *length;
        const auto text = head_.substr(kLengthBytes, static_cast<std::size_t>(*length));
        const auto json = parse_json(text, file_.string());
        if (!json) {
            return Failure{json.error()};
        }
        if (!json->is_object()) {
            refuse("safetensors-header", "the header must be a JSON object");
            return fail(std::move(faults_));
        }
        for (const auto& [name, tensor] : json->items()) {
            if (name != "__metadata__") {
                read_tensor(name, tensor);
            }
        }
        check_order();
        if (!faults_.empty()) {
            return fail(std::move(faults_));
        }
        return std::move(tensors_);
    }

private:
    void refuse(const char* rule, std::string message) {
        faults_.push_back({ErrorCode::kInvalidInput, rule, std::move(message), file_.string()});
    }

    std::optional<std::uint64_t> read_length() {
        if (file_bytes_ < kLengthBytes || head_.size() < kLengthBytes) {
            refuse("safetensors-header",
                   "the file has " + std::to_string(file_bytes_) + " bytes, not even a header's length");
            return std::nullopt;
        }
        std::uint64_t length = 0;
        for (std::size_t i = kLengthBytes; i-- > 0;) {
            length = length << 8U | static_cast<unsigned char>(head_[i]);
        }
        if (length > kMostHeaderBytes) {
            refuse("safetensors-header",
                   "the header has " + std::to_string(length) + " bytes; at most 100 MB are read");
            return std::nullopt;
        }
        if (length > file_bytes_ - kLengthBytes || length > head_.size() - kLengthBytes) {
            refuse("safetensors-header",
                   "the header has " + std::to_string(length) + " bytes, but the file only " +
                       std::to_string(file_bytes_) + "; it looks truncated");
            return std::nullopt;
        }
        return length;
    }

    void read_tensor(const std::string& name, const Json& tensor) {
        const auto dtype = tensor.is_object() ? tensor.value("dtype", Json{}) : Json{};
        const auto shape = tensor.is_object() ? counts_of(tensor, "shape") : std::nullopt;
        const auto offsets = tensor.is_object() ? counts_of(tensor, "data_offsets") : std::nullopt;
        if (!dtype.is_string() || !shape || !offsets || offsets->size() != 2) {
            refuse("safetensors-tensor", "'" + name + "' must have dtype, shape and two data_offsets");
            return;
        }
        StoredTensor stored{name, dtype.get<std::string>(), *shape, file_, (*offsets)[0], (*offsets)[1]};
        const auto bits = bits_of(stored.dtype);
        if (!bits) {
            refuse("safetensors-dtype", "'" + name + "' has the unknown dtype '" + stored.dtype + "'");
            return;
        }
        const auto data_bytes = file_bytes_ - data_begin_;
        if (stored.begin > stored.end || stored.end > data_bytes) {
            refuse("safetensors-offsets",
                   "'" + name + "' has data_offsets " + std::to_string(stored.begin) + " to " +
                       std::to_string(stored.end) + ", but the file holds " + std::to_string(data_bytes) +
                       " bytes of data");
            return;
        }
        if (const auto bytes = bytes_of(*shape, *bits); bytes != stored.end - stored.begin) {
            refuse("safetensors-size",
                   "'" + name + "' has " + std::to_string(stored.end - stored.begin) +
                       " bytes, but its shape and dtype " +
                       (bytes ? "mean " + std::to_string(*bytes) : "mean no number of bytes"));
            return;
        }
        stored.begin += data_begin_;
        stored.end += data_begin_;
        tensors_.push_back(std::move(stored));
    }

    /// The data must be filled without overlaps and gaps.
    void check_order() {
        std::ranges::sort(tensors_, [](const auto& a, const auto& b) {
            return std::pair{a.begin, a.end} < std::pair{b.begin, b.end};
        });
        const bool is_whole = faults_.empty();
        auto end = data_begin_;
        std::string before;
        for (const auto& tensor : tensors_) {
            if (tensor.begin < end && tensor.begin != tensor.end) {
                refuse("safetensors-overlap", "'" + tensor.name + "' overlaps '" + before + "'");
            } else if (tensor.begin > end && is_whole) {
                refuse("safetensors-gap",
                       std::to_string(tensor.begin - end) + " bytes before '" + tensor.name +
                           "' belong to no tensor");
            }
            if (tensor.end > end) {
                end = tensor.end;
                before = tensor.name;
            }
        }
        if (end < file_bytes_ && is_whole) {
            refuse("safetensors-gap",
                   std::to_string(file_bytes_ - end) + " bytes at the end belong to no tensor");
        }
    }

    std::string_view head_;
    std::uint64_t file_bytes_;
    const fs::path& file_;
    std::uint64_t data_begin_ = 0;
    std::vector<StoredTensor> tensors_;
    Faults faults_;
};

/// The beginning of a file, up to the end of its header.
Result<std::string> read_head(const fs::path& file, std::uint64_t file_bytes) {
    std::ifstream stream{file, std::ios::binary};
    std::string head(static_cast<std::size_t>(std::min(file_bytes, kLengthBytes)), '\0');
    stream.read(head.data(), static_cast<std::streamsize>(head.size()));
    std::uint64_t length = 0;
    for (std::size_t i = head.size(); stream && i-- > 0;) {
        length = length << 8U | static_cast<unsigned char>(head[i]);
    }
    if (stream && head.size() == kLengthBytes &&
        length <= std::min(kMostHeaderBytes, file_bytes - kLengthBytes)) {
        head.resize(static_cast<std::size_t>(kLengthBytes + length));
        stream.read(head.data() + kLengthBytes, static_cast<std::streamsize>(length));
    }
    if (!stream) {
        return fail(ErrorCode::kIo, "unreadable", "cannot be read", file.string());
    }
    return head;
}

Result<std::vector<StoredTensor>> read_file(const fs::path& file) {
    std::error_code error;
    if (!fs::is_regular_file(file, error)) {
        return fail(ErrorCode::kIo, "missing-shard", "there is no such file", file.string());
    }
    const auto file_bytes = fs::file_size(file, error);
    if (error) {
        return fail(ErrorCode::kIo, "unreadable", "cannot be read: " + error.message(), file.string());
    }
    const auto head = read_head(file, file_bytes);
    return head ? read_safetensors_header(*head, file_bytes, file)
                : Result<std::vector<StoredTensor>>{Failure{head.error()}};
}

using Index = std::map<std::string, std::string>;

/// Which file each tensor is in, by the index.
Result<Index> read_index(const fs::path& file) {
    const auto json = read_json(file);
    if (!json) {
        return Failure{json.error()};
    }
    const auto map = json->is_object() ? json->value("weight_map", Json{}) : Json{};
    if (!map.is_object()) {
        return fail(
            ErrorCode::kInvalidInput, "safetensors-index", "'weight_map' must be an object", file.string());
    }
    Index index;
    Faults faults;
    for (const auto& [name, shard] : map.items()) {
        if (!shard.is_string() || fs::path{shard.get<std::string>()}.filename() != shard.get<std::string>() ||
            !shard.get_ref<const std::string&>().ends_with(".safetensors")) {
            faults.push_back(
                {ErrorCode::kInvalidInput,
                 "safetensors-index",
                 "'" + name + "' must be in a .safetensors file of this folder, not " + shard.dump(),
                 file.string()});
        } else {
            index.emplace(name, shard.get<std::string>());
        }
    }
    return faults.empty() ? Result<Index>{std::move(index)} : Failure{std::move(faults)};
}

/// Every file of the folder that holds tensors, in order of name.
std::set<std::string> shards_in(const fs::path& folder) {
    std::set<std::string> shards;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator{folder, error}) {
        if (entry.path().extension() == ".safetensors") {
            shards.insert(entry.path().filename().string());
        }
    }
    return shards;
}

/// Where headers and index disagree. Files with faults of their own are left out.
void check_index(const Index& index,
                 const std::vector<StoredTensor>& tensors,
                 const std::set<std::string>& read,
                 const fs::path& file,
                 Faults& faults) {
    const auto refuse = [&](const char* rule, std::string message) {
        faults.push_back({ErrorCode::kInvalidInput, rule, std::move(message), file.string()});
    };
    std::set<std::string> found;
    for (const auto& tensor : tensors) {
        const auto shard = tensor.file.filename().string();
        const auto entry = index.find(tensor.name);
        found.insert(tensor.name);
        if (entry == index.end()) {
            refuse("unlisted-tensor", "'" + tensor.name + "' of " + shard + " is not in the index");
        } else if (entry->second != shard) {
            refuse("misplaced-tensor", "'" + tensor.name + "' is in " + shard + ", not in " + entry->second);
        }
    }
    for (const auto& [name, shard] : index) {
        if (!found.contains(name) && read.contains(shard)) {
            refuse("missing-tensor", quoted(name) + " is not in " + shard);
        }
    }
}

}  // namespace

Result<std::vector<StoredTensor>> read_safetensors_header(std::string_view head,
                                                          std::uint64_t file_bytes,
                                                          const fs::path& file) {
    return HeaderReader{head, file_bytes, file}.run();
}

Result<std::vector<StoredTensor>> read_safetensors_folder(const fs::path& folder) {
    std::error_code error;
    std::optional<Index> index;
    auto shards = shards_in(folder);
    if (fs::exists(folder / kIndex, error)) {
        auto listed = read_index(folder / kIndex);
        if (!listed) {
            return Failure{listed.error()};
        }
        shards.clear();
        for (const auto& [name, shard] : *listed) {
            shards.insert(shard);
        }
        index = std::move(*listed);
    }
    if (shards.empty()) {
        return fail(
            ErrorCode::kIo, "no-tensors", "there is no .safetensors file in this folder", folder.string());
    }
    Faults faults;
    std::vector<StoredTensor> tensors;
    std::set<std::string> read;
    for (const auto& shard : shards) {
        if (auto some = take(read_file(folder / shard), faults)) {
            std::ranges::move(*some, std::back_inserter(tensors));
            read.insert(shard);
        }
    }
    std::ranges::stable_sort(tensors, {}, &StoredTensor::name);
    for (std::size_t i = 1; i < tensors.size(); ++i) {
        if (tensors[i].name == tensors[i - 1].name) {
            faults.push_back(
                {ErrorCode::kInvalidInput,
                 "duplicate-tensor",
                 "'" + tensors[i].name + "' is also in " + tensors[i - 1].file.filename().string(),
                 tensors[i].file.string()});
        }
    }
    if (index) {
        check_index(*index, tensors, read, folder / kIndex, faults);
    }
    return faults.empty() ? Result<std::vector<StoredTensor>>{std::move(tensors)}
                          : Failure{std::move(faults)};
}

}  // namespace refit::io
