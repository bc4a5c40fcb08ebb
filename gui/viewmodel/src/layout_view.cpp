// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "canvas.hpp"
#include "refit/holdings.hpp"
#include "refit/quantity.hpp"

namespace refit::gui {
namespace {

constexpr double kMeshGap = 36.0;

/// Bytes of every rank before or after the refit, of all weights or of one class.
struct Holdings {
    std::vector<double> bytes;           ///< By rank.
    std::vector<std::uint8_t> has_replica;  ///< Somebody else on the side holds the same.
    double most_train = 0.0;
    double most_generate = 0.0;
};

void add_shards(const Distribution& distribution, std::uint32_t first, double per_element, Holdings& held, bool is_chosen) {
    for (const auto& shard : distribution.shards()) {
        const auto bytes = static_cast<double>(shard.elements()) * per_element;
        for (const auto member : shard.members) {
            held.bytes[first + member] += bytes;
            if (is_chosen && shard.members.size() > 1) {
                held.has_replica[first + member] = 1;
            }
        }
    }
}

Holdings holdings_of_all(const Answer& answer, std::optional<std::uint32_t> chosen) {
    const auto ranks = answer.scenario.cluster.gpus();
    Holdings held{std::vector<double>(ranks, 0.0), std::vector<std::uint8_t>(ranks, 0), 0.0, 0.0};
    const auto& workload = answer.workload;
    for (std::uint32_t number = 0; number < workload.classes().size(); ++number) {
        if (chosen && number != *chosen) {
            continue;
        }
        const auto& one = workload.classes()[number];
        for (const auto& slice : one.slices) {
            const auto per_element = static_cast<double>(one.element_bytes()) * slice.layers;
            if (!slice.is_copy) {
                add_shards(one.source, slice.train_stage * workload.trainers_per_stage(), per_element, held, chosen.has_value());
            }
            add_shards(one.destinations[slice.generate_stage], answer.train_gpus(), per_element, held, chosen.has_value());
        }
    }
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        auto& most = rank < answer.train_gpus() ? held.most_train : held.most_generate;
        most = std::max(most, held.bytes[rank]);
    }
    return held;
}

/// The class that carries most bytes.
std::uint32_t largest_class(const Workload& workload) {
    const auto classes = workload.classes();
    std::uint32_t best = 0;
    for (std::uint32_t i = 1; i < classes.size(); ++i) {
        if (classes[i].parameter.bytes() > classes[best].parameter.bytes()) {
            best = i;
        }
    }
    return best;
}

/// Ranks that a target means, and those that they exchange bytes with.
struct Focus {
    std::set<std::uint32_t> own;
    std::set<std::uint32_t> partners;
};

Focus focus_of(const Answer& answer, const Target& target) {
    Focus focus;
    if (target.kind == Target::Kind::kGroup || target.kind == Target::Kind::kPair) {
        const auto& groups = answer.by(target.level);
        const auto& from = groups.members(std::min(target.a, groups.count() - 1));
        focus.own.insert(from.begin(), from.end());
        if (target.kind == Target::Kind::kPair) {
            const auto& to = groups.members(std::min(target.b, groups.count() - 1));
            focus.partners.insert(to.begin(), to.end());
            return focus;
        }
    } else if (target.kind == Target::Kind::kPort) {
        const auto& ranks = answer.by(target.level).members(target.b);
        focus.own.insert(ranks.begin(), ranks.end());
    }
    if (!focus.own.empty() && focus.own.size() < answer.scenario.cluster.gpus() / 4 && answer.a.flows) {
        const auto& flows = *answer.a.flows;
        for (std::size_t i = 0; i < flows.size(); ++i) {
            if (focus.own.contains(flows.source[i])) {
                focus.partners.insert(flows.destination[i]);
            } else if (focus.own.contains(flows.destination[i])) {
                focus.partners.insert(flows.source[i]);
            }
        }
    }
    return focus;
}

/// The ranks of one side as rows of cells.
class Mesh {
public:
    Mesh(Canvas& canvas, const Holdings& held, const Focus& focus, const std::vector<float>& busy)
        : canvas_{canvas}, held_{held}, focus_{focus}, busy_{busy} {}

    void draw(bool is_train, const Frame& frame) {
        const auto& answer = canvas_.answer;
        const auto& stages = answer.by(Grouping::kStage);
        const auto first = is_train ? 0U : stages.train_count();
        const auto last = is_train ? stages.train_count() : stages.count();
        title(is_train, frame);
        std::size_t widest = 1;
        for (auto group = first; group < last; ++group) {
            widest = std::max(widest, stages.members(group).size());
        }
        const auto rows = last - first;
        double name = 0.0;
        for (auto group = first; group < last; ++group) {
            name = std::max(name, text_width(stages.name(group), 11.0) + 8.0);
        }
        const auto label = std::min(124.0, std::max(std::min(name, frame.width * 0.4), frame.width * 0.27));
        // Long rows break, so that cells stay square where there is room.
        const auto top = frame.width < kNarrow / 2.0 ? 58.0 : 44.0;
        const Frame area{frame.x + label, frame.y + top, frame.width - label, frame.height - top};
        std::size_t lines = 1;
        for (std::size_t more = 2; more <= widest; ++more) {
            const bool is_narrow = area.width / static_cast<double>(widest) * static_cast<double>(lines) < 26.0;
            if (is_narrow && widest % more == 0 && area.height / static_cast<double>(rows * more) >= 11.0) {
                lines = more;
            }
        }
        const auto columns = (widest + lines - 1) / lines;
        const auto step_x = std::min(120.0, area.width / static_cast<double>(columns));
        const auto row_height = std::min(64.0 * static_cast<double>(lines), (area.height - 2.0) / static_cast<double>(rows));
        const auto every = static_cast<std::uint32_t>(std::ceil(kLeastLabel / row_height));
        for (auto group = first; group < last; ++group) {
            const auto y = area.y + static_cast<double>(group - first) * row_height;
            const auto gap = rows > 1 && row_height > 14.0 ? 3.0 : 0.5;
            row(group, {area.x, y, step_x * static_cast<double>(columns), row_height - gap}, columns, lines);
            if ((group - first) % every == 0) {
                row_label(group, {frame.x, y, label - 8.0, std::max(kLeastLabel, row_height - gap)});
            }
        }
    }

private:
    static constexpr double kLeastLabel = 11.0;  ///< Height of a row's name.
    static constexpr double kThinRow = 8.0;  ///< Frames as strong as elsewhere would hide its cells.

    void title(bool is_train, const Frame& frame) {
        const auto& answer = canvas_.answer;
        const auto& scenario = answer.scenario;
        const auto& system = is_train ? scenario.cluster.train_system() : scenario.cluster.generate_system();
        const auto gpus = is_train ? scenario.train.gpus : scenario.generate.gpus;
        const auto* what = is_train ? "Trainers, before the refit" : "Generators, after it";
        canvas_.scene.add(RectMark{{frame.x, frame.y + 2.0, 4.0, 34.0}, {is_train ? Ink::kTrain : Ink::kGenerate}, {}, 1.0, Pattern::kSolid, 1.0});
        const auto room = frame.width - 12.0;
        canvas_.scene.text({frame.x + 12.0, frame.y, room, 19.0}, longest({what, is_train ? "Trainers, before" : "Generators, after", is_train ? "Trainers" : "Generators"}, room, 14.5), Ink::kText, Align::kLeft, 13.5, true);
        const auto machines = std::to_string(gpus) + " x " + system.gpu;
        const auto layout = is_train ? describe(scenario.train) : describe(scenario.generate);
        if (frame.width < kNarrow / 2.0) {
            canvas_.scene.text({frame.x + 12.0, frame.y + 19.0, room, 16.0}, machines, Ink::kMuted, Align::kLeft, 11.0);
            canvas_.scene.text({frame.x + 12.0, frame.y + 34.0, room, 16.0}, layout, Ink::kMuted, Align::kLeft, 11.0);
            return;
        }
        const auto line = machines + ", " + layout + (is_train ? "; " + describe_split(scenario.train.stage_layers) : "");
        canvas_.scene.text({frame.x + 12.0, frame.y + 19.0, room, 17.0}, longest({line, machines + ", " + layout}, room, 11.5), Ink::kMuted, Align::kLeft, 11.5);
    }

    void row_label(std::uint32_t group, const Frame& frame) {
        const auto& stages = canvas_.answer.by(Grouping::kStage);
        const auto& members = stages.members(group);
        double bytes = 0.0;
        for (const auto rank : members) {
            bytes += held_.bytes[rank];
        }
        const auto size = size_text(bytes / static_cast<double>(members.size()));
        if (frame.height >= 30.0) {
            canvas_.scene.text({frame.x, frame.y + frame.height / 2.0 - 16.0, frame.width, 16.0}, stages.name(group), Ink::kText, Align::kRight, 12.0);
            canvas_.scene.text({frame.x, frame.y + frame.height / 2.0, frame.width, 15.0}, size + " each", Ink::kMuted, Align::kRight, 11.0);
        } else {
            const auto both = stages.name(group) + " " + size;
            canvas_.scene.text(frame, text_width(both, 11.0) <= frame.width ? both : stages.name(group), Ink::kText, Align::kRight, 11.0);
        }
    }

    void row(std::uint32_t group, const Frame& frame, std::size_t columns, std::size_t lines) {
        const auto& members = canvas_.answer.by(Grouping::kStage).members(group);
        const auto width = frame.width / static_cast<double>(columns);
        const auto height = frame.height / static_cast<double>(lines);
        for (std::size_t i = 0; i < members.size(); ++i) {
            const auto line = i / columns;
            cell(members[i], {frame.x + static_cast<double>(i % columns) * width, frame.y + static_cast<double>(line) * height, width, height});
        }
        domains(members, frame, columns, width, height);
    }

    void cell(std::uint32_t rank, const Frame& frame) {
        const auto train_gpus = canvas_.answer.train_gpus();
        const bool is_train = rank < train_gpus;
        const auto most = is_train ? held_.most_train : held_.most_generate;
        const auto overall = std::max(held_.most_train, held_.most_generate);
        const auto bytes = held_.bytes[rank];
        auto share = overall > 0.0 ? bytes / overall : 0.0;
        if (!busy_.empty()) {
            share = static_cast<double>(busy_[rank]);
        }
        const auto inner = Frame{frame.x + 0.5, frame.y + 0.5, frame.width - 1.0, frame.height - 1.0};
        const bool is_replica = held_.has_replica[rank] != 0 && busy_.empty();
        const auto paint = bytes > 0.0 || !busy_.empty() ? heat_paint(0.06 + 0.94 * share) : Paint{Ink::kPanel};
        const auto mark = canvas_.scene.add(RectMark{inner, paint, {}, 1.0, is_replica && inner.width > 7.0 && inner.height > 7.0 ? Pattern::kHatch : Pattern::kSolid, 1.5});
        if (focus_.own.contains(rank) || focus_.partners.contains(rank)) {
            const auto ink = focus_.own.contains(rank) ? Ink::kAccent : Ink::kCritical;
            canvas_.scene.add(RectMark{inner, {}, {ink}, focus_.own.contains(rank) ? 3.0 : 2.0, Pattern::kSolid, 1.5, !focus_.own.contains(rank)});
        }
        if (frame.width >= 23.0 && frame.height >= 13.0) {
            const auto label = frame.width >= 42.0 ? short_rank(rank, train_gpus) : std::to_string(is_train ? rank : rank - train_gpus);
            canvas_.scene.add(TextMark{inner, label, {Ink::kText}, Align::kCentre, frame.width >= 42.0 && frame.height >= 30.0 ? 13.0 : 10.0, false, paint});
        }
        const auto part = most > 0.0 ? bytes / most : 0.0;
        canvas_.element({Target::Kind::kGroup, Grouping::kRank, rank, 0},
                        (is_train ? "trainer " : "generator ") + std::to_string(is_train ? rank : rank - train_gpus) + ", holds " +
                            format_bytes(Bytes{static_cast<std::uint64_t>(bytes)}) + ", " + percent(part) + " of the most on its side" +
                            (is_replica ? ", others hold the same" : ""),
                        inner,
                        {mark});
    }

    /// Borders of NVLink domains within a row.
    void domains(const std::vector<std::uint32_t>& members, const Frame& frame, std::size_t columns, double width, double height) {
        const auto& domains = canvas_.answer.by(Grouping::kDomain);
        std::size_t begin = 0;
        for (std::size_t i = 1; i <= members.size(); ++i) {
            const bool ends = i == members.size() || domains.of_rank(members[i]) != domains.of_rank(members[begin]) || i % columns == 0;
            if (!ends) {
                continue;
            }
            const auto line = begin / columns;
            const Frame border{frame.x + static_cast<double>(begin % columns) * width, frame.y + static_cast<double>(line) * height,
                               static_cast<double>(i - begin) * width, height};
            canvas_.scene.add(RectMark{border, {}, {Ink::kOutline}, height < kThinRow ? 0.5 : 1.4, Pattern::kSolid, height < kThinRow ? 0.0 : 2.5});
            begin = i;
        }
    }

    Canvas& canvas_;
    const Holdings& held_;
    const Focus& focus_;
    const std::vector<float>& busy_;
};

/// Interval of a box along an axis, as shares of the whole.
std::pair<double, double> shares_of(const Box& box, std::size_t axis, std::uint64_t length) {
    const auto& interval = box.axes()[axis];
    return {static_cast<double>(interval.begin) / static_cast<double>(length), static_cast<double>(interval.end) / static_cast<double>(length)};
}

/// The axes along which a distribution is cut.
std::set<std::size_t> cut_axes(const Distribution& distribution) {
    std::set<std::size_t> axes;
    for (const auto& shard : distribution.shards()) {
        for (const auto& box : shard.boxes) {
            for (std::size_t axis = 0; axis < distribution.shape().size(); ++axis) {
                if (box.axes()[axis].length() < distribution.shape()[axis]) {
                    axes.insert(axis);
                }
            }
        }
    }
    return axes;
}

/// One tensor with the cuts of both sides: its overlaps are the messages.
class TensorPicture {
public:
    TensorPicture(Canvas& canvas, std::uint32_t number, const Focus& focus)
        : canvas_{canvas}, one_{canvas.answer.workload.classes()[number]}, number_{number}, focus_{focus} {}

    void draw(const Frame& frame) {
        const auto& slice = one_.slices.front();
        const auto& destination = one_.destinations[slice.generate_stage];
        const auto trains = cut_axes(one_.source);
        const auto generates = cut_axes(destination);
        choose_axes(trains, generates);
        const auto top = 21.0 + caption(frame, trains, generates) + 20.0;
        const Frame area{frame.x + 96.0, frame.y + top, frame.width - 97.0, frame.height - top - 24.0};
        canvas_.scene.add(RectMark{area, {Ink::kPanel}});
        const auto first = slice.train_stage * canvas_.answer.workload.trainers_per_stage();
        shards(one_.source, first, area, true);
        shards(destination, canvas_.answer.train_gpus(), area, false);
        canvas_.scene.text({area.x, area.bottom() + 4.0, area.width, 16.0}, axis_text(x_axis_, "across"), Ink::kMuted, Align::kCentre, 11.0);
        if (area.height >= 44.0) {
            canvas_.scene.text({frame.x, area.y, 88.0, area.height}, axis_text(y_axis_, "down"), Ink::kMuted, Align::kRight, 11.0);
        }
        canvas_.element({Target::Kind::kTensor, Grouping::kRank, number_, 0}, "tensor " + one_.parameter.name, area);
    }

private:
    void choose_axes(const std::set<std::size_t>& trains, const std::set<std::size_t>& generates) {
        const auto axes = one_.source.shape().size();
        y_axis_ = trains.empty() ? 0 : *trains.begin();
        x_axis_ = y_axis_ == 0 && axes > 1 ? axes - 1 : 0;
        for (const auto axis : generates) {
            if (axis != y_axis_) {
                x_axis_ = axis;
            }
        }
        // Where both cut the same axis, it runs across: there is more room.
        if (generates.empty() || (generates.size() == 1 && generates.contains(y_axis_))) {
            std::swap(x_axis_, y_axis_);
        }
        if (axes == 1) {
            x_axis_ = y_axis_ = 0;
        }
    }

    [[nodiscard]] std::string axis_text(std::size_t axis, const std::string& where) const {
        if (one_.source.shape().size() == 1 && where == "down") {
            return {};
        }
        const bool is_expert = one_.parameter.is_expert() && axis == 0;
        return std::to_string(one_.source.shape()[axis]) + (is_expert ? " experts" : axis == one_.source.shape().size() - 1 ? " columns" : " rows");
    }

    /// Returns the height of its lines below the title.
    double caption(const Frame& frame, const std::set<std::size_t>& trains, const std::set<std::size_t>& generates) {
        std::string shape;
        for (const auto length : one_.source.shape()) {
            shape += (shape.empty() ? "" : " x ") + std::to_string(length);
        }
        const auto layers = one_.logical_tensors();
        const auto name = short_name(one_.parameter.name);
        canvas_.scene.text({frame.x, frame.y, frame.width, 19.0}, longest({name + "   [" + shape + "]", name}, frame.width, 14.5), Ink::kText, Align::kLeft, frame.width < kNarrow ? 12.0 : 13.5, true);
        const auto copies = one_.destinations.front().shards().empty() ? 1 : one_.destinations.front().shards().front().members.size();
        auto line = (frame.width < kNarrow ? "[" + shape + "], " : std::string{}) + (layers > 1 ? std::to_string(layers) + " layers, " : std::string{}) + size_text(one_.parameter.bytes().as_double()) + ".  ";
        line += trains.empty() ? "Each trainer of a stage holds all of it" : "Filled bands: what each trainer of stage " + std::to_string(one_.slices.front().train_stage) + " holds";
        line += generates.empty() ? "; every generator wants all of it." : ".  Dashed frames: what each generator wants; each overlap is a message.";
        line += copies > 1 ? "  " + std::to_string(copies) + " generators want the same part." : "";
        return canvas_.paragraph({frame.x, frame.y + 20.0, frame.width, frame.width < kNarrow && frame.height > 170.0 ? 62.0 : 31.0}, line, Ink::kMuted, 11.5);
    }

    [[nodiscard]] Frame place(const Box& box, const Frame& area) const {
        const auto& shape = one_.source.shape();
        const auto [x0, x1] = shares_of(box, x_axis_, shape[x_axis_]);
        const auto [y0, y1] = shape.size() == 1 ? std::pair{0.0, 1.0} : shares_of(box, y_axis_, shape[y_axis_]);
        return {area.x + x0 * area.width, area.y + y0 * area.height, (x1 - x0) * area.width, (y1 - y0) * area.height};
    }

    /// "T16 +7": the first rank that has a shard, and how many more have the same.
    [[nodiscard]] std::string shard_name(const Shard& shard, std::uint32_t first) const {
        return short_rank(first + shard.members.front(), canvas_.answer.train_gpus()) + (shard.members.size() > 1 ? " +" + std::to_string(shard.members.size() - 1) : "");
    }

    [[nodiscard]] bool has_focus(const Shard& shard, std::uint32_t first) const {
        return std::ranges::any_of(shard.members, [&](std::uint32_t member) { return focus_.own.contains(first + member); });
    }

    void shards(const Distribution& distribution, std::uint32_t first, const Frame& area, bool is_train) {
        bool names_fit = true;
        for (const auto& shard : distribution.shards()) {
            const auto frame = place(shard.boxes.front(), area);
            names_fit = names_fit && frame.width >= text_width(shard_name(shard, first), 10.0) && (!is_train || frame.height >= 12.0);
        }
        std::size_t index = 0;
        for (const auto& shard : distribution.shards()) {
            for (const auto& box : shard.boxes) {
                const auto frame = place(box, area);
                is_train ? held(frame, has_focus(shard, first), index) : wanted(frame, has_focus(shard, first));
                if (names_fit && is_train) {
                    canvas_.scene.text({frame.x + 4.0, frame.y, std::min(80.0, frame.width - 6.0), std::min(frame.height, 18.0)}, shard_name(shard, first), Ink::kText, Align::kLeft, 10.5);
                } else if (names_fit && frame.y < area.y + 1.0) {
                    canvas_.scene.text({frame.x, area.y - 16.0, frame.width, 14.0}, shard_name(shard, first), Ink::kGenerate, Align::kCentre, 10.0);
                }
            }
            ++index;
        }
        if (!names_fit) {
            const auto names = shard_name(distribution.shards().front(), first) + " to " + shard_name(distribution.shards().back(), first);
            is_train ? canvas_.scene.text({area.x - 96.0, area.y, 90.0, 14.0}, names, Ink::kTrain, Align::kRight, 10.0)
                     : canvas_.scene.text({area.x, area.y - 16.0, area.width, 14.0}, names + ", from left to right", Ink::kGenerate, Align::kLeft, 10.5);
        }
    }

    void held(const Frame& frame, bool is_focus, std::size_t index) {
        canvas_.scene.add(RectMark{frame, is_focus ? Paint{Ink::kAccent, 0.8} : Paint{Ink::kTrain, index % 2 == 0 ? 0.55 : 0.3}});
    }
    void wanted(const Frame& frame, bool is_focus) {
        canvas_.scene.add(RectMark{frame, is_focus ? Paint{Ink::kAccent, 0.35} : Paint{}, {Ink::kGenerate}, is_focus ? 3.0 : 1.2, Pattern::kSolid, 0.0, true});
    }

    Canvas& canvas_;
    const WorkloadClass& one_;
    std::uint32_t number_;
    const Focus& focus_;
    std::size_t x_axis_ = 0;
    std::size_t y_axis_ = 0;
};

constexpr double kTensorGap = 18.0;
constexpr double kHint = 16.0;

double tensor_height_of(double height) { return std::clamp(height * 0.36, 130.0, 300.0); }

/// Whether rows of ranks above a tensor's picture are no thinner than can be told apart.
bool has_room_for_both(const Groups& stages, double height) {
    constexpr double kTitle = 58.0;
    constexpr double kLeastRow = 6.0;
    const auto rows = std::max(stages.train_count(), stages.count() - stages.train_count());
    return height - tensor_height_of(height) - kTensorGap - kTitle >= kLeastRow * static_cast<double>(rows);
}

}  // namespace

Scene layout_view(Canvas canvas) {
    const auto& answer = canvas.answer;
    const auto& state = canvas.state;
    const auto classes = static_cast<std::uint32_t>(answer.workload.classes().size());
    const bool is_class_chosen = state.tensor < classes;
    const auto held = holdings_of_all(answer, is_class_chosen ? std::optional{state.tensor} : std::nullopt);
    const auto focus = focus_of(answer, state.selection);
    const auto busy = state.now ? busy_at(answer.a.course, *state.now, answer.scenario.cluster.gpus()) : std::vector<float>{};
    canvas.header("Who holds what", state.now ? "playing at " + time_text(*state.now) + " of " + time_text(answer.a.course.seconds()) + ": how busy the busiest port of each GPU is"
                                              : "a cell is a GPU, a frame an NVLink domain; " + headline_of(answer.a));
    auto& body = canvas.body;
    const auto most = std::max(held.most_train, held.most_generate);
    auto x = state.now ? canvas.scale("idle", "full rate", body.x, body.y)
                       : canvas.scale("0", size_text(most) + (is_class_chosen ? " of this tensor on a GPU" : " of weights on a GPU"), body.x, body.y);
    if (std::ranges::find(held.has_replica, 1) != held.has_replica.end() && busy.empty()) {
        x = canvas.key({{"others hold the same", heat_paint(0.6), Pattern::kHatch}}, x, body.y);
    }
    if (!focus.own.empty()) {
        canvas.key({{"selected", {Ink::kAccent}}, {"exchanges bytes with it", {Ink::kCritical}}}, x, body.y);
    }
    body.y += 26.0;
    body.height -= 26.0;
    const bool has_tensor = is_class_chosen || has_room_for_both(answer.by(Grouping::kStage), body.height);
    const auto tensor_height = has_tensor ? tensor_height_of(body.height) : kHint;
    const auto mesh_height = body.height - tensor_height - kTensorGap;
    const auto half = (body.width - kMeshGap) / 2.0;
    Mesh mesh{canvas, held, focus, busy};
    mesh.draw(true, {body.x, body.y, half, mesh_height});
    mesh.draw(false, {body.x + half + kMeshGap, body.y, half, mesh_height});
    const auto middle = body.x + half + kMeshGap / 2.0;
    canvas.scene.add(LineMark{{{middle - 9.0, body.y + 22.0}, {middle + 7.0, body.y + 22.0}}, {Ink::kMuted}, 2.0});
    canvas.scene.add(LineMark{{{middle + 2.0, body.y + 16.0}, {middle + 8.0, body.y + 22.0}, {middle + 2.0, body.y + 28.0}}, {Ink::kMuted}, 2.0});
    const Frame rest{body.x, body.bottom() - tensor_height, body.width, tensor_height};
    if (has_tensor) {
        TensorPicture{canvas, is_class_chosen ? state.tensor : largest_class(answer.workload), focus}.draw(rest);
    } else {
        canvas.scene.text(rest, longest({"A larger view also shows how the largest tensor is cut; one that is chosen is always shown", "A larger view also shows a tensor"}, rest.width), Ink::kMuted, Align::kLeft, 11.0);
    }
    return std::move(canvas.scene);
}

}  // namespace refit::gui
