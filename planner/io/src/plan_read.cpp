// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "plan_members.hpp"
#include "plan_names.hpp"
#include "refit/io/json_file.hpp"
#include "refit/io/plan_file.hpp"
#include "refit/methods.hpp"

namespace refit::io {
namespace {

using Json = nlohmann::json;

class PlanReader {
public:
    PlanReader(const Json& document, const std::string& origin, Faults& faults)
        : root_{document, origin + ": ", faults}, faults_{faults} {}

    std::optional<PlanFile> read() {
        const auto ranks = root_.object("ranks");
        trainers_ = ranks.index("train", kMostRanks);
        generators_ = ranks.index("generate", kMostRanks);
        stages_ = ranks.index("train_stages", kMostRanks);
        per_stage_ = ranks.index("trainers_per_stage", kMostRanks);
        if (std::uint64_t{stages_} * per_stage_ != trainers_) {
            ranks.refuse("train", "must be train_stages times trainers_per_stage");
        }
        auto starts = ranks.numbers<std::uint32_t>("domain_starts", std::uint64_t{trainers_} + generators_);
        if (starts.empty() || starts.front() != 0 || std::ranges::adjacent_find(starts, std::greater_equal{}) != starts.end()) {
            ranks.refuse("domain_starts", "must ascend from 0");
        }
        auto losses = losses_of(ranks);
        auto classes = read_classes();
        Plan plan;
        read_head(plan);
        if (!faults_.empty()) {
            return std::nullopt;
        }
        auto workload = Workload::of(std::move(classes), stages_, per_stage_, generators_, std::move(losses));
        classes_ = workload.classes();
        read_body(plan);
        auto scenario = read_texts("scenario");
        auto changes = read_texts("changes");
        if (!faults_.empty()) {
            return std::nullopt;
        }
        return PlanFile{root_.text("name"), std::move(workload), std::move(plan), trainers_, std::move(starts),
                        std::move(scenario), std::move(changes)};
    }

private:
    static constexpr std::uint64_t kMostRanks = 1U << 20U;
    static constexpr std::uint64_t kMostExtent = std::uint64_t{1} << 40U;

    std::map<std::string, std::string> read_texts(const std::string& key) {
        std::map<std::string, std::string> texts;
        if (root_.has(key)) {
            const auto members = root_.object(key);
            for (const auto& [field, value] : root_.get(key).items()) {
                texts.emplace(field, members.text(field));
            }
        }
        return texts;
    }

    [[nodiscard]] Losses losses_of(const Members& ranks) const {
        Losses losses;
        const auto count = std::uint64_t{trainers_} + generators_;
        const auto read = [&](const char* key, std::vector<std::uint32_t>& list) {
            list = ranks.has(key) ? ranks.numbers<std::uint32_t>(key, count) : std::vector<std::uint32_t>{};
            if (std::ranges::adjacent_find(list, std::greater_equal{}) != list.end()) {
                ranks.refuse(key, "must ascend");
            }
        };
        read("lost", losses.lost);
        read("idle", losses.idle);
        const auto all = losses.absent();
        if (std::ranges::adjacent_find(all) != all.end() || all.size() >= std::max<std::uint64_t>(count, 1) ||
            (losses.lost.empty() && !losses.idle.empty())) {
            ranks.refuse("lost", "and idle must be different ranks, not all there are, and none idle where none is lost");
        }
        return losses;
    }

    /// Numbers that describe a box of a tensor of this shape.
    static std::optional<Box> box_of(const Members& members, const std::string& key, const Json& numbers,
                              std::span<const std::uint64_t> shape) {
        bool is_good = numbers.is_array() && numbers.size() == 2 * shape.size();
        for (const auto& number : is_good ? numbers : Json::array()) {
            is_good = is_good && number.is_number_unsigned();
        }
        for (std::size_t axis = 0; is_good && axis < shape.size(); ++axis) {
            const auto begin = numbers[2 * axis].get<std::uint64_t>();
            const auto end = numbers[2 * axis + 1].get<std::uint64_t>();
            is_good = begin < end && end <= shape[axis];
        }
        if (!is_good) {
            members.refuse(key, "must be a begin and an end for each axis of the tensor, inside it");
            return std::nullopt;
        }
        auto box = Box::whole(shape);
        for (std::size_t axis = 0; axis < shape.size(); ++axis) {
            box = box.with(axis, {numbers[2 * axis].get<std::uint64_t>(), numbers[2 * axis + 1].get<std::uint64_t>()});
        }
        return box;
    }
    static std::vector<Box> boxes_of(const Members& members, std::span<const std::uint64_t> shape) {
        std::vector<Box> boxes;
        for (const auto& numbers : members.array("boxes")) {
            auto box = box_of(members, "boxes/" + std::to_string(boxes.size()), numbers, shape);
            if (!box) {
                return {};
            }
            boxes.push_back(*box);
        }
        return boxes;
    }

    /// A shape whose elements can be counted.
    static std::vector<std::uint64_t> shape_of(const Members& members) {
        auto shape = members.numbers<std::uint64_t>("shape", kMostExtent);
        double elements = 1.0;
        for (const auto extent : shape) {
            elements *= static_cast<double>(extent);
        }
        if (shape.empty() || shape.size() > Box::kMostAxes || elements < 1.0 || elements > 1e15) {
            members.refuse("shape", "must have 1 to 5 axes of at least 1, with at most 10^15 elements");
            return {};
        }
        return shape;
    }

    static std::optional<Distribution> distribution_of(const Members& members, std::uint32_t ranks) {
        auto shape = shape_of(members);
        std::vector<Shard> shards;
        members.each("shards", [&](const Members& shard) {
            shards.push_back({shape.empty() ? std::vector<Box>{} : boxes_of(shard, shape), shard.numbers<std::uint32_t>("members", ranks)});
            if (shards.back().members.empty()) {
                shard.refuse("members", "must not be empty");
            }
        });
        return shape.empty() || shards.empty() ? std::nullopt : std::optional{Distribution{std::move(shape), std::move(shards)}};
    }

    static std::vector<std::uint32_t> numbers_of(const Members& slice, std::uint64_t layers) {
        return slice.has("numbers") ? slice.numbers<std::uint32_t>("numbers", layers) : std::vector<std::uint32_t>{};
    }

    std::vector<WorkloadClass> read_classes() {
        std::vector<WorkloadClass> classes;
        root_.each("classes", [&](const Members& members) {
            ParameterClass parameter;
            parameter.name = members.text("name");
            parameter.shape = shape_of(members);
            if (const auto dtype = take(parse_dtype(members.text("dtype")), faults_)) {
                parameter.dtype = *dtype;
            }
            parameter.experts = members.index("experts", kMost32);
            parameter.layers = members.numbers<std::uint32_t>("layers", kMost32);
            auto source = distribution_of(members.object("source"), per_stage_);
            std::vector<Distribution> destinations;
            members.each("destinations", [&](const Members& destination) {
                if (auto read = distribution_of(destination, generators_)) {
                    destinations.push_back(std::move(*read));
                }
            });
            std::vector<WorkloadSlice> slices;
            members.each("slices", [&](const Members& slice) {
                slices.push_back({slice.index("train_stage", stages_ == 0 ? 0 : stages_ - 1),
                                  slice.index("generate_stage", destinations.empty() ? 0 : destinations.size() - 1),
                                  static_cast<std::uint32_t>(slice.number("tensors", 1U << 20U, 1)),
                                  slice.flag("is_copy"),
                                  numbers_of(slice, parameter.layers.size())});
                const auto& read = slices.back();
                if (read.numbers.empty() != slices.front().numbers.empty() ||
                    (!read.numbers.empty() && read.numbers.size() != read.layers) ||
                    std::ranges::adjacent_find(read.numbers, std::greater_equal{}) != read.numbers.end()) {
                    slice.refuse("numbers", "must ascend, one for each of the slice's tensors, in all slices or in none");
                }
            });
            if (!source || destinations.empty()) {
                members.refuse("source", "and destinations must be whole");
                return;
            }
            for (const auto& destination : destinations) {
                if (!std::ranges::equal(source->shape(), destination.shape())) {
                    members.refuse("destinations", "must have the shape of the source");
                    return;
                }
            }
            classes.push_back({std::move(parameter), std::move(*source), std::move(destinations), std::move(slices)});
        });
        return classes;
    }

    void read_head(Plan& plan) {
        if (const auto method = take(parse_method(root_.text("method")), faults_)) {
            plan.method = *method;
        }
        if (const auto coverage = take(parse_coverage(root_.text("coverage")), faults_)) {
            plan.coverage = *coverage;
        }
    }

    void read_body(Plan& plan) {
        root_.each("blocks", [&](const Members& members) { plan.blocks.push_back(block_of(members)); });
        std::size_t number = 0;
        for (const auto& groups : root_.array("groups")) {
            plan.groups.push_back(groups_of(groups, "groups/" + std::to_string(number++)));
        }
        root_.each("stages", [&](const Members& members) { plan.stages.push_back(stage_of(members, plan)); });
    }

    TransferBlock block_of(const Members& members) {
        TransferBlock block;
        block.parameter = members.index("class", classes_.empty() ? 0 : classes_.size() - 1);
        if (classes_.empty()) {
            members.refuse("class", "names a class, and there is none");
            return block;
        }
        block.element_bytes = members.number("element_bytes", 8, 1);
        block.boxes = boxes_of(members, classes_[block.parameter].source.shape());
        block.source = members.numbers<std::uint32_t>("source", per_stage_);
        block.destination = members.numbers<std::uint32_t>("destination", generators_);
        block.box = members.numbers<std::uint32_t>("box", block.boxes.size());
        if (block.source.size() != block.destination.size() || block.source.size() != block.box.size()) {
            members.refuse("source", "and destination and box must be equally long");
        }
        return block;
    }

    RankGroups groups_of(const Json& groups, const std::string& key) {
        RankGroups list;
        for (const auto& ranks : groups.is_array() ? groups : Json::array()) {
            auto& group = list.emplace_back();
            for (const auto& rank : ranks.is_array() ? ranks : Json::array()) {
                if (!rank.is_number_unsigned() || rank.get<std::uint64_t>() >= std::uint64_t{trainers_} + generators_) {
                    root_.refuse(key, "must hold ranks of the job");
                    return {};
                }
                group.emplace_back(rank.get<std::uint32_t>());
            }
            if (group.empty()) {
                root_.refuse(key, "must not have an empty group");
                return {};
            }
        }
        return list;
    }

    PlanStage stage_of(const Members& members, const Plan& plan) {
        PlanStage stage;
        stage.kind = members.named("kind", kStageNames);
        stage.train_stage = members.index("train_stage", stages_ == 0 ? 0 : stages_ - 1);
        members.each("transfers", [&](const Members& use) {
            if (plan.blocks.empty()) {
                use.refuse("block", "names a block, and there is none");
                return;
            }
            stage.transfers.push_back({use.index("block", plan.blocks.size() - 1),
                                       RankId{use.index("first_source", trainers_ - per_stage_)},
                                       use.number("tensors", 1U << 20U, 1)});
        });
        members.each("collectives", [&](const Members& collective) { add_collective(stage, collective, plan); });
        stage.payload = Bytes{members.number("payload_bytes", kMostBytes)};
        stage.copied = Bytes{members.number("copied_bytes", kMostBytes)};
        stage.loaded_tensors = members.number("loaded_tensors", kMostBytes);
        stage.expert_parameters = members.number("expert_parameters", kMostBytes);
        stage.other_parameters = members.number("other_parameters", kMostBytes);
        if (stage.kind == StageKind::kRelay) {
            stage.relays = relays_of(members.object("relays"));
        }
        return stage;
    }

    void add_collective(PlanStage& stage, const Members& members, const Plan& plan) {
        Collective collective{members.named("role", kRoleNames), 0, {}, 0, {}};
        if (plan.groups.empty()) {
            members.refuse("groups", "names groups, and there are none");
            return;
        }
        collective.groups = members.index("groups", plan.groups.size() - 1);
        collective.bytes = members.numbers<std::uint64_t>("bytes", kMostBytes);
        collective.calls = members.number("calls", kMostBytes);
        collective.parameters = members.numbers<std::uint32_t>("classes", classes_.size());
        if (collective.bytes.size() != plan.groups[collective.groups].size()) {
            members.refuse("bytes", "must have a number for each group");
        }
        if (members.has("parts")) {
            collective.parts = parts_of(members);
        }
        stage.collectives.push_back(std::move(collective));
    }

    RelayTable relays_of(const Members& members) {
        RelayTable relays;
        relays.chunks = static_cast<std::uint32_t>(members.number("chunks", 1U << 20U, 1));
        relays.parts = parts_of(members);
        const auto messages = members.object("messages");
        const auto counts = messages.numbers<std::uint32_t>("parts", kMost32);
        const auto bytes = messages.numbers<std::uint64_t>("bytes", kMostBytes);
        std::uint64_t first = 0;
        for (std::size_t i = 0; i < std::min(counts.size(), bytes.size()); ++i) {
            relays.messages.push_back({static_cast<std::uint32_t>(first), counts[i], bytes[i]});
            first += counts[i];
        }
        if (counts.size() != bytes.size() || first != relays.parts.size()) {
            messages.refuse("parts", "must be as many as bytes, and sum to the parts there are");
        }
        read_hops(relays, members.object("hops"));
        return relays;
    }

    std::vector<MessagePart> parts_of(const Members& members) {
        std::vector<MessagePart> list;
        const auto parts = members.object("parts");
        const auto boxes = members.array("boxes");
        const auto parameter = parts.numbers<std::uint32_t>("class", classes_.size());
        const auto slice = parts.numbers<std::uint32_t>("slice", kMost32);
        const auto first = parts.numbers<std::uint32_t>("first_tensor", kMost32);
        const auto tensors = parts.numbers<std::uint32_t>("tensors", kMost32);
        const auto box = parts.numbers<std::uint32_t>("box", boxes.size());
        const auto count = parameter.size();
        if (slice.size() != count || first.size() != count || tensors.size() != count || box.size() != count) {
            parts.refuse("class", "and slice, first_tensor, tensors and box must be equally long");
            return {};
        }
        for (std::size_t i = 0; i < count; ++i) {
            const auto& entry = classes_[parameter[i]];
            const bool is_there = slice[i] < entry.slices.size() && tensors[i] > 0 &&
                                  std::uint64_t{first[i]} + tensors[i] <= entry.slices[slice[i]].layers;
            if (!is_there) {
                parts.refuse("first_tensor/" + std::to_string(i), "and tensors must lie within the class's slice");
                return {};
            }
            const auto read = box_of(members, "boxes/" + std::to_string(box[i]), boxes[box[i]], entry.source.shape());
            if (!read) {
                return {};
            }
            list.push_back({parameter[i], slice[i], first[i], tensors[i], *read});
        }
        return list;
    }

    void read_hops(RelayTable& relays, const Members& hops) const {
        const std::uint64_t ranks = std::uint64_t{trainers_} + generators_;
        relays.message = hops.numbers<std::uint32_t>("message", relays.messages.size());
        relays.source = hops.numbers<std::uint32_t>("source", ranks);
        relays.destination = hops.numbers<std::uint32_t>("destination", ranks);
        for (const auto& value : hops.array("follows")) {
            const auto number = relays.follows.size();
            const bool is_none = value.is_number_integer() && value == -1;
            if (!is_none && !(value.is_number_unsigned() && value.get<std::uint64_t>() < number)) {
                hops.refuse("follows/" + std::to_string(number), "must be an earlier hop, or -1");
                return;
            }
            relays.follows.push_back(is_none ? RelayTable::kNone : value.get<std::uint32_t>());
        }
        const auto count = relays.message.size();
        if (relays.source.size() != count || relays.destination.size() != count || relays.follows.size() != count) {
            hops.refuse("message", "and source, destination and follows must be equally long");
        }
    }

    static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62U;

    Members root_;
    Faults& faults_;
    std::uint32_t trainers_ = 0;
    std::uint32_t generators_ = 0;
    std::uint32_t stages_ = 0;
    std::uint32_t per_stage_ = 0;
    std::span<const WorkloadClass> classes_;
};

/// Builds the document, but stops where it nests too deep, for the parser recurses once a level, and where a list says
/// that it has more values than the file has bytes.
class GuardedBuilder : public nlohmann::detail::json_sax_dom_parser<Json> {
public:
    GuardedBuilder(Json& document, std::size_t most_values) : json_sax_dom_parser{document, false}, most_values_{most_values} {}

    bool start_object(std::size_t size) { return may_start(size) && json_sax_dom_parser::start_object(size); }
    bool start_array(std::size_t size) { return may_start(size) && json_sax_dom_parser::start_array(size); }
    bool end_object() { return --depth_ >= 0 && json_sax_dom_parser::end_object(); }
    bool end_array() { return --depth_ >= 0 && json_sax_dom_parser::end_array(); }

private:
    static constexpr int kDeepest = 64;
    static constexpr auto kOpen = static_cast<std::size_t>(-1);  ///< A list that ends where it says so.

    bool may_start(std::size_t size) { return ++depth_ <= kDeepest && (size == kOpen || size <= most_values_); }

    std::size_t most_values_;
    int depth_ = 0;
};

Result<Json> parse(std::string_view bytes, const std::string& origin) {
    const auto first = bytes.find_first_not_of(" \t\r\n");
    if (first != std::string_view::npos && bytes[first] == '{') {
        return parse_json(bytes, origin);
    }
    Json document;
    GuardedBuilder builder{document, bytes.size()};
    if (!Json::sax_parse(bytes, &builder, nlohmann::detail::input_format_t::cbor)) {
        return fail(ErrorCode::kInvalidInput,
                    "plan-syntax",
                    bytes.empty() ? "the file is empty" : "this is neither JSON nor whole CBOR; the file looks truncated or is no plan",
                    origin);
    }
    return document;
}

Faults check_head(Json& document, const std::string& origin) {
    Faults faults;
    const Members root{document, origin + ": ", faults};
    if (!faults.empty()) {
        return faults;
    }
    if (const auto schema = root.text("schema"); faults.empty() && schema != kPlanSchema) {
        root.refuse("schema", "is '" + schema + "', not '" + std::string{kPlanSchema} + "'");
    }
    if (const auto version = root.text("schema_version"); faults.empty() && version.substr(0, version.find('.')) != "1") {
        root.refuse("schema_version", "is '" + version + "'; this program reads 1.x");
    }
    const auto stated = root.text("hash");
    if (!faults.empty()) {
        return faults;
    }
    document.erase("hash");
    if (const auto found = plan_hash(document); found != stated) {
        root.refuse("hash", "is " + stated + ", but the content's is " + found + ": the file has been changed or damaged");
    }
    return faults;
}

}  // namespace

Result<PlanFile> read_plan(std::string_view bytes, const std::string& origin) {
    auto document = parse(bytes, origin);
    return document ? plan_from_json(std::move(*document), origin) : fail(std::move(document.error()));
}

Result<PlanFile> plan_from_json(nlohmann::json document, const std::string& origin) {
    auto faults = check_head(document, origin);
    if (!faults.empty()) {
        return fail(std::move(faults));
    }
    auto file = PlanReader{document, origin, faults}.read();
    if (!file) {
        return fail(std::move(faults));
    }
    return std::move(*file);
}

}  // namespace refit::io
