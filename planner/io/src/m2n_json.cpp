// SPDX-License-Identifier: Apache-2.0
#include "refit/io/m2n_json.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "refit/suggest.hpp"

namespace refit::io {
namespace {

using Json = nlohmann::json;
using Ordered = nlohmann::ordered_json;

/// Fields of a record, of its sides and of its answer.
constexpr std::array kKnown{
    "name",         "tensor_shape", "element_bytes",      "source",           "destination",   "domain_size",
    "path",         "balance",      "communicator_ranks", "single_injection", "staging_bytes", "inject",
    "destinations", "split_active", "lsa_active",         "totals",           "refused",       "mesh",
    "placements",   "start_rank"};

/// The JSON pointer of an item of the list at `place`.
std::string item_of(const std::string& place, std::size_t index) {
    return place + "/" + std::to_string(index);
}

constexpr std::uint64_t kMostU32 = std::numeric_limits<std::uint32_t>::max();

/// Reads one record and collects what is wrong with it. Places are JSON pointers within the file.
class Reader {
public:
    Reader(std::string origin, Faults& faults) : origin_{std::move(origin)}, faults_{faults} {}

    M2nRequest record(const Json& json, const std::string& place) {
        M2nRequest request;
        if (!is_object(json, place)) {
            return request;
        }
        const auto count = faults_.size();
        request.name = text(json, place, "name").value_or("");
        read_tensor(request.call.source, json, place, "source");
        read_tensor(request.call.destination, json, place, "destination");
        read_settings(request, json, place);
        if (faults_.size() == count) {
            add_call_faults(request, json, place);
        }
        drop_repeated(count);
        return request;
    }

    void add(std::string rule, std::string message, const std::string& place) {
        faults_.push_back({ErrorCode::kInvalidInput,
                           std::move(rule),
                           std::move(message),
                           origin_ + ": " + (place.empty() ? "/" : place)});
    }

private:
    bool is_object(const Json& json, const std::string& place) {
        if (!json.is_object()) {
            wrong_type("a record", json, place);
        }
        return json.is_object();
    }

    void wrong_type(const std::string& wanted, const Json& json, const std::string& place) {
        auto value = json.dump();
        if (value.size() > 40) {
            value = value.substr(0, 37) + "...";
        }
        add("field-type", value + " is not " + wanted, place);
    }

    /// The member, or null with a fault that names the unknown member nearest to it.
    const Json* required(const Json& json, const std::string& place, const std::string& key) {
        const auto found = json.find(key);
        if (found != json.end()) {
            return &*found;
        }
        std::vector<std::string> unknown;
        for (const auto& [name, value] : json.items()) {
            if (std::ranges::find(kKnown, std::string_view{name}) == kKnown.end()) {
                unknown.push_back(name);
            }
        }
        add("missing-field",
            "'" + key + "' is missing" +
                (unknown.empty() ? "" : "; is it '" + nearest_name(key, unknown) + "'?"),
            place + "/" + key);
        return nullptr;
    }

    std::optional<std::uint64_t> number(const Json& json, const std::string& place, std::uint64_t most) {
        const bool is_count =
            json.is_number_unsigned() || (json.is_number_integer() && json.get<std::int64_t>() >= 0);
        if (!is_count || json.get<std::uint64_t>() > most) {
            wrong_type("a whole number from 0 to " + std::to_string(most), json, place);
            return std::nullopt;
        }
        return json.get<std::uint64_t>();
    }

    std::uint64_t required_number(const Json& json,
                                  const std::string& place,
                                  const std::string& key,
                                  std::uint64_t most) {
        const auto* value = required(json, place, key);
        return value == nullptr ? 0 : number(*value, place + "/" + key, most).value_or(0);
    }

    std::optional<std::string> text(const Json& json, const std::string& place, const std::string& key) {
        const auto found = json.find(key);
        if (found == json.end()) {
            return std::nullopt;
        }
        if (!found->is_string()) {
            wrong_type("a text", *found, place + "/" + key);
            return std::nullopt;
        }
        return found->get<std::string>();
    }

    template <class Number>
    std::vector<Number> numbers(const Json& json,
                                const std::string& place,
                                const std::string& key,
                                std::uint64_t most) {
        std::vector<Number> list;
        const auto* value = required(json, place, key);
        if (value == nullptr) {
            return list;
        }
        const auto list_place = place + "/" + key;
        if (!value->is_array()) {
            wrong_type("a list of whole numbers", *value, list_place);
            return list;
        }
        for (std::size_t i = 0; i < value->size(); ++i) {
            list.push_back(
                static_cast<Number>(number((*value)[i], item_of(list_place, i), most).value_or(1)));
        }
        return list;
    }

    void read_tensor(M2nTensor& tensor,
                     const Json& record,
                     const std::string& place,
                     const std::string& end) {
        const auto* side = required(record, place, end);
        const auto side_place = place + "/" + end;
        if (side == nullptr || !is_object(*side, side_place)) {
            return;
        }
        const auto holder_of = [&](const char* key) -> std::pair<const Json&, const std::string&> {
            return side->contains(key) ? std::pair<const Json&, const std::string&>{*side, side_place}
                                       : std::pair<const Json&, const std::string&>{record, place};
        };
        const auto& [shape, shape_place] = holder_of("tensor_shape");
        tensor.shape = numbers<std::uint64_t>(
            shape, shape_place, "tensor_shape", std::numeric_limits<std::uint64_t>::max());
        const auto& [size, size_place] = holder_of("element_bytes");
        tensor.element_bytes = required_number(size, size_place, "element_bytes", kMostU32);
        tensor.mesh.axes = numbers<std::uint32_t>(*side, side_place, "mesh", kMostU32);
        tensor.mesh.first_rank =
            RankId{static_cast<std::uint32_t>(required_number(*side, side_place, "start_rank", kMostU32))};
        const auto* placements = required(*side, side_place, "placements");
        if (placements != nullptr && !placements->is_array()) {
            wrong_type("a list of placements", *placements, side_place + "/placements");
        } else if (placements != nullptr) {
            for (std::size_t i = 0; i < placements->size(); ++i) {
                read_placement(tensor, (*placements)[i], item_of(side_place + "/placements", i));
            }
        }
    }

    void read_placement(M2nTensor& tensor, const Json& json, const std::string& place) {
        const auto placement = parse_placement(json.is_string() ? json.get<std::string>() : json.dump());
        if (!placement) {
            add(placement.error().front().rule, placement.error().front().message, place);
        }
        tensor.placements.push_back(placement.value_or(DtensorPlacement{}));
    }

    template <class Value>
    void read_name(Value& value,
                   Result<Value> (*parse)(std::string_view),
                   const Json& json,
                   const std::string& place,
                   const std::string& key) {
        const auto name = text(json, place, key);
        if (!name) {
            return;
        }
        const auto parsed = parse(*name);
        if (!parsed) {
            add(parsed.error().front().rule, parsed.error().front().message, place + "/" + key);
        }
        value = parsed.value_or(value);
    }

    void read_settings(M2nRequest& request, const Json& json, const std::string& place) {
        auto& settings = request.settings;
        settings.domain_size =
            static_cast<std::uint32_t>(required_number(json, place, "domain_size", kMostU32));
        read_name(settings.path, parse_m2n_path, json, place, "path");
        read_name(settings.balance, parse_m2n_balance, json, place, "balance");
        if (json.contains("communicator_ranks")) {
            request.call.communicator_ranks = required_number(json, place, "communicator_ranks", kMostU32);
        }
        if (json.contains("staging_bytes")) {
            settings.staging = Bytes{
                required_number(json, place, "staging_bytes", std::numeric_limits<std::uint64_t>::max())};
        }
        if (const auto found = json.find("single_injection"); found != json.end()) {
            if (found->is_boolean()) {
                settings.single_injection = found->get<bool>();
            } else {
                wrong_type("true or false", *found, place + "/single_injection");
            }
        }
    }

    void add_call_faults(const M2nRequest& request, const Json& record, const std::string& place) {
        for (auto& fault : m2n_faults(request.call, request.settings)) {
            for (const std::string end : {"source", "destination"}) {
                for (const char* key : {"tensor_shape", "element_bytes"}) {
                    const bool is_of_record = !record.at(end).contains(key);
                    if (is_of_record && fault.where.starts_with("/" + end) &&
                        fault.where.find(key) != std::string::npos) {
                        fault.where.erase(0, end.size() + 1);
                    }
                }
            }
            add(std::move(fault.rule), std::move(fault.message), place + fault.where);
        }
    }

    /// What both sides read from the record is said once.
    void drop_repeated(std::size_t first) {
        for (auto i = first; i < faults_.size(); ++i) {
            const auto is_same = [&](const Fault& other) {
                return other.where == faults_[i].where && other.message == faults_[i].message;
            };
            faults_.erase(
                std::remove_if(faults_.begin() + static_cast<std::ptrdiff_t>(i) + 1, faults_.end(), is_same),
                faults_.end());
        }
    }

    std::string origin_;
    Faults& faults_;
};

std::string placement_text(const DtensorPlacement& placement) {
    switch (placement.kind) {
        case DtensorPlacement::Kind::kShard:
            return "shard(" + std::to_string(placement.dim) + ")";
        case DtensorPlacement::Kind::kStridedShard:
            return "strided_shard(" + std::to_string(placement.dim) +
                   ",split_factor=" + std::to_string(placement.split_factor) + ")";
        case DtensorPlacement::Kind::kReplicate:
            break;
    }
    return "replicate";
}

Ordered side_json(const M2nTensor& tensor) {
    auto placements = Ordered::array();
    for (const auto& placement : tensor.placements) {
        placements.push_back(placement_text(placement));
    }
    return {{"mesh", tensor.mesh.axes},
            {"placements", placements},
            {"start_rank", tensor.mesh.first_rank.index()}};
}

Ordered request_json(const M2nRequest& request) {
    const auto& [name, call, settings] = request;
    Ordered json;
    if (!name.empty()) {
        json["name"] = name;
    }
    json["tensor_shape"] = call.source.shape;
    json["element_bytes"] = call.source.element_bytes;
    json["source"] = side_json(call.source);
    json["destination"] = side_json(call.destination);
    json["domain_size"] = settings.domain_size;
    json["path"] = name_of(settings.path);
    const M2nSettings usual;
    if (settings.balance != usual.balance) {
        json["balance"] = name_of(settings.balance);
    }
    if (call.communicator_ranks > 0) {
        json["communicator_ranks"] = call.communicator_ranks;
    }
    if (settings.single_injection) {
        json["single_injection"] = *settings.single_injection;
    }
    if (settings.staging != usual.staging) {
        json["staging_bytes"] = settings.staging.count();
    }
    return json;
}

Ordered ranks_json(const std::vector<RankId>& ranks) {
    auto list = Ordered::array();
    for (const auto rank : ranks) {
        list.push_back(rank.index());
    }
    return list;
}

Ordered destination_json(const M2nPlan& plan, const M2nDestination& entry) {
    return {{"rank", entry.rank.index()},
            {"shard", entry.shard},
            {"replica", entry.replica},
            {"domain", entry.domain},
            {"direct", entry.is_direct},
            {"sources", ranks_json(plan.sources_of(entry))},
            {"ring_next", entry.ring_next ? Ordered(entry.ring_next->index()) : Ordered(nullptr)},
            {"followers", ranks_json(plan.followers_of(entry))}};
}

Ordered totals_json(const M2nPlan& plan) {
    const auto& totals = plan.totals;
    Ordered json{{"active_senders", totals.active_senders},
                 {"source_ranks", totals.source_ranks},
                 {"inject_bytes", totals.inject_bytes},
                 {"ring_bytes", totals.ring_bytes},
                 {"fanout_bytes", totals.fanout_bytes},
                 {"max_rank_network_tx", totals.max_rank_network_tx},
                 {"max_rank_network_rx", totals.max_rank_network_rx},
                 {"max_rank_ring_tx", totals.max_rank_ring_tx},
                 {"max_rank_fanout_tx", totals.max_rank_fanout_tx}};
    if (plan.path == M2nPath::kLsa) {
        json["max_rank_nvlink_tx"] = totals.max_rank_inject_tx;
        json["max_rank_nvlink_rx"] = totals.max_rank_inject_rx;
    }
    return json;
}

void add_plan(Ordered& json, const M2nPlan& plan, M2nPath asked) {
    auto inject = Ordered::array();
    for (const auto& entry : plan.injections) {
        const auto& pair = plan.pairs[entry.pair];
        inject.push_back(
            {entry.source.index(), entry.destination.index(), pair.bytes, pair.run_bytes, pair.runs});
    }
    auto destinations = Ordered::array();
    for (const auto& entry : plan.destinations) {
        destinations.push_back(destination_json(plan, entry));
    }
    json["inject"] = std::move(inject);
    json["destinations"] = std::move(destinations);
    if (asked == M2nPath::kLsa) {
        json["lsa_active"] = plan.path == M2nPath::kLsa;
    }
    if (asked == M2nPath::kSplit || (asked == M2nPath::kLsa && plan.path != M2nPath::kLsa)) {
        json["split_active"] = plan.path == M2nPath::kSplit;
    }
    json["totals"] = totals_json(plan);
}

Ordered refusal_json(const M2nRefusal& refusal) {
    Ordered json{{"limit", name_of(refusal.limit)}};
    if (refusal.end && refusal.shard) {
        json[std::string{name_of(*refusal.end)} + "_shard"] = *refusal.shard;
    } else if (refusal.end) {
        json["side"] = name_of(*refusal.end);
    }
    if (refusal.domain) {
        json["domain"] = *refusal.domain;
    }
    json["found"] = refusal.found;
    json["allowed"] = refusal.allowed;
    return json;
}

}  // namespace

Result<M2nRequests> read_m2n_requests(const nlohmann::json& json, const std::string& origin) {
    M2nRequests requests;
    Faults faults;
    Reader reader{origin, faults};
    requests.is_list = json.is_array();
    if (!requests.is_list) {
        requests.entries.push_back(reader.record(json, ""));
    }
    for (std::size_t i = 0; requests.is_list && i < json.size(); ++i) {
        requests.entries.push_back(reader.record(json[i], "/" + std::to_string(i)));
    }
    if (requests.entries.empty()) {
        reader.add("no-record", "the list holds no record", "");
    }
    return faults.empty() ? Result<M2nRequests>{std::move(requests)} : fail(std::move(faults));
}

std::vector<M2nAnswer> answer(const M2nRequests& requests) {
    std::vector<M2nAnswer> answers;
    answers.reserve(requests.entries.size());
    for (const auto& request : requests.entries) {
        auto plan = m2n_plan(request.call, request.settings);
        M2nAnswer& entry = answers.emplace_back();
        entry.request = request;
        if (plan) {
            entry.plan = std::move(*plan);
        } else {
            entry.refused = m2n_refusals(request.call, request.settings);
        }
    }
    return answers;
}

nlohmann::ordered_json to_json(const M2nAnswer& answer) {
    auto json = request_json(answer.request);
    if (answer.plan) {
        add_plan(json, *answer.plan, answer.request.settings.path);
    } else {
        json["refused"] = refusal_json(answer.refused.front());
    }
    return json;
}

}  // namespace refit::io
