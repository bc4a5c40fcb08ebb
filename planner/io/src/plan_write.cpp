// SPDX-License-Identifier: Apache-2.0
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <ostream>
#include <sstream>
#include <streambuf>
#include <utility>

#include <nlohmann/json.hpp>

#include "plan_names.hpp"
#include "plan_stream.hpp"
#include "refit/io/plan_file.hpp"

namespace refit::io {
namespace {

template <class Key, std::size_t Size>
std::string_view name_in(const std::array<std::pair<Key, std::string_view>, Size>& names, Key key) {
    return std::ranges::find(names, key, &std::pair<Key, std::string_view>::first)->second;
}

/// Writes the members of a plan file in turn. Keys ascend, as in every JSON library's sorted objects: the order is part
/// of what is hashed.
template <class Writer>
class PlanWriter {
public:
    PlanWriter(Writer& out, const PlanFile& file) : out_{out}, file_{file} {}

    /// The document, without its member "hash" where that is empty.
    void write(std::string_view hash) {
        const auto& plan = file_.plan;
        const auto count = [](bool is_there) { return is_there ? 1U : 0U; };
        out_.begin_object(10U + count(!hash.empty()) + count(!file_.scenario.empty()) + count(!file_.changes.empty()));
        list("blocks", plan.blocks, [&](const TransferBlock& block) { write_block(block); });
        texts("changes", file_.changes);
        list("classes", file_.workload.classes(), [&](const WorkloadClass& entry) { write_class(entry); });
        text("coverage", name_of(plan.coverage));
        list("groups", plan.groups, [&](const RankGroups& groups) {
            each(groups, [&](const std::vector<RankId>& group) {
                each(group, [&](RankId rank) { out_.number(rank.index()); });
            });
        });
        if (!hash.empty()) {
            text("hash", hash);
        }
        text("method", name_of(plan.method));
        text("name", file_.name);
        out_.key("ranks");
        write_ranks();
        texts("scenario", file_.scenario);
        text("schema", kPlanSchema);
        text("schema_version", kPlanVersion);
        list("stages", plan.stages, [&](const PlanStage& stage) { write_stage(stage); });
        out_.end_object();
    }

private:
    void number(std::string_view key, std::uint64_t value) {
        out_.key(key);
        out_.number(value);
    }
    void text(std::string_view key, std::string_view value) {
        out_.key(key);
        out_.text(value);
    }
    void texts(std::string_view key, const std::map<std::string, std::string>& fields) {
        if (fields.empty()) {
            return;
        }
        out_.key(key);
        out_.begin_object(fields.size());
        for (const auto& [field, value] : fields) {
            text(field, value);
        }
        out_.end_object();
    }
    template <class Rows, class Write>
    void each(const Rows& rows, Write write) {
        out_.begin_list(rows.size());
        for (const auto& row : rows) {
            write(row);
        }
        out_.end_list();
    }
    template <class Rows, class Write>
    void list(std::string_view key, const Rows& rows, Write write) {
        out_.key(key);
        each(rows, write);
    }
    /// What `get` makes of each row.
    template <class Rows, class Get>
    void column(std::string_view key, const Rows& rows, Get get) {
        list(key, rows, [&](const auto& row) { out_.number(get(row)); });
    }
    template <class Numbers>
    void numbers(std::string_view key, const Numbers& values) {
        column(key, values, [](auto value) { return std::uint64_t{value}; });
    }

    void write_ranks() {
        const auto& losses = file_.workload.losses();
        out_.begin_object(5U + (losses.lost.empty() ? 0U : 1U) + (losses.idle.empty() ? 0U : 1U));
        numbers("domain_starts", file_.domain_starts);
        number("generate", file_.workload.generator_bytes().size());
        if (!losses.idle.empty()) {
            numbers("idle", losses.idle);
        }
        if (!losses.lost.empty()) {
            numbers("lost", losses.lost);
        }
        number("train", file_.train_gpus);
        number("train_stages", file_.workload.train_stages());
        number("trainers_per_stage", file_.workload.trainers_per_stage());
        out_.end_object();
    }

    /// [begin, end, begin, end …] by axis, of each box.
    void write_boxes(const std::vector<Box>& boxes) {
        list("boxes", boxes, [&](const Box& box) {
            out_.begin_list(2 * box.axes().size());
            for (const auto& axis : box.axes()) {
                out_.number(axis.begin);
                out_.number(axis.end);
            }
            out_.end_list();
        });
    }

    void write_distribution(const Distribution& distribution) {
        out_.begin_object(2);
        numbers("shape", distribution.shape());
        list("shards", distribution.shards(), [&](const Shard& shard) {
            out_.begin_object(2);
            write_boxes(shard.boxes);
            numbers("members", shard.members);
            out_.end_object();
        });
        out_.end_object();
    }

    void write_class(const WorkloadClass& entry) {
        out_.begin_object(8);
        list("destinations", entry.destinations, [&](const Distribution& one) { write_distribution(one); });
        text("dtype", name_of(entry.parameter.dtype));
        number("experts", entry.parameter.experts);
        numbers("layers", entry.parameter.layers);
        text("name", entry.parameter.name);
        numbers("shape", entry.parameter.shape);
        list("slices", entry.slices, [&](const WorkloadSlice& slice) {
            out_.begin_object(slice.numbers.empty() ? 4 : 5);
            number("generate_stage", slice.generate_stage);
            out_.key("is_copy");
            out_.flag(slice.is_copy);
            if (!slice.numbers.empty()) {
                numbers("numbers", slice.numbers);
            }
            number("tensors", slice.layers);
            number("train_stage", slice.train_stage);
            out_.end_object();
        });
        out_.key("source");
        write_distribution(entry.source);
        out_.end_object();
    }

    void write_block(const TransferBlock& block) {
        out_.begin_object(6);
        numbers("box", block.box);
        write_boxes(block.boxes);
        number("class", block.parameter);
        numbers("destination", block.destination);
        number("element_bytes", block.element_bytes);
        numbers("source", block.source);
        out_.end_object();
    }

    void write_stage(const PlanStage& stage) {
        const bool is_relay = stage.kind == StageKind::kRelay;
        out_.begin_object(is_relay ? 10 : 9);
        list("collectives", stage.collectives, [&](const Collective& collective) { write_collective(collective); });
        number("copied_bytes", stage.copied.count());
        number("expert_parameters", stage.expert_parameters);
        text("kind", name_in(kStageNames, stage.kind));
        number("loaded_tensors", stage.loaded_tensors);
        number("other_parameters", stage.other_parameters);
        number("payload_bytes", stage.payload.count());
        if (is_relay) {
            out_.key("relays");
            write_relays(stage.relays);
        }
        number("train_stage", stage.train_stage);
        list("transfers", stage.transfers, [&](const TransferUse& use) {
            out_.begin_object(3);
            number("block", use.block);
            number("first_source", use.first_source.index());
            number("tensors", use.tensors);
            out_.end_object();
        });
        out_.end_object();
    }

    void write_collective(const Collective& collective) {
        const bool has_parts = !collective.parts.empty();
        const auto [boxes, box] = has_parts ? distinct_boxes(collective.parts) : BoxColumn{};
        out_.begin_object(has_parts ? 7 : 5);
        if (has_parts) {
            write_boxes(boxes);
        }
        numbers("bytes", collective.bytes);
        number("calls", collective.calls);
        numbers("classes", collective.parameters);
        number("groups", collective.groups);
        if (has_parts) {
            write_parts(collective.parts, box);
        }
        text("role", name_in(kRoleNames, collective.role));
        out_.end_object();
    }

    void write_relays(const RelayTable& relays) {
        const auto [boxes, box] = distinct_boxes(relays.parts);
        out_.begin_object(5);
        write_boxes(boxes);
        number("chunks", relays.chunks);
        out_.key("hops");
        out_.begin_object(4);
        numbers("destination", relays.destination);
        list("follows", relays.follows, [&](std::uint32_t hop) {
            // A hop that follows none says -1.
            hop == RelayTable::kNone ? out_.minus_one() : out_.number(hop);
        });
        numbers("message", relays.message);
        numbers("source", relays.source);
        out_.end_object();
        out_.key("messages");
        out_.begin_object(2);
        column("bytes", relays.messages, [](const Message& message) { return message.bytes; });
        column("parts", relays.messages, [](const Message& message) { return message.parts; });
        out_.end_object();
        write_parts(relays.parts, box);
        out_.end_object();
    }

    void write_parts(const std::vector<MessagePart>& parts, const std::vector<std::uint32_t>& box) {
        out_.key("parts");
        out_.begin_object(5);
        numbers("box", box);
        column("class", parts, [](const MessagePart& part) { return part.parameter; });
        column("first_tensor", parts, [](const MessagePart& part) { return part.first_tensor; });
        column("slice", parts, [](const MessagePart& part) { return part.slice; });
        column("tensors", parts, [](const MessagePart& part) { return part.tensors; });
        out_.end_object();
    }

    /// Different boxes, and which of them each part has.
    using BoxColumn = std::pair<std::vector<Box>, std::vector<std::uint32_t>>;
    static BoxColumn distinct_boxes(const std::vector<MessagePart>& parts) {
        BoxColumn column;
        std::map<std::vector<std::uint64_t>, std::uint32_t> known;
        for (const auto& part : parts) {
            std::vector<std::uint64_t> key;
            for (const auto& axis : part.box.axes()) {
                key.push_back(axis.begin);
                key.push_back(axis.end);
            }
            const auto [found, is_new] = known.try_emplace(std::move(key), static_cast<std::uint32_t>(column.first.size()));
            if (is_new) {
                column.first.push_back(part.box);
            }
            column.second.push_back(found->second);
        }
        return column;
    }

    Writer& out_;
    const PlanFile& file_;
};

/// What has been put in, hashed without being kept.
class Hasher {
public:
    Hasher() { XXH3_128bits_reset(&state_); }
    void add(std::string_view bytes) { XXH3_128bits_update(&state_, bytes.data(), bytes.size()); }
    [[nodiscard]] std::string text() const {
        const auto hash = XXH3_128bits_digest(&state_);
        std::array<char, 33> digits{};
        std::snprintf(digits.data(), digits.size(), "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                      static_cast<unsigned long long>(hash.low64));
        return "xxh3-128:" + std::string{digits.data()};
    }

private:
    XXH3_state_t state_{};
};

/// A stream's end that only hashes.
class HashBuffer final : public std::streambuf {
public:
    [[nodiscard]] std::string text() const { return hasher_.text(); }

protected:
    int_type overflow(int_type byte) override {
        const auto one = traits_type::to_char_type(byte);
        hasher_.add({&one, 1});
        return byte;
    }
    std::streamsize xsputn(const char* bytes, std::streamsize count) override {
        hasher_.add({bytes, static_cast<std::size_t>(count)});
        return count;
    }

private:
    Hasher hasher_;
};

template <template <class> class Writer, class Flush>
void write_document(const PlanFile& file, std::string_view hash, Flush flush) {
    BlockBuffer<Flush> buffer{std::move(flush)};
    Writer<BlockBuffer<Flush>> writer{buffer};
    PlanWriter<Writer<BlockBuffer<Flush>>>{writer, file}.write(hash);
    buffer.finish();
}

}  // namespace

std::string plan_hash(const nlohmann::json& document) {
    HashBuffer buffer;
    std::ostream stream{&buffer};
    nlohmann::json::to_cbor(document, nlohmann::detail::output_adapter<char>{stream});
    return buffer.text();
}

std::vector<std::uint32_t> domain_starts(const Cluster& cluster) {
    std::vector<std::uint32_t> starts;
    for (std::uint32_t rank = 0; rank < cluster.gpus(); ++rank) {
        if (rank == 0 || cluster.domain_of(RankId{rank}) != cluster.domain_of(RankId{rank - 1})) {
            starts.push_back(rank);
        }
    }
    return starts;
}

void write_plan(const PlanFile& file, PlanEncoding encoding, std::ostream& stream) {
    Hasher hasher;
    write_document<CborWriter>(file, "", [&](std::string_view bytes) { hasher.add(bytes); });
    const auto put = [&](std::string_view bytes) { stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size())); };
    if (encoding == PlanEncoding::kCbor) {
        write_document<CborWriter>(file, hasher.text(), put);
    } else {
        write_document<JsonWriter>(file, hasher.text(), put);
        stream << '\n';
    }
}

std::string write_plan(const PlanFile& file, PlanEncoding encoding) {
    std::ostringstream stream;
    write_plan(file, encoding, stream);
    return std::move(stream).str();
}

bool is_same_job(const PlanFile& file, const Scenario& scenario, const Workload& workload) {
    const auto written = [](const Workload& moved, std::uint32_t train_gpus, std::vector<std::uint32_t> starts) {
        return write_plan({"", moved, Plan{}, train_gpus, std::move(starts)}, PlanEncoding::kCbor);
    };
    return file.train_gpus == scenario.cluster.train_gpus() && file.gpus() == scenario.cluster.gpus() &&
           written(file.workload, file.train_gpus, file.domain_starts) ==
               written(workload, scenario.cluster.train_gpus(), domain_starts(scenario.cluster));
}

}  // namespace refit::io
