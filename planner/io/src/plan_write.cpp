// SPDX-License-Identifier: Apache-2.0
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "plan_names.hpp"
#include "refit/io/plan_file.hpp"

namespace refit::io {
namespace {

using Json = nlohmann::json;

template <class Key, std::size_t Size>
std::string_view name_in(const std::array<std::pair<Key, std::string_view>, Size>& names, Key key) {
    return std::ranges::find(names, key, &std::pair<Key, std::string_view>::first)->second;
}

/// [begin, end, begin, end …] by axis.
Json box_json(const Box& box) {
    Json numbers = Json::array();
    for (const auto& axis : box.axes()) {
        numbers.push_back(axis.begin);
        numbers.push_back(axis.end);
    }
    return numbers;
}

Json boxes_json(const std::vector<Box>& boxes) {
    Json list = Json::array();
    for (const auto& box : boxes) {
        list.push_back(box_json(box));
    }
    return list;
}

Json distribution_json(const Distribution& distribution) {
    Json shards = Json::array();
    for (const auto& shard : distribution.shards()) {
        shards.push_back({{"boxes", boxes_json(shard.boxes)}, {"members", shard.members}});
    }
    return {{"shape", distribution.shape()}, {"shards", std::move(shards)}};
}

Json class_json(const WorkloadClass& entry) {
    Json destinations = Json::array();
    for (const auto& destination : entry.destinations) {
        destinations.push_back(distribution_json(destination));
    }
    Json slices = Json::array();
    for (const auto& slice : entry.slices) {
        slices.push_back({{"train_stage", slice.train_stage},
                          {"generate_stage", slice.generate_stage},
                          {"tensors", slice.layers},
                          {"is_copy", slice.is_copy}});
    }
    return {{"name", entry.parameter.name},
            {"shape", entry.parameter.shape},
            {"dtype", name_of(entry.parameter.dtype)},
            {"experts", entry.parameter.experts},
            {"layers", entry.parameter.layers},
            {"source", distribution_json(entry.source)},
            {"destinations", std::move(destinations)},
            {"slices", std::move(slices)}};
}

Json block_json(const TransferBlock& block) {
    return {{"class", block.parameter},
            {"element_bytes", block.element_bytes},
            {"boxes", boxes_json(block.boxes)},
            {"source", block.source},
            {"destination", block.destination},
            {"box", block.box}};
}

Json groups_json(const RankGroups& groups) {
    Json list = Json::array();
    for (const auto& group : groups) {
        Json ranks = Json::array();
        for (const auto rank : group) {
            ranks.push_back(rank.index());
        }
        list.push_back(std::move(ranks));
    }
    return list;
}

template <class Row, class Get>
Json column(const std::vector<Row>& rows, Get get) {
    Json values = Json::array();
    for (const auto& row : rows) {
        values.push_back(get(row));
    }
    return values;
}

/// Members `boxes` and `parts`: each different box once.
void add_parts(Json& object, const std::vector<MessagePart>& parts) {
    std::vector<Box> boxes;
    std::map<std::vector<std::uint64_t>, std::uint32_t> known;
    Json box = Json::array();
    for (const auto& part : parts) {
        std::vector<std::uint64_t> key;
        for (const auto& axis : part.box.axes()) {
            key.push_back(axis.begin);
            key.push_back(axis.end);
        }
        const auto [found, is_new] = known.try_emplace(std::move(key), static_cast<std::uint32_t>(boxes.size()));
        if (is_new) {
            boxes.push_back(part.box);
        }
        box.push_back(found->second);
    }
    object["boxes"] = boxes_json(boxes);
    object["parts"] = {{"class", column(parts, [](const auto& part) { return part.parameter; })},
                       {"slice", column(parts, [](const auto& part) { return part.slice; })},
                       {"first_tensor", column(parts, [](const auto& part) { return part.first_tensor; })},
                       {"tensors", column(parts, [](const auto& part) { return part.tensors; })},
                       {"box", std::move(box)}};
}

Json relays_json(const RelayTable& relays) {
    // A hop that follows none says -1.
    const auto parent = [](std::uint32_t hop) { return hop == RelayTable::kNone ? std::int64_t{-1} : std::int64_t{hop}; };
    Json json{{"chunks", relays.chunks},
              {"messages",
               {{"parts", column(relays.messages, [](const auto& message) { return message.parts; })},
                {"bytes", column(relays.messages, [](const auto& message) { return message.bytes; })}}},
              {"hops",
               {{"message", relays.message},
                {"source", relays.source},
                {"destination", relays.destination},
                {"follows", column(relays.follows, parent)}}}};
    add_parts(json, relays.parts);
    return json;
}

Json stage_json(const PlanStage& stage) {
    Json transfers = Json::array();
    for (const auto& use : stage.transfers) {
        transfers.push_back({{"block", use.block}, {"first_source", use.first_source.index()}, {"tensors", use.tensors}});
    }
    Json collectives = Json::array();
    for (const auto& collective : stage.collectives) {
        collectives.push_back({{"role", name_in(kRoleNames, collective.role)},
                               {"groups", collective.groups},
                               {"bytes", collective.bytes},
                               {"calls", collective.calls},
                               {"classes", collective.parameters}});
        if (!collective.parts.empty()) {
            add_parts(collectives.back(), collective.parts);
        }
    }
    Json json{{"kind", name_in(kStageNames, stage.kind)},
              {"train_stage", stage.train_stage},
              {"transfers", std::move(transfers)},
              {"collectives", std::move(collectives)},
              {"payload_bytes", stage.payload.count()},
              {"copied_bytes", stage.copied.count()},
              {"loaded_tensors", stage.loaded_tensors},
              {"expert_parameters", stage.expert_parameters},
              {"other_parameters", stage.other_parameters}};
    if (stage.kind == StageKind::kRelay) {
        json["relays"] = relays_json(stage.relays);
    }
    return json;
}

Json document_of(const PlanFile& file) {
    return {{"schema", kPlanSchema},
            {"schema_version", kPlanVersion},
            {"name", file.name},
            {"method", name_of(file.plan.method)},
            {"coverage", name_of(file.plan.coverage)},
            {"ranks",
             {{"train", file.train_gpus},
              {"generate", file.workload.generator_bytes().size()},
              {"train_stages", file.workload.train_stages()},
              {"trainers_per_stage", file.workload.trainers_per_stage()},
              {"domain_starts", file.domain_starts}}},
            {"classes",
             column(std::vector<WorkloadClass>{file.workload.classes().begin(), file.workload.classes().end()}, class_json)},
            {"blocks", column(file.plan.blocks, block_json)},
            {"groups", column(file.plan.groups, groups_json)},
            {"stages", column(file.plan.stages, stage_json)}};
}

}  // namespace

std::string plan_hash(const nlohmann::json& document) {
    const auto bytes = Json::to_cbor(document);
    const auto hash = XXH3_128bits(bytes.data(), bytes.size());
    std::array<char, 33> digits{};
    std::snprintf(digits.data(), digits.size(), "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                  static_cast<unsigned long long>(hash.low64));
    return "xxh3-128:" + std::string{digits.data()};
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

std::string write_plan(const PlanFile& file, PlanEncoding encoding) {
    auto document = document_of(file);
    document["hash"] = plan_hash(document);
    if (encoding == PlanEncoding::kJson) {
        return document.dump() + "\n";
    }
    std::string bytes;
    Json::to_cbor(document, bytes);
    return bytes;
}

}  // namespace refit::io
