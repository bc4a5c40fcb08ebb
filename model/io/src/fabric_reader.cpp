// SPDX-License-Identifier: Apache-2.0
#include "fabric_reader.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "refit/quantity.hpp"
#include "refit/suggest.hpp"

namespace refit::io {
namespace {

constexpr const char* kPods = "fabric.domains_per_pod";
constexpr const char* kRatio = "fabric.oversubscription";
constexpr const char* kRails = "fabric.rail_only";
constexpr std::string_view kNics = "fabric.nics.";
constexpr double kMostOversubscribed = 100.0;

std::string number_of(const char* format, double value) {
    std::array<char, 40> text{};
    std::snprintf(text.data(), text.size(), format, value);
    return text.data();
}

/// A decimal number that fills the text.
std::optional<double> number_in(const std::string& text) {
    const bool is_plain = text.find_first_not_of("0123456789.") == std::string::npos;
    double value = 0.0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return is_plain && error == std::errc{} && end == text.data() + text.size() ? std::optional{value} : std::nullopt;
}

/// "2:1", or "2" for short; 1 and a fault where it is neither, or gives a pod more uplinks than NICs.
double read_ratio(DraftReader& reader) {
    if (reader.draft().find(kRatio) == nullptr) {
        return 1.0;
    }
    const auto text = reader.text_of(kRatio, "");
    const auto colon = text.find(':');
    const auto nics = number_in(text.substr(0, colon));
    const auto uplinks = colon == std::string::npos ? std::optional{1.0} : number_in(text.substr(colon + 1));
    const auto refuse = [&](const char* rule, const std::string& why, const std::string& nearest) {
        reader.refuse(ErrorCode::kInvalidInput,
                      rule,
                      std::string{kRatio} + ": '" + text + "' " + why,
                      kRatio,
                      Suggestion{kRatio, nearest, ""});
        return 1.0;
    };
    if (!nics || !uplinks || !(*nics > 0.0) || !(*uplinks > 0.0)) {
        return refuse(
            "ratio-syntax",
            "is no ratio of what the NICs of a pod reach to what its uplinks do, such as 2:1",
            nics && *nics >= 1.0 && *nics <= kMostOversubscribed ? number_of("%.6g:1", *nics) : "2:1");
    }
    const auto ratio = *nics / *uplinks;
    if (ratio < 1.0) {
        return refuse("ratio-range",
                      "gives a pod more uplinks than its NICs can fill; 1:1 is a network that does not limit",
                      "1:1");
    }
    return ratio <= kMostOversubscribed
               ? ratio
               : refuse("ratio-range", "is more than 100:1", number_of("%.0f:1", kMostOversubscribed));
}

void read_pods(DraftReader& reader, FabricSettings& fabric) {
    fabric.oversubscription = read_ratio(reader);
    if (reader.draft().find(kPods) != nullptr) {
        fabric.domains_per_pod = reader.whole_number(kPods, reader.text_of(kPods, ""), kMostGpus, 4);
    } else if (fabric.oversubscription > 1.0) {
        reader.refuse(ErrorCode::kInvalidInput,
                      "missing-field",
                      "'" + std::string{kPods} +
                          "' is missing: how many NVLink domains (nodes of 8, racks) lie under one group "
                          "of leaf switches, whose uplinks are oversubscribed?",
                      kPods,
                      Suggestion{kPods, "4", "for example"});
    }
}

bool read_rails(DraftReader& reader, const std::pair<System, System>& systems) {
    const bool is_rail_only =
        reader.one_of(kRails, "false", {"true", "false"}, ErrorCode::kInvalidInput) == "true";
    const auto& [train, generate] = systems;
    if (is_rail_only && train.gpus_per_node != generate.gpus_per_node) {
        reader.refuse(ErrorCode::kInfeasible,
                      "rails",
                      std::string{kRails} + " = true: a node has " + std::to_string(train.gpus_per_node) +
                          " rails where it trains and " + std::to_string(generate.gpus_per_node) +
                          " where it generates; which of them meet is not known",
                      kRails,
                      Suggestion{kRails, "false", ""});
        return false;
    }
    return is_rail_only;
}

/// Reads the NICs that a draft names by rank.
class NicReader {
public:
    NicReader(DraftReader& reader, const JobSides& job) : reader_{reader}, job_{job} {}

    std::map<std::uint32_t, std::optional<Bandwidth>> run() {
        for (const auto& [name, field] : reader_.draft().fields()) {
            if (name.starts_with(kNics)) {
                read(name, field.text);
            }
        }
        if (job_.train_gpus && job_.generate_gpus && !nics_.empty()) {
            refuse_domains();
        }
        return std::move(nics_);
    }

private:
    void read(const std::string& name, const std::string& text) {
        const auto rank = rank_of(name);
        const auto rate = rate_of(name, text, rank);
        if (!rank) {
            return;
        }
        if (const auto [first, is_new] = names_.emplace(*rank, name); !is_new) {
            reader_.refuse(ErrorCode::kInvalidInput,
                           "same-nic",
                           name + " and " + first->second + " are the NICs of the same GPU",
                           name,
                           Suggestion{"-" + name, first->second, "rename the key"});
            return;
        }
        if (rate) {
            nics_.emplace(*rank, *rate);
        }
    }

    /// Counted over the job. Nothing and a fault where no GPU has this name; nothing as well where counts are
    /// not known.
    std::optional<std::uint32_t> rank_of(const std::string& name) {
        const auto key = name.substr(kNics.size());
        const auto colon = key.find(':');
        const auto side = colon == std::string::npos ? std::string{} : key.substr(0, colon);
        const auto number = key.substr(colon == std::string::npos ? 0 : colon + 1);
        const bool is_number = !number.empty() && number.size() < 10 &&
                               number.find_first_not_of("0123456789") == std::string::npos;
        if (!is_number || (colon != std::string::npos && side != "trainer" && side != "generation")) {
            const std::vector<std::string> sides{"trainer", "generation"};
            const auto usual =
                (side.empty() ? std::string{} : nearest_name(side, sides) + ":") + (is_number ? number : "0");
            reader_.refuse(
                ErrorCode::kInvalidInput,
                "unknown-rank",
                name + ": '" + key + "' names no GPU; write a rank of the job, trainer:N or generation:N",
                name,
                Suggestion{"-" + name, std::string{kNics} + usual, "rename the key"});
            return std::nullopt;
        }
        if (!job_.train_gpus || !job_.generate_gpus) {
            return std::nullopt;
        }
        const auto index = static_cast<std::uint32_t>(std::stoul(number));
        const auto count = side.empty()        ? *job_.train_gpus + *job_.generate_gpus
                           : side == "trainer" ? *job_.train_gpus
                                               : *job_.generate_gpus;
        if (index >= count) {
            reader_.refuse(
                ErrorCode::kInvalidInput,
                "unknown-rank",
                name + ": there are " + std::to_string(count) +
                    (side.empty()        ? " ranks, "
                     : side == "trainer" ? " trainers, "
                                         : " generators, ") +
                    "0 to " + std::to_string(count - 1),
                name,
                Suggestion{"-" + name,
                           std::string{kNics} + (side.empty() ? "" : side + ":") + std::to_string(count - 1),
                           "rename the key"});
            return std::nullopt;
        }
        return side == "generation" ? *job_.train_gpus + index : index;
    }

    /// None inside where the NICs are down; nothing and a fault where the text is no state.
    std::optional<std::optional<Bandwidth>> rate_of(const std::string& name,
                                                    const std::string& text,
                                                    std::optional<std::uint32_t> rank) {
        if (text == "down") {
            return std::optional<Bandwidth>{};
        }
        const bool has_number = text.find_first_of("0123456789") != std::string::npos;
        auto rate = parse_bandwidth(text);
        if (!rate && (!has_number || rate.error().front().rule == "number-range")) {
            reader_.refuse(ErrorCode::kInvalidInput,
                           "unknown-value",
                           name + ": '" + text + "' is neither down nor a rate above zero such as 200Gbit/s",
                           name,
                           Suggestion{name, "down", ""});
            return std::nullopt;
        }
        const auto read = reader_.take(std::move(rate), name);
        if (!read) {
            return std::nullopt;
        }
        return rank ? within_line_rate(name, text, *read, *rank) : std::optional{std::optional{*read}};
    }

    std::optional<std::optional<Bandwidth>> within_line_rate(const std::string& name,
                                                             const std::string& text,
                                                             Bandwidth rate,
                                                             std::uint32_t rank) {
        const auto& system = rank < *job_.train_gpus ? job_.systems.first : job_.systems.second;
        const auto whole = system.nic_per_gpu();
        // Texts of rates are rounded.
        if (rate.bytes_per_second() > whole.bytes_per_second() * 1.001) {
            reader_.refuse(ErrorCode::kInfeasible,
                           "nic-rate",
                           name + " = " + text + ": the NICs of a GPU of " + system.name + " reach " +
                               line_rate(whole) + " together",
                           name,
                           Suggestion{name, line_rate(whole), ""});
            return std::nullopt;
        }
        return std::optional{std::min(rate, whole)};
    }

    static std::string line_rate(Bandwidth rate) {
        return number_of("%.6gGbit/s", rate.bytes_per_second() * 8e-9);
    }

    /// What no NIC reaches takes no part.
    void refuse_domains() {
        const auto& [train, generate] = job_.systems;
        const Cluster cluster{train, generate, *job_.train_gpus, *job_.generate_gpus, job_.placement};
        std::vector<std::uint32_t> working(cluster.domains(), 0);
        for (std::uint32_t rank = 0; rank < cluster.gpus(); ++rank) {
            const auto found = nics_.find(rank);
            working[cluster.domain_of(RankId{rank}).index()] +=
                found == nics_.end() || found->second ? 1U : 0U;
        }
        for (std::uint32_t rank = 0; cluster.domains() > 1 && rank < cluster.gpus(); ++rank) {
            const auto domain = cluster.domain_of(RankId{rank}).index();
            if (working[domain] > 0) {
                continue;
            }
            working[domain] = 1;
            const auto& name = names_.at(rank);
            reader_.refuse(ErrorCode::kInfeasible,
                           "cut-off",
                           name + " = down: then no NIC of NVLink domain " + std::to_string(domain) +
                               " works, and nothing leaves or enters it",
                           name,
                           Suggestion{name, line_rate(cluster.system_of(RankId{rank}).nic_per_gpu()), ""});
            nics_.erase(rank);
        }
    }

    DraftReader& reader_;
    const JobSides& job_;
    std::map<std::uint32_t, std::optional<Bandwidth>> nics_;
    std::map<std::uint32_t, std::string> names_;  ///< By rank: the field.
};

}  // namespace

FabricSettings read_fabric(DraftReader& reader, const JobSides& job) {
    FabricSettings fabric;
    read_pods(reader, fabric);
    fabric.is_rail_only = read_rails(reader, job.systems);
    fabric.nics = NicReader{reader, job}.run();
    return fabric;
}

}  // namespace refit::io
