// SPDX-License-Identifier: Apache-2.0
#include "checkpoint.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "refit/io/safetensors.hpp"

namespace refit::exec {
namespace {

/// A file in memory, read only.
class MappedFile {
public:
    explicit MappedFile(const std::filesystem::path& file) {
        const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC);
        struct stat status {};
        if (descriptor >= 0 && fstat(descriptor, &status) == 0 && status.st_size > 0) {
            bytes_ = static_cast<std::size_t>(status.st_size);
            void* memory = mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, descriptor, 0);
            memory_ = memory == MAP_FAILED ? nullptr : static_cast<const std::byte*>(memory);
        }
        if (descriptor >= 0) {
            close(descriptor);
        }
    }
    ~MappedFile() {
        if (memory_ != nullptr) {
            munmap(const_cast<std::byte*>(memory_), bytes_);
        }
    }
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    [[nodiscard]] const std::byte* begin() const noexcept { return memory_; }

private:
    const std::byte* memory_ = nullptr;
    std::size_t bytes_ = 0;
};

/// Where one class lies.
struct StoredClass {
    std::vector<const std::byte*> tensors;  ///< By logical number, then expert.
    std::uint64_t experts = 1;
    std::uint64_t elements = 0;  ///< Of each tensor.
    std::uint64_t width = 1;
};

class Checkpoint final : public TensorSource {
public:
    [[nodiscard]] const std::byte* elements(std::uint32_t parameter,
                                            std::uint64_t number,
                                            std::uint64_t index) const override {
        const auto& stored = classes_[parameter];
        return stored.tensors[number * stored.experts + index / stored.elements] +
               index % stored.elements * stored.width;
    }

    /// Faults: what is missing, or different.
    Faults read(const std::string& folder,
                const Workload& workload,
                const std::vector<io::StoredTensor>& tensors) {
        Faults faults;
        for (const auto& entry : workload.classes()) {
            add_class(folder, entry, tensors, faults);
        }
        return faults;
    }

private:
    static std::string replaced(std::string text, const std::string& word, std::uint64_t number) {
        const auto at = text.find(word);
        return at == std::string::npos ? text : text.replace(at, word.size(), std::to_string(number));
    }

    void add_class(const std::string& folder,
                   const WorkloadClass& entry,
                   const std::vector<io::StoredTensor>& tensors,
                   Faults& faults) {
        const auto& parameter = entry.parameter;
        for (std::uint32_t slice = 0; slice < entry.slices.size(); ++slice) {
            if (entry.logical_number(slice, entry.slices[slice].layers - 1) >= entry.logical_tensors()) {
                faults.push_back({ErrorCode::kInvalidInput,
                                  "checkpoint",
                                  "the plan moves more tensors of '" + parameter.name + "' than the model has",
                                  folder});
                return;
            }
        }
        StoredClass stored;
        stored.experts = parameter.tensors_per_layer();
        stored.elements = parameter.elements();
        stored.width = entry.element_bytes();
        for (std::uint64_t number = 0; number < entry.logical_tensors(); ++number) {
            const auto layer = number < parameter.layers.size() ? parameter.layers[number] : 0;
            for (std::uint64_t expert = 0; expert < stored.experts; ++expert) {
                const auto name = replaced(replaced(parameter.name, "{layer}", layer), "{expert}", expert);
                const auto found = std::ranges::lower_bound(tensors, name, {}, &io::StoredTensor::name);
                const bool is_there = found != tensors.end() && found->name == name;
                if (!is_there || found->shape != parameter.shape ||
                    found->end - found->begin != stored.elements * stored.width) {
                    faults.push_back({ErrorCode::kInvalidInput,
                                      "checkpoint",
                                      is_there
                                          ? "'" + name + "' has another shape or width than the plan's tensor"
                                          : "'" + name + "' is missing",
                                      folder});
                    return;
                }
                const auto* file = mapped(found->file);
                if (file == nullptr) {
                    faults.push_back({ErrorCode::kIo, "checkpoint", "cannot be mapped into memory", found->file.string()});
                    return;
                }
                stored.tensors.push_back(file + found->begin);
            }
        }
        classes_.push_back(std::move(stored));
    }

    const std::byte* mapped(const std::filesystem::path& file) {
        const auto [found, is_new] = files_.try_emplace(file, nullptr);
        if (is_new) {
            found->second = std::make_unique<MappedFile>(file);
        }
        return found->second->begin();
    }

    std::vector<StoredClass> classes_;
    std::map<std::filesystem::path, std::unique_ptr<MappedFile>> files_;
};

}  // namespace

Result<std::unique_ptr<TensorSource>> open_checkpoint(const std::string& folder, const Workload& workload) {
    const auto tensors = io::read_safetensors_folder(folder);
    if (!tensors) {
        return Failure{tensors.error()};
    }
    auto checkpoint = std::make_unique<Checkpoint>();
    auto faults = checkpoint->read(folder, workload, *tensors);
    if (!faults.empty()) {
        return fail(std::move(faults));
    }
    return Result<std::unique_ptr<TensorSource>>{std::move(checkpoint)};
}

}  // namespace refit::exec
