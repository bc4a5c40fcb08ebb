// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "canvas.hpp"
#include "refit/quantity.hpp"

namespace refit::gui {
namespace {

constexpr double kWide = 620.0;  ///< What stands beside the scale is said in full.

class MatrixPicture {
public:
    MatrixPicture(Canvas& canvas, const Groups& groups, const std::vector<std::uint8_t>& mask) : canvas_{canvas}, groups_{groups} {
        const auto& flows = *canvas.answer.a.flows;
        if (is_grid()) {
            auto grid = aggregate_bytes(flows, groups, canvas.answer.train_gpus(), canvas.state.direction, mask);
            sent_ = std::move(grid.sent);
            bytes_ = std::move(grid.bytes);
            most_ = *std::ranges::max_element(bytes_);
        } else {
            matrix_ = aggregate(flows, groups, canvas.answer.train_gpus(), canvas.state.direction, mask);
            for (std::uint32_t group = 0; group < groups.count(); ++group) {
                sent_.push_back(matrix_.row(group));
                received_.push_back(matrix_.column(group));
            }
            for (const auto& cell : matrix_.cells) {
                most_ = std::max(most_, cell.bytes());
            }
        }
        for (std::uint32_t group = 0; group < groups.count(); ++group) {
            total_ += sent_[group];
            if (is_grid() || sent_[group].bytes() > 0) {
                rows_.push_back(group);
            }
            if (is_grid() || received_[group].bytes() > 0) {
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
        if (is_grid()) {
            grid();
        } else {
            cells(cell_width, cell_height);
        }
        labels(cell_width, cell_height);
        sums(cell_width, cell_height);
    }

private:
    [[nodiscard]] bool is_grid() const noexcept { return groups_.count() > kMostGroups; }

    void grid() {
        HeatMark heat{area_, groups_.count(), groups_.count(), std::vector<float>(bytes_.size()), Target::Kind::kPair, groups_.grouping()};
        const auto scale = 1.0F / static_cast<float>(std::max<std::uint64_t>(1, most_));
        std::ranges::transform(bytes_, heat.shares.begin(), [scale](std::uint64_t bytes) {
            return bytes == 0 ? -1.0F : std::sqrt(static_cast<float>(bytes) * scale);
        });
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
        for (const auto& sent : sent_) {
            most = std::max(most, sent.bytes());
        }
        const bool has_text = height >= 11.0;
        for (std::size_t r = 0; r < rows_.size(); ++r) {
            const auto bytes = sent_[rows_[r]].bytes();
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
                                   size_text(static_cast<double>(received_[columns_[c]].bytes())), Ink::kMuted, Align::kCentre, std::min(10.5, width / 5.0));
            }
        }
        canvas_.scene.text({area_.right() + 6.0, area_.y - 22.0, 70.0, 15.0}, "all", Ink::kMuted, Align::kLeft, 10.5);
    }

    Canvas& canvas_;
    const Groups& groups_;
    GroupMatrix matrix_;                ///< Nothing in a grid.
    std::vector<std::uint64_t> bytes_;  ///< Cells of a grid.
    PairFlow total_;
    std::vector<PairFlow> sent_;      ///< By group.
    std::vector<PairFlow> received_;  ///< By group; nothing in a grid.
    std::vector<std::uint32_t> rows_;
    std::vector<std::uint32_t> columns_;
    std::uint64_t most_ = 0;
    Frame area_;
};

}  // namespace

Scene matrix_of(Canvas canvas, const std::string& title, const std::string& hint) {
    const auto& answer = canvas.answer;
    MatrixPicture picture{canvas, answer.by(grouping_of(answer, canvas.state)), flow_mask_of(answer, canvas.state)};
    const auto total = picture.total();
    if (total.bytes() == 0) {
        return no_flow_fits(std::move(canvas), title);
    }
    canvas.header(title, flows_line(answer, canvas.state, total) + hint);
    picture.draw();
    return std::move(canvas.scene);
}

Scene matrix_view(Canvas canvas) { return matrix_of(std::move(canvas), "How much goes from whom to whom", ""); }

}  // namespace refit::gui
