// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>
#include <vector>

#include "canvas.hpp"
#include "refit/gui/sankey.hpp"
#include "refit/quantity.hpp"

namespace refit::gui {
namespace {

constexpr double kLabel = 190.0;
constexpr double kBar = 14.0;
constexpr double kWide = 620.0;

/// Room for the names of groups beside their bars; sizes stand there too where the frame is wide.
double label_width(const Groups& groups, const Frame& frame) {
    if (frame.width >= kWide) {
        return kLabel;
    }
    double width = 36.0;
    for (std::uint32_t group = 0; group < groups.count(); ++group) {
        width = std::max(width, text_width(groups.name(group), 11.0) + 10.0);
    }
    return std::min(width, frame.width * 0.3);
}

/// Two columns and the bands between them: of all flows, or of one part of the job beside others.
class FlowsPicture {
public:
    /// `all`: of the whole job, which shares are of. `has_heads`: it says which side sends.
    FlowsPicture(Canvas& canvas, const Groups& groups, const GroupMatrix& matrix, const PairFlow& all, const Frame& frame, bool has_heads)
        : canvas_{canvas}, groups_{groups}, total_{all}, frame_{frame}, label_{label_width(groups, frame)}, head_{has_heads ? 22.0 : 4.0},
          sankey_{make_sankey(matrix, canvas.state.top, {frame.x + label_, frame.y + head_, frame.width - 2.0 * label_, frame.height - head_ - 2.0}, kBar)} {}

    void draw() {
        if (head_ > 10.0) {
            canvas_.scene.text({frame_.x, frame_.y, label_ + kBar, 16.0}, "sends", Ink::kMuted, Align::kRight, 12.0, true);
            canvas_.scene.text({frame_.right() - label_ - kBar, frame_.y, label_ + kBar, 16.0}, "receives", Ink::kMuted, Align::kLeft, 12.0, true);
        }
        bands();
        nodes(sankey_.senders, true);
        nodes(sankey_.receivers, false);
    }

    [[nodiscard]] std::size_t other_bands() const noexcept { return sankey_.other_bands; }
    [[nodiscard]] std::uint64_t other_bytes() const noexcept { return sankey_.other_bytes; }

private:

    void bands() {
        const auto& selection = canvas_.state.selection;
        for (const auto& band : sankey_.bands) {
            const Target target{Target::Kind::kPair, groups_.grouping(), band.from, band.to};
            const bool is_near = !selection.is_set() || selection == target || touches(selection, band);
            const auto ink = band.is_network ? Ink::kNic : Ink::kNvlink;
            const auto mark = canvas_.scene.add(RibbonMark{band.start, band.end, {ink, is_near ? 0.62 : 0.12},
                                                           band.is_network ? Pattern::kSolid : Pattern::kHatch});
            canvas_.element(target,
                            groups_.name(band.from) + " to " + groups_.name(band.to) + ", " + format_bytes(Bytes{band.bytes}) + " over " +
                                (band.is_network ? "NICs" : "NVLink") + ", " + share_text(band.bytes, total_.bytes()) + " of all",
                            {band.start.right(), std::min(band.start.y, band.end.y), band.end.x - band.start.right(),
                             std::max(band.start.bottom(), band.end.bottom()) - std::min(band.start.y, band.end.y)},
                            {mark});
        }
    }

    [[nodiscard]] bool touches(const Target& selection, const SankeyBand& band) const {
        if (selection.kind != Target::Kind::kGroup) {
            return selection.kind != Target::Kind::kPair;
        }
        const auto& others = canvas_.answer.by(selection.level);
        const auto& ranks = others.members(std::min(selection.a, others.count() - 1));
        return std::ranges::any_of(ranks, [&](std::uint32_t rank) {
            const auto group = groups_.of_rank(rank);
            return group == band.from || group == band.to;
        });
    }

    void nodes(const std::vector<SankeyNode>& nodes, bool are_senders) {
        double last_label = -100.0;
        for (const auto& node : nodes) {
            const auto ink = groups_.is_train(node.group) ? Ink::kTrain : Ink::kGenerate;
            if (node.other > 0) {
                const auto height = node.frame.height * static_cast<double>(node.other) / static_cast<double>(node.bytes);
                canvas_.scene.add(RectMark{{are_senders ? node.frame.right() : node.frame.x - 16.0, node.frame.bottom() - height, 16.0, height}, {Ink::kMuted, 0.35}});
            }
            const auto mark = canvas_.scene.add(RectMark{node.frame, {ink}, {}, 1.0, Pattern::kSolid, 1.5});
            const auto name = groups_.name(node.group);
            const auto size = size_text(static_cast<double>(node.bytes));
            canvas_.element({Target::Kind::kGroup, groups_.grouping(), node.group, 0},
                            name + (are_senders ? " sends " : " receives ") + size + ", " + share_text(node.bytes, total_.bytes()) + " of all",
                            node.frame, {mark});
            const auto y = node.frame.y + node.frame.height / 2.0 - 8.0;
            if (y < last_label + 12.5) {
                continue;
            }
            last_label = y;
            const auto text_size = node.frame.height >= 12.0 ? 12.0 : 11.0;
            const auto x = are_senders ? node.frame.x - label_ : node.frame.right() + 8.0;
            const Frame label{x, y, label_ - 8.0, 16.0};
            if (label_ < kLabel) {
                canvas_.scene.text(label, name, Ink::kText, are_senders ? Align::kRight : Align::kLeft, 11.0);
            } else if (are_senders) {
                canvas_.scene.text({label.x, label.y, label.width - 74.0, 16.0}, name, Ink::kText, Align::kRight, text_size);
                canvas_.scene.text({label.right() - 70.0, label.y, 70.0, 16.0}, size, Ink::kMuted, Align::kRight, 11.0);
            } else {
                canvas_.scene.text({label.x, label.y, 66.0, 16.0}, size, Ink::kMuted, Align::kLeft, 11.0);
                canvas_.scene.text({label.x + 70.0, label.y, label.width - 70.0, 16.0}, name, Ink::kText, Align::kLeft, text_size);
            }
        }
    }

    Canvas& canvas_;
    const Groups& groups_;
    PairFlow total_;
    Frame frame_;
    double label_;
    double head_;
    Sankey sankey_;
};

/// The cells of a part of the job. Groups hold ranks of one side only.
GroupMatrix part_of(const GroupMatrix& matrix, const Groups& groups, Direction direction) {
    GroupMatrix part{matrix.groups, std::vector<PairFlow>(matrix.cells.size())};
    for (std::uint32_t from = 0; from < matrix.groups; ++from) {
        for (std::uint32_t to = 0; to < matrix.groups; ++to) {
            const auto is_cell = groups.is_train(from) ? direction == (groups.is_train(to) ? Direction::kAmongTrainers : Direction::kTrainToGenerate)
                                                       : direction == Direction::kAmongGenerators && !groups.is_train(to);
            if (is_cell) {
                part.cells[static_cast<std::size_t>(from) * matrix.groups + to] = matrix.at(from, to);
            }
        }
    }
    return part;
}

/// All flows in one picture, or each part of the job at a scale of its own where one would make another's bands hairlines.
class FlowsPage {
public:
    FlowsPage(Canvas& canvas, const Groups& groups, const GroupMatrix& matrix) : canvas_{canvas}, groups_{groups}, matrix_{matrix}, all_{matrix.total()} {}

    void draw() {
        const auto parts = parts_of();
        const auto& body = canvas_.body;
        const Frame area{body.x, body.y + 24.0, body.width, body.height - 24.0};
        if (parts.size() < 2) {
            one(matrix_, area);
        } else if (area.width >= kLeastWidth) {
            columns(parts, area);
        } else {
            rows(parts, area);
        }
        caption(parts.size() > 1);
    }

private:
    using Parts = std::vector<std::pair<Direction, GroupMatrix>>;
    static constexpr double kLeastWidth = 760.0;  ///< Below it columns of parts would have no room for bands.
    static constexpr double kLeastHeight = 70.0;  ///< Of a part below others.
    static constexpr double kThinPart = 0.15;     ///< Of all bytes: what trainers send to generators is thin below.

    static std::string title_of_part(Direction direction) {
        auto title = std::string{title_of(direction)};
        title.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(title.front())));
        return title;
    }
    [[nodiscard]] std::string size_of_part(const PairFlow& total) const {
        return bytes_text(total) + ", " + share_text(total.bytes(), all_.bytes()) + " of all";
    }

    void columns(const Parts& parts, const Frame& area) {
        constexpr double kGap = 20.0;
        const auto width = (area.width - kGap * static_cast<double>(parts.size() - 1)) / static_cast<double>(parts.size());
        double x = area.x;
        for (const auto& [direction, part] : parts) {
            canvas_.scene.text({x, area.y + 2.0, width, 18.0}, title_of_part(direction), Ink::kText, Align::kLeft, 13.0, true);
            canvas_.scene.text({x, area.y + 20.0, width, 16.0}, size_of_part(part.total()), Ink::kMuted, Align::kLeft, 11.0);
            one(part, {x, area.y + 44.0, width, area.height - 44.0});
            x += width + kGap;
        }
    }

    /// One below the other, each as wide as there is room.
    void rows(const Parts& parts, const Frame& area) {
        const auto height = area.height / static_cast<double>(parts.size());
        double y = area.y;
        for (const auto& [direction, part] : parts) {
            const auto title = title_of_part(direction);
            const auto total = part.total();
            const auto end = text_width(title, 12.0) * 1.08 + 10.0;
            const auto share = share_text(total.bytes(), all_.bytes());
            canvas_.scene.text({area.x, y, end, 17.0}, title, Ink::kText, Align::kLeft, 12.0, true);
            canvas_.scene.text({area.x + end, y, area.width - end, 17.0},
                               longest({size_of_part(total), size_text(static_cast<double>(total.bytes())) + ", " + share + " of all", share}, area.width - end),
                               Ink::kMuted, Align::kLeft, 11.0);
            const bool is_first = y == area.y;
            one(part, {area.x, y + (is_first ? 16.0 : 18.0), area.width, height - (is_first ? 22.0 : 24.0)}, is_first);
            y += height;
        }
    }

    [[nodiscard]] Parts parts_of() const {
        Parts parts;
        const bool is_small = canvas_.body.width < kLeastWidth && canvas_.body.height < 24.0 + 3.0 * kLeastHeight;
        if (canvas_.state.direction != Direction::kAll || is_small || groups_.count() <= 2) {
            return parts;
        }
        bool is_thin = false;
        for (const auto direction : {Direction::kAmongTrainers, Direction::kTrainToGenerate, Direction::kAmongGenerators}) {
            auto part = part_of(matrix_, groups_, direction);
            const auto bytes = part.total().bytes();
            if (bytes > 0) {
                is_thin = is_thin || (direction == Direction::kTrainToGenerate && static_cast<double>(bytes) < kThinPart * static_cast<double>(all_.bytes()));
                parts.emplace_back(direction, std::move(part));
            }
        }
        if (!is_thin) {
            parts.clear();
        }
        return parts;
    }

    void one(const GroupMatrix& matrix, const Frame& frame, bool has_heads = true) {
        FlowsPicture picture{canvas_, groups_, matrix, all_, frame, has_heads};
        picture.draw();
        other_bands_ += picture.other_bands();
        other_bytes_ += picture.other_bytes();
    }

    void caption(bool has_parts) {
        const auto& body = canvas_.body;
        auto x = canvas_.key({{"over NICs", {Ink::kNic, 0.75}}, {"over NVLink", {Ink::kNvlink, 0.75}, Pattern::kHatch}}, body.x, body.y);
        if (other_bands_ > 0) {
            x = canvas_.key({{grouped(other_bands_) + " smaller ones, " + size_text(static_cast<double>(other_bytes_)) + ", not drawn", {Ink::kMuted, 0.35}}}, x, body.y);
        }
        const auto room = body.right() - x;
        const auto hint = has_parts ? longest({"each part has its own scale; Shift+D shows one alone", "each part has its own scale", "own scales", ""}, room)
                                    : longest({"stays on its GPU: 0 B (trainers and generators are different GPUs)", "stays on its GPU: 0 B", ""}, room);
        canvas_.scene.text({x, body.y, room, 17.0}, hint, Ink::kMuted, Align::kRight, 11.0);
    }

    Canvas& canvas_;
    const Groups& groups_;
    const GroupMatrix& matrix_;
    PairFlow all_;
    std::size_t other_bands_ = 0;
    std::uint64_t other_bytes_ = 0;
};

}  // namespace

Scene flows_view(Canvas canvas) {
    const auto& answer = canvas.answer;
    const auto& groups = answer.by(grouping_of(answer, canvas.state));
    const std::string title = "Who sends to whom";
    if (groups.count() > kMostGroups) {
        return matrix_of(std::move(canvas), title, "; more than 64 groups, so as a matrix (G: coarser)");
    }
    const auto matrix = aggregate(*answer.a.flows, groups, answer.train_gpus(), canvas.state.direction, flow_mask_of(answer, canvas.state));
    const auto total = matrix.total();
    if (total.bytes() == 0) {
        return no_flow_fits(std::move(canvas), title);
    }
    canvas.header(title, flows_line(answer, canvas.state, total));
    FlowsPage{canvas, groups, matrix}.draw();
    return std::move(canvas.scene);
}

}  // namespace refit::gui
