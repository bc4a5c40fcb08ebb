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
constexpr std::uint32_t kMostGroups = 64;  ///< Of a two-column picture; the matrix is readable above.

std::string share_text(std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? "0 %" : percent(static_cast<double>(part) / static_cast<double>(whole));
}

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

class MatrixPicture {
public:
    MatrixPicture(Canvas& canvas, const Groups& groups, const GroupMatrix& matrix) : canvas_{canvas}, groups_{groups}, matrix_{matrix} {
        // Every rank by every rank is millions of bytes: they are read once.
        for (std::uint32_t group = 0; group < matrix.groups; ++group) {
            PairFlow sum;
            for (std::uint32_t to = 0; to < matrix.groups; ++to) {
                const auto& cell = matrix.at(group, to);
                sum += cell;
                most_ = std::max(most_, cell.bytes());
            }
            sent_.push_back(sum);
            total_ += sum;
            if (matrix.groups > kMostGroups || sum.bytes() > 0) {
                rows_.push_back(group);
            }
            if (matrix.groups > kMostGroups || matrix.column(group).bytes() > 0) {
                columns_.push_back(group);
            }
        }
    }

    [[nodiscard]] const PairFlow& total() const noexcept { return total_; }

    void draw() {
        const auto& body = canvas_.body;
        auto x = canvas_.scale("0", size_text(static_cast<double>(most_)) + (body.width < kWide ? ", by roots" : " (square-root scale)"), body.x, body.y);
        canvas_.key({{body.width < kWide ? "NICs" : "has traffic on NICs", {Ink::kNic}, Pattern::kSolid}}, x, body.y);
        const auto top = 64.0;
        const auto sum = 74.0;
        area_ = {body.x + 112.0, body.y + 26.0 + top, body.width - 112.0 - sum, body.height - 26.0 - top - 24.0};
        // Cells are no wider than they need be: the picture stays readable.
        const auto cell_width = std::min(area_.width / static_cast<double>(columns_.size()), 150.0);
        const auto cell_height = std::min(area_.height / static_cast<double>(rows_.size()), 72.0);
        area_.x += (area_.width - cell_width * static_cast<double>(columns_.size())) / 2.0;
        area_.width = cell_width * static_cast<double>(columns_.size());
        area_.height = cell_height * static_cast<double>(rows_.size());
        canvas_.scene.text({area_.x - 112.0, area_.y - 38.0, 104.0, 15.0}, "receives →", Ink::kMuted, Align::kRight, 10.5);
        canvas_.scene.text({area_.x - 112.0, area_.y - 21.0, 104.0, 15.0}, "sends ↓", Ink::kMuted, Align::kRight, 10.5);
        if (matrix_.groups > kMostGroups) {
            grid();
        } else {
            cells(cell_width, cell_height);
        }
        labels(cell_width, cell_height);
        sums(cell_width, cell_height);
    }

private:
    void grid() {
        HeatMark heat{area_, matrix_.groups, matrix_.groups, {}, Target::Kind::kPair, groups_.grouping()};
        heat.shares.reserve(matrix_.cells.size());
        for (const auto& cell : matrix_.cells) {
            heat.shares.push_back(cell.bytes() == 0 ? -1.0F : share_of(cell.bytes()));
        }
        canvas_.scene.add(RectMark{area_, {Ink::kPanel}});
        canvas_.scene.add(std::move(heat));
        canvas_.scene.add(RectMark{area_, {}, {Ink::kOutline}});
        // Groups of the grid's edges stand for its cells where a screen reader walks.
        for (std::uint32_t group = 0; group < groups_.count(); ++group) {
            if (groups_.count() > 512) {
                break;
            }
            const auto& row = sent_[group];
            if (row.bytes() > 0) {
                const auto height = area_.height / groups_.count();
                canvas_.element({Target::Kind::kGroup, groups_.grouping(), group, 0}, groups_.name(group) + " sends " + bytes_text(row),
                                {area_.x - 14.0, area_.y + height * group, 13.0, std::max(1.0, height)});
            }
        }
    }

    [[nodiscard]] float share_of(std::uint64_t bytes) const {
        return static_cast<float>(std::sqrt(static_cast<double>(bytes) / static_cast<double>(std::max<std::uint64_t>(1, most_))));
    }

    void cells(double width, double height) {
        const bool has_numbers = width >= 40.0 && height >= 13.0;
        for (std::size_t r = 0; r < rows_.size(); ++r) {
            for (std::size_t c = 0; c < columns_.size(); ++c) {
                const auto& flow = matrix_.at(rows_[r], columns_[c]);
                const Frame frame{area_.x + static_cast<double>(c) * width + 0.5, area_.y + static_cast<double>(r) * height + 0.5, width - 1.0, height - 1.0};
                const auto paint = flow.bytes() == 0 ? Paint{Ink::kPanel} : heat_paint(0.06 + 0.94 * static_cast<double>(share_of(flow.bytes())));
                const auto mark = canvas_.scene.add(RectMark{frame, paint});
                if (flow.bytes() == 0) {
                    continue;
                }
                if (flow.nic > 0 && height >= 7.0) {
                    canvas_.scene.add(RectMark{{frame.x, frame.bottom() - 2.5, frame.width, 2.5}, {Ink::kNic}});
                }
                if (has_numbers) {
                    canvas_.scene.add(TextMark{frame, size_text(static_cast<double>(flow.bytes())), {Ink::kText}, Align::kCentre, std::min(11.0, width / 4.6), false, paint});
                }
                const Target target{Target::Kind::kPair, groups_.grouping(), rows_[r], columns_[c]};
                canvas_.element(target, groups_.name(rows_[r]) + " to " + groups_.name(columns_[c]) + ", " + bytes_text(flow) + ", " + share_text(flow.bytes(), total_.bytes()) + " of all", frame, {mark});
                if (canvas_.state.selection == target) {
                    canvas_.scene.add(RectMark{frame, {}, {Ink::kAccent}, 3.0});
                }
            }
        }
    }

    void labels(double width, double height) {
        double last = -100.0;
        for (std::size_t r = 0; r < rows_.size(); ++r) {
            const auto y = area_.y + (static_cast<double>(r) + 0.5) * height;
            const auto ink = groups_.is_train(rows_[r]) ? Ink::kTrain : Ink::kGenerate;
            canvas_.scene.add(RectMark{{area_.x - 5.0, y - height / 2.0, 4.0, height}, {ink}});
            if (y >= last + 12.0) {
                last = y;
                canvas_.scene.text({area_.x - 112.0, y - 8.0, 102.0, 16.0}, groups_.name(rows_[r]), Ink::kText, Align::kRight, 11.0);
            }
        }
        last = -100.0;
        for (std::size_t c = 0; c < columns_.size(); ++c) {
            const auto x = area_.x + (static_cast<double>(c) + 0.5) * width;
            const auto ink = groups_.is_train(columns_[c]) ? Ink::kTrain : Ink::kGenerate;
            canvas_.scene.add(RectMark{{x - width / 2.0, area_.y - 5.0, width, 4.0}, {ink}});
            const auto name = groups_.name(columns_[c]);
            if (width >= text_width(name, 11.0)) {
                canvas_.scene.text({x - width / 2.0, area_.y - 22.0, width, 15.0}, name, Ink::kText, Align::kCentre, 11.0);
            } else if (x >= last + 13.0) {
                last = x;
                canvas_.scene.add(TextMark{{x - 8.0, area_.y - 74.0, 16.0, 66.0}, name, {Ink::kText}, Align::kLeft, 11.0, false, std::nullopt, true});
            }
        }
    }

    void sums(double width, double height) {
        std::uint64_t most = 1;
        std::vector<std::uint64_t> sent;
        for (const auto row : rows_) {
            sent.push_back(sent_[row].bytes());
            most = std::max(most, sent.back());
        }
        const bool has_text = height >= 11.0;
        for (std::size_t r = 0; r < rows_.size(); ++r) {
            const auto bytes = sent[r];
            const auto y = area_.y + static_cast<double>(r) * height;
            if (has_text) {
                canvas_.scene.text({area_.right() + 6.0, y, 68.0, height}, size_text(static_cast<double>(bytes)), Ink::kMuted, Align::kLeft, 10.5);
            } else {
                canvas_.scene.add(RectMark{{area_.right() + 6.0, y, 60.0 * static_cast<double>(bytes) / static_cast<double>(most), std::max(1.0, height - 0.5)}, {Ink::kMuted}});
            }
        }
        if (width >= 40.0) {
            for (std::size_t c = 0; c < columns_.size(); ++c) {
                canvas_.scene.text({area_.x + static_cast<double>(c) * width, area_.bottom() + 4.0, width, 15.0},
                                   size_text(static_cast<double>(matrix_.column(columns_[c]).bytes())), Ink::kMuted, Align::kCentre, std::min(10.5, width / 5.0));
            }
        }
        canvas_.scene.text({area_.right() + 6.0, area_.y - 22.0, 70.0, 15.0}, "all", Ink::kMuted, Align::kLeft, 10.5);
    }

    Canvas& canvas_;
    const Groups& groups_;
    const GroupMatrix& matrix_;
    PairFlow total_;
    std::vector<PairFlow> sent_;  ///< By group.
    std::vector<std::uint32_t> rows_;
    std::vector<std::uint32_t> columns_;
    std::uint64_t most_ = 0;
    Frame area_;
};

std::string subtitle(const Answer& answer, const ViewState& state, const Groups& groups, const PairFlow& total) {
    auto text = "by " + std::string{title_of(groups.grouping())} + "; " + bytes_text(total);
    if (state.direction != Direction::kAll) {
        text += ", " + std::string{title_of(state.direction)};
    }
    return text + "; " + headline_of(answer.a);
}

}  // namespace

Scene flows_view(Canvas canvas) {
    const auto& answer = canvas.answer;
    const auto& groups = answer.by(grouping_of(answer, canvas.state));
    const auto mask = canvas.state.filter.is_set() ? flow_mask(canvas.state.filter, *answer.a.flows, answer.workload, answer.groups) : std::vector<std::uint8_t>{};
    const auto matrix = aggregate(*answer.a.flows, groups, answer.train_gpus(), canvas.state.direction, mask);
    const auto total = matrix.total();
    if (total.bytes() == 0) {
        canvas.header("Who sends to whom", headline_of(answer.a));
        canvas.nothing("No flow fits the filter", "Esc clears it");
        return std::move(canvas.scene);
    }
    if (groups.count() > kMostGroups) {
        canvas.header("Who sends to whom", subtitle(answer, canvas.state, groups, total) + "; more than 64 groups, so as a matrix (G: coarser)");
        MatrixPicture{canvas, groups, matrix}.draw();
        return std::move(canvas.scene);
    }
    canvas.header("Who sends to whom", subtitle(answer, canvas.state, groups, total));
    FlowsPage{canvas, groups, matrix}.draw();
    return std::move(canvas.scene);
}

Scene matrix_view(Canvas canvas) {
    const auto& answer = canvas.answer;
    const auto& groups = answer.by(grouping_of(answer, canvas.state));
    const auto mask = canvas.state.filter.is_set() ? flow_mask(canvas.state.filter, *answer.a.flows, answer.workload, answer.groups) : std::vector<std::uint8_t>{};
    const auto matrix = aggregate(*answer.a.flows, groups, answer.train_gpus(), canvas.state.direction, mask);
    MatrixPicture picture{canvas, groups, matrix};
    canvas.header("How much goes from whom to whom", subtitle(answer, canvas.state, groups, picture.total()));
    if (picture.total().bytes() == 0) {
        canvas.nothing("No flow fits the filter", "Esc clears it");
        return std::move(canvas.scene);
    }
    picture.draw();
    return std::move(canvas.scene);
}

}  // namespace refit::gui
