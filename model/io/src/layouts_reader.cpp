// SPDX-License-Identifier: Apache-2.0
#include "layouts_reader.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "pipeline_reader.hpp"
#include "refit/layout_check.hpp"

namespace refit::io {
namespace {

/// The fewest GPUs on which the axes of a layout multiply out.
std::uint32_t fewest_gpus(const LayoutText& layout, bool is_train) {
    const auto of = [](std::optional<std::uint32_t> axis) { return std::uint64_t{axis.value_or(1)}; };
    if (layout.fsdp && is_train) {
        return static_cast<std::uint32_t>(std::min<std::uint64_t>(of(layout.ep) * of(layout.fsdp) * of(layout.dp), kMostGpus));
    }
    const auto dense = of(layout.tp) * of(layout.cp) * of(layout.dp);
    const auto expert = is_train || layout.pp.value_or(1) == 1 ? of(layout.ep) * of(layout.etp) : 1;
    if (dense > kMostGpus || expert > kMostGpus) {
        return kMostGpus;
    }
    return static_cast<std::uint32_t>(
        std::min<std::uint64_t>(std::lcm(dense, expert) * of(layout.pp), kMostGpus));
}

/// Layout and GPU count of one side as they are written. What cannot be read is a fault and gives way to a
/// value that can.
class SideReader {
public:
    SideReader(DraftReader& reader, std::string side)
        : reader_{reader}, side_{std::move(side)}, field_{side_ + ".layout"}, gpus_field_{side_ + ".gpus"} {
        read_layout();
        read_gpus();
    }

    [[nodiscard]] LayoutText& layout() noexcept { return layout_; }
    [[nodiscard]] std::uint32_t gpus() const noexcept { return gpus_; }

    /// Takes a layout, or its faults. A suggested one keeps the GPU count where the refused one had it.
    template <class Layout>
    std::optional<Layout> take(Result<Layout> made) {
        if (made) {
            return is_readable() ? std::optional{std::move(*made)} : std::nullopt;
        }
        auto& faults = made.error();
        const auto more = std::ranges::find(faults, gpus_field_, [](const Fault& fault) {
            return fault.nearest ? fault.nearest->field : "";
        });
        if (more != faults.end()) {
            gpus_ = whole_number_in(more->nearest->value, kMostGpus).value_or(gpus_);
        }
        if (has_count_in_layout()) {
            for (auto& fault : faults) {
                if (fault.nearest && fault.nearest->field == field_) {
                    fault.nearest->value += "@" + std::to_string(gpus_);
                }
            }
        }
        if (more != faults.end()) {
            place_count(faults, more);
        }
        report(std::move(made));
        return std::nullopt;
    }

private:
    [[nodiscard]] bool is_readable() const noexcept { return !syntax_fault_; }

    void read_layout() {
        const auto text = reader_.text_of(field_, "tp1");
        auto parsed = parse_layout(text);
        if (parsed) {
            layout_ = std::move(*parsed);
            return;
        }
        const auto at = std::min(text.find('@'), text.size());
        const auto plain = parse_layout("tp1" + text.substr(at)) ? "tp1" + text.substr(at) : "tp1";
        syntax_fault_ = reader_.faults().size();
        static_cast<void>(reader_.take(std::move(parsed), field_, plain.c_str()));
        layout_ = parse_layout(plain).value();
    }

    /// GPUs from "…@128" or from the side's own field, whichever was set later.
    void read_gpus() {
        const auto* gpus = reader_.draft().find(gpus_field_);
        const auto* text = reader_.draft().find(field_);
        const auto fewest = fewest_gpus(layout_, side_ == "train");
        if (layout_.gpus && (gpus == nullptr || text->precedence > gpus->precedence)) {
            gpus_ = *layout_.gpus;
            return;
        }
        if (gpus == nullptr) {
            reader_.refuse(ErrorCode::kInvalidInput,
                           "missing-field",
                           "'" + gpus_field_ + "' is missing: how many GPUs?",
                           gpus_field_,
                           Suggestion{gpus_field_, std::to_string(fewest), "the fewest for this layout"});
            gpus_ = fewest;
            return;
        }
        const bool says_both = layout_.gpus && gpus->precedence == text->precedence;
        gpus_ = reader_.whole_number(gpus_field_, gpus->text, kMostGpus, says_both ? *layout_.gpus : fewest);
        if (says_both && gpus_ != *layout_.gpus) {
            reader_.refuse(
                ErrorCode::kInvalidInput,
                "gpus-twice",
                gpus_field_ + " is " + gpus->text + ", but the layout says @" + std::to_string(*layout_.gpus),
                gpus_field_,
                Suggestion{gpus_field_, std::to_string(*layout_.gpus), ""});
            gpus_ = *layout_.gpus;
        }
        if (text != nullptr && gpus->precedence > text->precedence) {
            layout_.dp.reset();  // The count was set after the layout: dp follows from it, as in `compare X
                                 // --gen-gpus 512`.
        }
    }

    [[nodiscard]] bool has_count_in_layout() const {
        const auto* gpus = reader_.draft().find(gpus_field_);
        const auto* text = reader_.draft().find(field_);
        return layout_.gpus && (gpus == nullptr || text->precedence >= gpus->precedence);
    }

    /// Where a fault of the GPU count has been told, it offers the count with room; else the new fault does,
    /// unless the count stands behind the layout that is offered.
    void place_count(Faults& faults, Faults::iterator more) {
        const auto suggestion = *more->nearest;
        const auto told = std::ranges::find_if(reader_.faults(), [&](const Fault& fault) {
            return fault.nearest && fault.nearest->field == gpus_field_;
        });
        if (told != reader_.faults().end()) {
            told->nearest = suggestion;
            faults.erase(more);
        } else if (has_count_in_layout()) {
            more->nearest = faults.front().nearest;
        }
    }

    /// Passes the faults on; where the layout could not even be read, what is offered for it there is what
    /// works.
    template <class Layout>
    void report(Result<Layout> made) {
        auto& faults = made.error();
        if (syntax_fault_) {
            auto& unread = reader_.faults()[*syntax_fault_];
            for (const auto& fault : faults) {
                unread.nearest =
                    fault.nearest && fault.nearest->field == field_ ? fault.nearest : unread.nearest;
            }
            std::erase_if(faults, [&](const Fault& fault) { return fault.where == field_; });
        }
        if (!faults.empty()) {
            static_cast<void>(reader_.take(std::move(made), field_));
        }
    }

    DraftReader& reader_;
    std::string side_;
    std::string field_;
    std::string gpus_field_;
    LayoutText layout_;
    std::uint32_t gpus_ = 1;
    std::optional<std::size_t> syntax_fault_;  ///< Where the fault of an unreadable layout stands.
};

/// The trainers' engine is told by the layout, or in words. Where both were said at once they have to agree; else the
/// later word holds.
void settle_engine(DraftReader& reader, LayoutText& layout, std::uint32_t gpus) {
    const std::string name = "train.engine";
    const auto* engine = reader.draft().find(name);
    const auto* written = reader.draft().find("train.layout");
    const bool is_later = engine != nullptr && (written == nullptr || engine->precedence > written->precedence);
    const bool is_said = engine != nullptr && (is_later || engine->precedence == written->precedence);
    if (is_said && engine->text == "fsdp" && !layout.fsdp) {
        LayoutText sharded;
        sharded.fsdp = gpus;
        sharded.gpus = layout.gpus;
        if (!is_later) {
            const auto count = layout.gpus ? "@" + std::to_string(*layout.gpus) : "";
            reader.refuse(ErrorCode::kInvalidInput,
                          "train-engine",
                          "train.engine = fsdp, but the layout " + written->text + " is one of Megatron",
                          "train.layout",
                          Suggestion{"train.layout", "fsdp" + std::to_string(gpus) + count, ""});
        }
        layout = sharded;
    } else if (is_said && engine->text == "megatron" && layout.fsdp) {
        if (!is_later) {
            reader.refuse(ErrorCode::kInvalidInput,
                          "train-engine",
                          "train.engine = megatron, but the layout " + written->text + " is one of FSDP",
                          name,
                          Suggestion{name, "fsdp", ""});
            return;
        }
        LayoutText plain;
        plain.gpus = layout.gpus;
        layout = plain;
    }
}

/// The layout that is left once the suggestions for a refused one are followed.
std::optional<TrainLayout> offered(const Faults& faults,
                                   LayoutText text,
                                   std::uint32_t gpus,
                                   const Inventory& model) {
    for (const auto& fault : faults) {
        if (fault.nearest && fault.nearest->field == "train.layout") {
            text = parse_layout(fault.nearest->value).value_or(text);
        } else if (fault.nearest && fault.nearest->field == "train.pipeline.first") {
            text.first_stage_layers = whole_number_in(fault.nearest->value, kMostGpus);
        } else if (fault.nearest && fault.nearest->field == "train.pipeline.last") {
            text.last_stage_layers = whole_number_in(fault.nearest->value, kMostGpus);
        }
    }
    Faults ignored;
    return take(make_train_layout(text, text.gpus.value_or(gpus), model), ignored);
}

}  // namespace

std::optional<TrainLayout> read_train_layout(DraftReader& reader,
                                             const std::optional<Inventory>& model,
                                             const std::optional<GpuMemory>& memory) {
    SideReader side{reader, "train"};
    if (!model) {
        return std::nullopt;
    }
    settle_engine(reader, side.layout(), side.gpus());
    add_pipeline(reader, side.layout(), *model);
    auto made = make_train_layout(side.layout(), side.gpus(), *model, memory);
    if (!made) {
        suggest_ends(reader, made.error(), side.layout(), side.gpus(), *model, memory);
    }
    auto layout = side.take(std::move(made));
    // The pipeline of a layout that is offered has to hold the virtual stages too.
    auto next = layout ? layout : offered(reader.faults(), side.layout(), side.gpus(), *model);
    if (next) {
        add_virtual_stages(reader, *next);
    }
    return layout ? next : std::nullopt;
}

std::optional<GenerateLayout> read_generate_layout(DraftReader& reader,
                                                   const std::optional<Inventory>& model,
                                                   const std::optional<GpuMemory>& memory,
                                                   bool is_fp8,
                                                   Dtype dtype) {
    SideReader side{reader, "generate"};
    if (!model) {
        return std::nullopt;
    }
    auto layout = side.take(make_generate_layout(side.layout(), side.gpus(), *model, memory));
    const auto placement = reader.one_of(
        "generate.expert_placement", "linear", {"linear", "round_robin"}, ErrorCode::kInvalidInput);
    // vLLM places experts in turn only where they are spread and the router knows groups of them.
    if (layout && placement == "round_robin" && layout->ep > 1 && model->expert_groups() > 1) {
        layout->expert_placement = ExpertPlacement::kRoundRobin;
    }
    auto cut = layout && is_fp8 ? check_fp8_blocks(*layout, *model, memory) : Faults{};
    for (auto& fault : cut) {
        if (!fault.nearest) {
            fault.nearest = Suggestion{"generate.dtype", std::string{name_of(dtype)}, ""};
        }
    }
    return cut.empty() ? layout : side.take(Result<GenerateLayout>{fail(std::move(cut))});
}

}  // namespace refit::io
