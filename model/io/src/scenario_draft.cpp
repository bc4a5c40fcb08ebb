// SPDX-License-Identifier: Apache-2.0
#include "refit/io/scenario_draft.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "refit/suggest.hpp"

namespace refit::io {
namespace {

using Json = nlohmann::json;

constexpr std::array kFields{
    FieldInfo{"schema", "always refit.scenario"},
    FieldInfo{"schema_version", "1.0"},
    FieldInfo{"name", "name of the scenario"},
    FieldInfo{"note", "a remark for people"},
    FieldInfo{"model", "a model of data/models, or a Hugging Face config.json or its folder"},
    FieldInfo{"dtype", "bf16, fp16, fp32, or fp8: blockwise, with its scales"},
    FieldInfo{"train.engine", "megatron or fsdp; follows from the layout"},
    FieldInfo{"train.gpus", "training GPUs"},
    FieldInfo{"train.layout", "for example tp4.pp8.ep16, or for FSDP fsdp16, ep8.fsdp2"},
    FieldInfo{"train.pipeline.first", "layers of the first stage"},
    FieldInfo{"train.pipeline.last", "layers of the last stage"},
    FieldInfo{"train.pipeline.layout", "Megatron's layout string, where one is used"},
    FieldInfo{"train.virtual_pipeline", "virtual stages a rank"},
    FieldInfo{"train.account_for_embedding", "the embedding counts as a layer: true or false"},
    FieldInfo{"train.account_for_loss", "the loss counts as a layer: true or false"},
    FieldInfo{"train.dtensor", "trainers use DTensor: true or false"},
    FieldInfo{"train.fp8_param", "weights are stored in FP8: true or false"},
    FieldInfo{"train.fp8_recipe", "how: blockwise"},
    FieldInfo{"generate.engine", "vllm"},
    FieldInfo{"generate.gpus", "generation GPUs"},
    FieldInfo{"generate.layout", "for example tp8.dp16"},
    FieldInfo{"generate.dtype", "the same as dtype"},
    FieldInfo{"generate.expert_placement", "vLLM's expert_placement_strategy: linear or round_robin"},
    FieldInfo{"generate.colocated", "generation shares the trainers' GPUs: true or false"},
    FieldInfo{"generate.enable_eplb", "expert load balancing: true or false"},
    FieldInfo{"generate.real_quant", "true or false"},
    FieldInfo{"generate.is_mx", "FP8 is MXFP8: true or false"},
    FieldInfo{"system", "a system of data/systems, or a file; for both sides"},
    FieldInfo{"system.train", "the trainers' system, where it differs"},
    FieldInfo{"system.generate", "the generators' system, where it differs"},
    FieldInfo{"system.nic", "line rate of one NIC, for example 400Gbit/s"},
    FieldInfo{"system.nvlink", "line rate of a GPU's NVLink, for example 450GB/s"},
    FieldInfo{"placement.gpus_used_per_domain", "GPUs used of each NVLink domain"},
    FieldInfo{"placement.generation_starts_new_domain", "true or false"},
    FieldInfo{"fabric.domains_per_pod", "NVLink domains under one group of leaf switches"},
    FieldInfo{"fabric.oversubscription", "NICs of a pod to its uplinks, for example 2:1"},
    FieldInfo{"fabric.rail_only", "NICs of one place in a node reach only each other: true or false"},
    FieldInfo{"fabric.nics.RANK", "down, or what a GPU's NICs still reach; by rank, trainer:N or generation:N"},
    FieldInfo{"lost", "ranks that the refit goes on without: 3,7-9, trainer:N, generation:N"},
    FieldInfo{"engine.name", "an engine of data/engines"},
    FieldInfo{"engine.rules", "version of its support rules: 2026-08 or 2026-11"},
    FieldInfo{"engine.coverage", "nemo-rl-names, ffn, all or pattern:GLOB"},
    FieldInfo{"engine.options.NRL_REFIT_NUM_STREAMS", "bulk stages in flight"},
    FieldInfo{"engine.options.NRL_REFIT_NUM_BUFFERS", "packs in flight"},
    FieldInfo{"engine.options.NRL_REFIT_BUFFER_MEMORY_RATIO", "pack size as a share of GPU memory"},
    FieldInfo{"engine.options.broadcast_root", "who broadcasts: trainer-0 or each-pp-stage"},
    FieldInfo{"engine.options.broadcast_group", "who takes part beside the root: all, root-domain or generators; or pairs"},
    FieldInfo{"engine.options.broadcast_senders", "roots over which the packs are dealt, of all or of each stage"},
    FieldInfo{"engine.options.broadcast_in_turns", "several roots send one after another: true or false"},
    FieldInfo{"engine.options.pack_overlap", "gather, broadcast and loading: pipelined, or serial for each pack"},
    FieldInfo{"engine.options.direct_overlap", "gather, transfers and loading by direct: pipelined or serial"},
    FieldInfo{"engine.options.direct_source", "what direct sends: shards, or parameters gathered first"},
    FieldInfo{"engine.options.direct_loading", "tensors that receivers load after direct: none, local or all"},
    FieldInfo{"engine.options.transfer_order", "point-to-point transfers: by-tensor or rounds"},
    FieldInfo{"engine.options.shadow_copy", "receivers serve on from a second copy of their weights: true or false"},
    FieldInfo{"engine.options.finalize", "what finalising costs: per-expert, slow-all-gather or per-local-byte"},
    FieldInfo{"engine.options.bulk_cost", "what grouped experts cost: per-parameter, floor or per-expert"},
    FieldInfo{"engine.options.replica_ring", "NICs of a ring of replicas: one-nic or every-nic"},
    FieldInfo{"published", "ids of published times of this scenario"},
};

constexpr std::string_view kNicPrefix = "fabric.nics.";

/// "system.name" is how an object writes the plain field "system".
std::string canonical(std::string name) { return name == "system.name" ? "system" : name; }

class Reader {
public:
    explicit Reader(std::string origin) : origin_{std::move(origin)} {}

    void read(const Json& object, const std::string& prefix, const std::string& pointer) {
        for (const auto& [key, value] : object.items()) {
            const auto name = prefix + key;
            const auto here = pointer + "/" + key;
            if (value.is_object() && !value.empty()) {
                read(value, name + ".", here);
            } else if (value.is_null() || value.is_object()) {
                expect_known(canonical(name), here);
            } else {
                add(canonical(name), value, here);
            }
        }
    }

    Result<ScenarioDraft> finish() {
        if (!faults_.empty()) {
            return fail(std::move(faults_));
        }
        return std::move(draft_);
    }

    void refuse(const char* rule, std::string message, const std::string& pointer,
                std::optional<Suggestion> nearest = std::nullopt) {
        faults_.push_back({ErrorCode::kInvalidInput, rule, std::move(message), origin_ + ": " + pointer, std::move(nearest)});
    }

private:
    /// Adds a fault unless a field, or a section of fields, has this name.
    bool expect_known(const std::string& name, const std::string& pointer) {
        if (!check_field_name(name)) {
            return true;
        }
        const bool is_section = std::ranges::any_of(kFields, [&](const FieldInfo& field) { return field.name.starts_with(name + "."); });
        if (!is_section) {
            auto fault = check_field_name(name);
            refuse(fault->rule.c_str(), std::move(fault->message), pointer, std::move(fault->nearest));
        }
        return is_section;
    }

    void add(const std::string& name, const Json& value, const std::string& pointer) {
        if (!expect_known(name, pointer)) {
            return;
        }
        if (check_field_name(name)) {
            refuse("field-type", "'" + name + "' must be an object", pointer);
            return;
        }
        DraftField field{"", DraftField::Kind::kText, Precedence::kFile, origin_ + ": " + pointer};
        if (value.is_string()) {
            field.text = value.get<std::string>();
        } else if (value.is_number()) {
            field.kind = DraftField::Kind::kNumber;
            field.text = value.dump();
        } else if (value.is_boolean()) {
            field.kind = DraftField::Kind::kFlag;
            field.text = value.get<bool>() ? "true" : "false";
        } else if (name == "published" && std::ranges::all_of(value, [](const Json& id) { return id.is_string(); })) {
            for (const auto& id : value) {
                field.text += (field.text.empty() ? "" : ",") + id.get<std::string>();
            }
        } else {
            refuse("field-type", "'" + name + "' must be a single value", pointer);
            return;
        }
        draft_.set(name, std::move(field));
    }

    std::string origin_;
    ScenarioDraft draft_;
    Faults faults_;
};

}  // namespace

std::optional<Fault> check_field_name(const std::string& name) {
    // Which ranks there are is known only with the whole scenario.
    if (name.starts_with(kNicPrefix) && name.size() > kNicPrefix.size()) {
        return std::nullopt;
    }
    std::vector<std::string> names;
    for (const auto& field : kFields) {
        if (field.name == name) {
            return std::nullopt;
        }
        names.emplace_back(field.name);
    }
    const auto nearest = nearest_name(name, names);
    return Fault{ErrorCode::kInvalidInput,
                 "unknown-key",
                 "unknown key '" + name + "'; did you mean '" + nearest + "'?",
                 name,
                 Suggestion{"-" + name, nearest, "rename the key"}};
}

void ScenarioDraft::set(const std::string& name, DraftField field) {
    const auto found = fields_.find(name);
    if (found == fields_.end()) {
        fields_.emplace(name, std::move(field));
    } else if (found->second.precedence <= field.precedence) {
        auto& old = found->second;
        field.overridden = old.precedence > Precedence::kFile ? std::move(old.overridden) : std::move(old.text);
        old = std::move(field);
    }
}

void ScenarioDraft::apply(const Suggestion& suggestion) {
    if (suggestion.field.starts_with('-')) {
        const auto old = fields_.extract(suggestion.field.substr(1));
        if (!old.empty()) {
            fields_.insert_or_assign(suggestion.value, old.mapped());
        }
        return;
    }
    if (suggestion.field == "train.layout") {
        // A suggested layout holds the whole pipeline; older words on it would change what was checked.
        erase("train.pipeline.first");
        erase("train.pipeline.last");
        erase("train.pipeline.layout");
    }
    set(suggestion.field, {suggestion.value, DraftField::Kind::kText, Precedence::kFlag, "suggestion"});
}

const DraftField* ScenarioDraft::find(std::string_view name) const {
    const auto found = fields_.find(name);
    return found == fields_.end() ? nullptr : &found->second;
}

std::span<const FieldInfo> scenario_fields() noexcept { return kFields; }

bool is_instance(std::string_view name, const FieldInfo& field) noexcept {
    return name == field.name || (field.name == "fabric.nics.RANK" && name.starts_with(kNicPrefix));
}

Result<ScenarioDraft> draft_from_json(const Json& json, const std::string& origin) {
    Reader reader{origin};
    if (!json.is_object()) {
        reader.refuse("scenario-shape", "a scenario must be a JSON object", "/");
        return reader.finish();
    }
    const auto schema = json.find("schema");
    if (schema == json.end() || *schema != "refit.scenario") {
        reader.refuse("scenario-schema", "\"schema\" must be \"refit.scenario\"", "/schema");
    }
    const auto version = json.find("schema_version");
    if (version == json.end() || !version->is_string() || !version->get_ref<const std::string&>().starts_with("1.")) {
        reader.refuse("scenario-version",
                      "\"schema_version\" is " + (version == json.end() ? std::string{"missing"} : version->dump()) +
                          "; this program reads \"1.0\" and later minor versions",
                      "/schema_version");
    }
    reader.read(json, "", "");
    return reader.finish();
}

Json to_json(const ScenarioDraft& draft) {
    Json json{{"schema", "refit.scenario"}, {"schema_version", "1.0"}};
    for (const auto& [name, field] : draft.fields()) {
        // A plain field that others lie below becomes their "name".
        const auto below = draft.fields().lower_bound(name + ".");
        const bool is_section = below != draft.fields().end() && below->first.starts_with(name + ".");
        auto pointer = "/" + (is_section ? name + ".name" : name);
        std::ranges::replace(pointer, '.', '/');
        auto& place = json[Json::json_pointer{pointer}];
        if (name == "published") {
            place = Json::array();
            for (std::size_t at = 0; at < field.text.size();) {
                const auto end = std::min(field.text.find(',', at), field.text.size());
                place.push_back(field.text.substr(at, end - at));
                at = end + 1;
            }
        } else if (field.kind == DraftField::Kind::kText) {
            place = field.text;
        } else {
            place = Json::parse(field.text);
        }
    }
    return json;
}

}  // namespace refit::io
