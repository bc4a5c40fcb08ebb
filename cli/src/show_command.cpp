// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "cells.hpp"
#include "commands.hpp"
#include "refit/coverage.hpp"
#include "refit/holdings.hpp"
#include "refit/io/content_map_json.hpp"
#include "refit/io/json_file.hpp"
#include "refit/quantity.hpp"
#include "rows_text.hpp"
#include "session.hpp"

namespace refit::cli {
namespace {

using Json = nlohmann::json;

std::string rendered(const Json& json) {
    return json.dump(1) + "\n";
}

/// Share of the bytes of text and vision that a coverage takes.
double fraction(const Inventory& model, Coverage coverage) {
    Bytes taken;
    for (const auto& entry : model.payload()) {
        taken += is_bulk(entry, coverage) ? entry.bytes() : Bytes{};
    }
    return taken.as_double() / model.payload_totals().bytes.as_double();
}

Json model_json(const Inventory& model) {
    const auto text = model.totals(ModelPart::kText);
    const auto mtp = model.totals(ModelPart::kMtp);
    const auto vision = model.totals(ModelPart::kVision);
    const auto payload = model.payload_totals();
    std::uint64_t ffn = 0;
    for (const auto& entry : model.payload()) {
        ffn += entry.is_ffn ? entry.parameters() * entry.tensors() : 0;
    }
    return {{"schema", "refit.model"},
            {"schema_version", "1.0"},
            {"id", model.id()},
            {"title", model.title()},
            {"layers", model.layers()},
            {"experts", model.experts()},
            {"classes", model.classes().size()},
            {"parameters", text.parameters},
            {"tensors", text.tensors},
            {"mtp_parameters", mtp.parameters},
            {"mtp_tensors", mtp.tensors},
            {"vision_parameters", vision.parameters},
            {"vision_tensors", vision.tensors},
            {"ffn_parameters", ffn},
            {"ffn_fraction", static_cast<double>(ffn) / static_cast<double>(payload.parameters)},
            {"bytes", payload.bytes.count()},
            {"native_bytes", payload.native_bytes.count()},
            {"bulk_fraction",
             {{"nemo-rl-names", fraction(model, Coverage::kNemoRlNames)},
              {"ffn", fraction(model, Coverage::kFfn)}}}};
}

std::string shape_text(std::span<const std::uint64_t> shape) {
    std::string text;
    for (const auto extent : shape) {
        text += (text.empty() ? "" : "x") + std::to_string(extent);
    }
    return text;
}

std::string model_text(const Inventory& model) {
    const auto part_line = [&](const char* name, ModelPart part) {
        const auto totals = model.totals(part);
        return totals.tensors == 0 ? std::string{}
                                   : "  " + left(name, 10) + right(grouped(totals.parameters), 20) +
                                         " parameters" + right(grouped(totals.tensors), 10) + " tensors  " +
                                         format_bytes(totals.bytes) + "\n";
    };
    const auto payload = model.payload_totals();
    std::string text = model.title() + ", " + std::to_string(model.layers()) + " layers";
    text += model.experts() > 0 ? ", " + std::to_string(model.experts()) + " experts in " +
                                      std::to_string(model.moe_layers()) + " of them\n"
                                : "\n";
    text += part_line("text", ModelPart::kText) + part_line("vision", ModelPart::kVision) +
            part_line("MTP", ModelPart::kMtp);
    text += "  a refit moves text and vision: " + format_bytes(payload.bytes) +
            "; the public checkpoint stores them in " + format_bytes(payload.native_bytes) + "\n";
    text += "  bulk by NeMo RL's name rule " + percent(fraction(model, Coverage::kNemoRlNames)) +
            ", by meaning (ffn) " + percent(fraction(model, Coverage::kFfn)) + " of the bytes\n\n";
    text += "  " + left("class", 62) + right("shape", 18) + right("tensors", 10) + "  dtype\n";
    for (const auto& entry : model.classes()) {
        text += "  " + left(entry.name, 62) + right(shape_text(entry.shape), 18) +
                right(grouped(entry.tensors()), 10) + "  " + std::string{name_of(entry.dtype)} + "\n";
    }
    return text;
}

std::string model_rows(const Inventory& model, Format format) {
    std::vector<Row> rows;
    for (const auto& entry : model.classes()) {
        rows.push_back({entry.name,
                        shape_text(entry.shape),
                        std::string{name_of(entry.dtype)},
                        std::to_string(entry.tensors()),
                        std::to_string(entry.parameters() * entry.tensors()),
                        std::to_string(entry.bytes().count())});
    }
    return rows_text(format, {"class", "shape", "dtype", "tensors", "parameters", "bytes"}, rows);
}

Json side_json(const SideSummary& side) {
    return {{"least_bytes", side.least.count()},
            {"most_bytes", side.most.count()},
            {"all_bytes", side.all.count()},
            {"replicated_bytes", side.replicated.count()},
            {"padding_bytes", side.padding.count()}};
}

Json class_json(const WorkloadClass& entry) {
    const auto& destination = entry.destinations.front();
    return {{"name", entry.parameter.name},
            {"shape", entry.parameter.shape},
            {"dtype", name_of(entry.parameter.dtype)},
            {"tensors", entry.parameter.tensors()},
            {"bytes", entry.parameter.bytes().count()},
            {"train_shards", entry.source.shards().size()},
            {"train_replicas", entry.source.shards().front().members.size()},
            {"generate_shards", destination.shards().size()},
            {"generate_replicas", destination.shards().front().members.size()}};
}

Json layout_json(const Scenario& scenario, const Workload& workload) {
    const auto summary = summarise_layout(scenario, workload);
    Json classes = Json::array();
    for (const auto& entry : workload.classes()) {
        classes.push_back(class_json(entry));
    }
    return {{"schema", "refit.layout"},
            {"schema_version", "1.0"},
            {"scenario", scenario.name},
            {"train", side_json(summary.train)},
            {"generate", side_json(summary.generate)},
            {"key_value_replicated", summary.key_value_replicated},
            {"delivered_to_nobody", summary.delivered_to_nobody},
            {"classes", classes}};
}

std::string side_text(const char* name, const SideSummary& side) {
    return "  " + left(name, 10) + "a rank " + format_bytes(side.least) +
           (side.least == side.most ? "" : " to " + format_bytes(side.most)) + ", all " +
           format_bytes(side.all) + ", of it copies " + format_bytes(side.replicated) +
           (side.padding.count() > 0 ? "; padding " + format_bytes(side.padding) : "") + "\n";
}

std::string layout_text(const Scenario& scenario, const Workload& workload) {
    const auto summary = summarise_layout(scenario, workload);
    std::string text = scenario.name + ": " + describe(scenario.train) + ", " +
                       describe_split(scenario.train.stage_layers) + " -> " + describe(scenario.generate) +
                       "\n";
    text += side_text("train", summary.train) + side_text("generate", summary.generate);
    text += summary.key_value_replicated.empty()
                ? ""
                : "  KV heads are shared by several generators of an engine\n";
    text += summary.delivered_to_nobody.empty() ? ""
                                                : "  " + std::to_string(summary.delivered_to_nobody.size()) +
                                                      " MTP classes are delivered to nobody\n";
    text += "\n  " + left("class", 60) + right("trainers", 14) + right("generators", 14) + "\n";
    text += "  " + left("", 60) + right("shards x held", 14) + right("shards x held", 14) + "\n";
    for (const auto& entry : workload.classes()) {
        const auto cell = [](const Distribution& distribution) {
            return std::to_string(distribution.shards().size()) + " x " +
                   std::to_string(distribution.shards().front().members.size());
        };
        text += "  " + left(entry.parameter.name, 60) + right(cell(entry.source), 14) +
                right(cell(entry.destinations.front()), 14) + "\n";
    }
    return text;
}

std::string layout_rows(const Workload& workload, Format format) {
    std::vector<Row> rows;
    for (const auto& entry : workload.classes()) {
        Row row{entry.parameter.name,
                shape_text(entry.parameter.shape),
                std::string{name_of(entry.parameter.dtype)},
                std::to_string(entry.parameter.bytes().count())};
        for (const auto* side : {&entry.source, &entry.destinations.front()}) {
            row.push_back(std::to_string(side->shards().size()));
            row.push_back(std::to_string(side->shards().front().members.size()));
        }
        rows.push_back(std::move(row));
    }
    return rows_text(format,
                     {"class",
                      "shape",
                      "dtype",
                      "bytes",
                      "train_shards",
                      "train_replicas",
                      "generate_shards",
                      "generate_replicas"},
                     rows);
}

Json box_json(const Box& box) {
    Json axes = Json::array();
    for (const auto& axis : box.axes()) {
        axes.push_back({axis.begin, axis.end});
    }
    return axes;
}

std::string box_text(const Box& box) {
    std::string text;
    for (const auto& axis : box.axes()) {
        text += (text.empty() ? "[" : ", ") + std::to_string(axis.begin) + ":" + std::to_string(axis.end);
    }
    return text + "]";
}

Json rank_json(const RankHoldings& rank) {
    Json holdings = Json::array();
    for (const auto& holding : rank.holdings) {
        Json boxes = Json::array();
        for (const auto& box : holding.boxes) {
            boxes.push_back(box_json(box));
        }
        holdings.push_back({{"name", holding.name},
                            {"boxes", boxes},
                            {"layers", holding.layers},
                            {"replicas", holding.replicas},
                            {"bytes", holding.bytes.count()},
                            {"padding_bytes", holding.padding.count()}});
    }
    return {{"schema", "refit.rank"},
            {"schema_version", "1.0"},
            {"rank", rank.rank.index()},
            {"role", rank.is_trainer ? "train" : "generate"},
            {"stage", rank.stage},
            {"bytes", rank.bytes().count()},
            {"padding_bytes", rank.padding().count()},
            {"holdings", holdings}};
}

std::string rank_text(const RankHoldings& rank) {
    std::string text = "rank " + std::to_string(rank.rank.index()) + ": " +
                       (rank.is_trainer ? "trainer" : "generator") + ", stage " + std::to_string(rank.stage) +
                       ", " + format_bytes(rank.bytes()) + "\n\n";
    text += "  " + left("class", 58) + right("layers", 7) + right("held by", 9) + right("bytes", 10) +
            "  elements of one layer\n";
    for (const auto& holding : rank.holdings) {
        const auto more =
            holding.boxes.size() > 1 ? " and " + std::to_string(holding.boxes.size() - 1) + " more" : "";
        text += "  " + left(holding.name, 58) + right(std::to_string(holding.layers), 7) +
                right(std::to_string(holding.replicas), 9) + right(format_bytes(holding.bytes), 10) + "  " +
                (holding.boxes.empty() ? "padding" : box_text(holding.boxes.front())) + more + "\n";
    }
    return text;
}

/// One line a box, so that a rank's whole content stands in the rows; padding alone has no box.
std::string rank_rows(const RankHoldings& rank, Format format) {
    std::vector<Row> rows;
    for (const auto& holding : rank.holdings) {
        const auto add = [&](const std::string& box) {
            rows.push_back({holding.name,
                            box,
                            std::to_string(holding.layers),
                            std::to_string(holding.replicas),
                            std::to_string(holding.bytes.count()),
                            std::to_string(holding.padding.count())});
        };
        for (const auto& box : holding.boxes) {
            add(box_text(box));
        }
        if (holding.boxes.empty()) {
            add("");
        }
    }
    return rows_text(
        format, {"class", "box", "layers", "replicas", "class_bytes", "class_padding_bytes"}, rows);
}

/// What the format asks for: rows, JSON, or the text for people.
template <class Rows, class AsJson, class AsText>
std::string in_format(Format format, const Rows& rows, const AsJson& json, const AsText& text) {
    switch (format) {
        case Format::kCsv:
        case Format::kMarkdown:
            return rows(format);
        case Format::kJson:
            return rendered(json());
        case Format::kTable:
            break;
    }
    return text();
}

int show_model(const Options& options, const io::Library& library) {
    const auto model = library.model(options.scenario);
    if (!model) {
        return refuse(model.error(), options);
    }
    return write_output(in_format(
                            options.format,
                            [&](Format format) { return model_rows(*model, format); },
                            [&] { return model_json(*model); },
                            [&] { return model_text(*model); }),
                        options);
}

int show_maps(const Options& options) {
    if (options.format == Format::kCsv || options.format == Format::kMarkdown) {
        return usage_error("show maps answers with JSON records; give -o json, or no -o");
    }
    const auto records = io::read_json(options.scenario);
    if (!records) {
        return refuse(records.error(), options);
    }
    const auto answer = io::answer_content_maps(*records);
    if (!answer) {
        return refuse(answer.error(), options);
    }
    return write_output(answer->dump() + "\n", options);
}

int show_scenario(const Options& options, const io::Library& library) {
    Faults faults;
    const auto draft = take(collect_draft(options, library, faults), faults);
    const auto scenario = draft ? take(io::resolve(*draft, library), faults) : std::nullopt;
    if (!faults.empty()) {
        return refuse(faults, options, draft ? &*draft : nullptr, &library);
    }
    const auto workload = Workload::make(*scenario);
    if (options.what == "layout") {
        return write_output(in_format(
                                options.format,
                                [&](Format format) { return layout_rows(workload, format); },
                                [&] { return layout_json(*scenario, workload); },
                                [&] { return layout_text(*scenario, workload); }),
                            options);
    }
    if (!options.rank || *options.rank >= scenario->cluster.gpus()) {
        return usage_error("show rank needs a rank from 0 to " +
                           std::to_string(scenario->cluster.gpus() - 1) + ": trainers 0 to " +
                           std::to_string(scenario->train.gpus - 1) + ", then generators");
    }
    const auto holdings = holdings_of(*scenario, workload, RankId{*options.rank});
    return write_output(in_format(
                            options.format,
                            [&](Format format) { return rank_rows(holdings, format); },
                            [&] { return rank_json(holdings); },
                            [&] { return rank_text(holdings); }),
                        options);
}

}  // namespace

int run_show(const Options& options, const io::Library& library) {
    if (options.what == "model") {
        return show_model(options, library);
    }
    return options.what == "maps" ? show_maps(options) : show_scenario(options, library);
}

}  // namespace refit::cli
