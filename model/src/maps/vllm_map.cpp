// SPDX-License-Identifier: Apache-2.0
// How vLLM stores what its loaders take from a Hugging Face checkpoint.
#include "composition.hpp"

namespace refit::maps {
namespace {

constexpr const char* kNotDivisible = "not-divisible";
constexpr const char* kFusedPart = "a-fused-part-not-divisible-by-tp";

LocalTensor part_or_refuse(const LocalTensor& tensor, std::size_t axis, std::uint64_t ways, std::uint64_t index, const char* rule) {
    require(tensor.shape()[axis] % ways == 0, rule);
    return tensor.part(axis, ways, index);
}

/// The part of `heads` heads along dim 0 for rank t: its own where tp divides them, else a head shared by
/// tp / heads consecutive ranks.
LocalTensor head_part(const LocalTensor& tensor, std::uint64_t heads, std::uint64_t tp, std::uint64_t t) {
    if (heads >= tp) {
        require(heads % tp == 0, kNotDivisible);
        return part_or_refuse(tensor, 0, tp, t, kNotDivisible);
    }
    require(tp % heads == 0, kNotDivisible);
    return part_or_refuse(tensor, 0, heads, t / (tp / heads), kNotDivisible);
}

LocalTensor qkv(const Question& question, std::uint64_t tp, std::uint64_t t) {
    const auto heads = question.number("heads");
    const auto kv_heads = question.number("kv_heads");
    require(heads % tp == 0, kNotDivisible);
    Tensors bands;
    if (question.is("fused-checkpoint")) {
        const auto rows = question.number("head_dim");
        const auto value_rows = question.number_or("v_head_dim", rows);
        bands = segments(question.input(0), 0, {heads * rows, kv_heads * rows, kv_heads * value_rows});
    } else {
        bands = {question.input(0), question.input(1), question.input(2)};
    }
    Tensors parts{part_or_refuse(bands[0], 0, tp, t, kNotDivisible), head_part(bands[1], kv_heads, tp, t), head_part(bands[2], kv_heads, tp, t)};
    if (question.is("with-indexer")) {
        parts.push_back(head_part(question.input(3), question.number("index_heads"), tp, t));
        parts.push_back(question.input(4));
    }
    return joined(parts);
}

LocalTensor gate_up(const Question& question, std::uint64_t tp, std::uint64_t t) {
    if (question.is("fused-checkpoint")) {
        const auto ffn = question.number("ffn");
        return parts_of(segments(question.input(0), 0, {ffn, ffn}), tp, t, kFusedPart);
    }
    return parts_of({question.input(0), question.input(1)}, tp, t, kFusedPart);
}

LocalTensor vocabulary(const Question& question, std::uint64_t tp, std::uint64_t t) {
    const auto table = question.input(0);
    const auto multiple = question.number_or("pad_to", 64);
    const auto padded = (table.shape()[0] + multiple - 1) / multiple * multiple;
    require(padded % tp == 0, kNotDivisible);
    return table.padded(0, padded).part(0, tp, t);
}

/// With one state group, B and C go to every rank whole.
LocalTensor mamba(const Question& question, std::uint64_t tp, std::uint64_t t) {
    const auto groups = question.number("mamba_num_groups");
    require(question.number("mamba_num_heads") % tp == 0, "heads-not-divisible-by-tp");
    require(groups % tp == 0 || groups == 1, "kv-heads-and-tp");
    const bool is_convolution = question.is("conv1d");
    const auto cut = segments(question.input(0), 0, mamba_segments(question, is_convolution));
    const std::size_t first_state = is_convolution ? 1 : 2;
    Tensors parts;
    for (std::size_t i = 0; i < cut.size(); ++i) {
        const bool is_state = i == first_state || i == first_state + 1;
        parts.push_back(is_state && groups % tp != 0 ? cut[i] : part_or_refuse(cut[i], 0, tp, t, kNotDivisible));
    }
    return joined(parts);
}

LocalTensor delta_net(const Question& question, std::uint64_t tp, std::uint64_t t) {
    if (question.is("interleaved")) {
        return part_or_refuse(question.input(0), 0, tp, t, kFusedPart);
    }
    if (question.is("-ba")) {
        return parts_of({question.input(0), question.input(1)}, tp, t, kFusedPart);
    }
    auto parts = segments(question.input(0), 0, delta_net_segments(question));
    if (!question.is("conv1d")) {
        parts.push_back(question.input(1));
    }
    return parts_of(parts, tp, t, kFusedPart);
}

/// What vLLM derives from kv_b: W_UV [head, rank, value] or W_UK_T [head, nope, rank].
LocalTensor absorbed(const Question& question, std::uint64_t tp, std::uint64_t t) {
    const auto nope = question.number("qk_nope_head_dim");
    const auto value = question.number("v_head_dim");
    const auto heads = question.number("heads");
    const auto local = part_or_refuse(question.input(0), 0, tp, t, kNotDivisible);
    Tensors matrices;
    for (std::uint64_t head = 0; head < heads / tp; ++head) {
        const auto parts = segments(local.part(0, heads / tp, head), 0, {nope, value});
        matrices.push_back(question.is("w-uv") ? parts[1].transposed(0, 1) : parts[0]);
    }
    return LocalTensor::stack(matrices);
}

struct ExpertShare {
    std::vector<std::uint64_t> experts;  ///< Held by the rank, in order.
    std::uint64_t ways = 1;              ///< Ranks that cut each of them.
    std::uint64_t index = 0;
};

/// Without EP experts are cut over all of tp x dp; with it each rank holds whole ones: linear placement gives the first
/// ranks one more, round robin needs expert groups; redundant experts repeat the first.
ExpertShare share_of(const Question& question, std::uint64_t rank) {
    const auto experts = question.number("experts");
    const auto ep = question.number_or("ep", 1);
    ExpertShare share;
    if (ep == 1) {
        share.ways = question.number_or("tp", 1) * question.number_or("dp", 1);
        share.index = rank % share.ways;
        for (std::uint64_t expert = 0; expert < experts; ++expert) {
            share.experts.push_back(expert);
        }
        return share;
    }
    const auto physical = experts + question.number_or("redundant_experts", 0);
    require(!question.is("gptoss") || physical % ep == 0, "shapes-do-not-fit");
    const auto slot = rank % ep;
    if (question.text_or("expert_placement", "linear") == "round_robin" && question.number_or("num_expert_group", 1) > 1) {
        for (auto expert = slot; expert < physical; expert += ep) {
            share.experts.push_back(expert % experts);
        }
        return share;
    }
    const auto base = physical / ep;
    const auto extra = physical % ep;
    const auto first = slot * base + std::min(slot, extra);
    for (auto expert = first; expert < first + base + (slot < extra ? 1 : 0); ++expert) {
        share.experts.push_back(expert % experts);
    }
    return share;
}

/// gpt-oss keeps gate and up interleaved; its w2 bias counts once, so only the first rank has it.
LocalTensor gptoss_expert(const Question& question, std::uint64_t expert, const ExpertShare& share) {
    constexpr const char* kRule = "ffn-not-divisible-by-tp";
    auto matrix = expert_slice(question.input(0), expert);
    if (question.is("bias")) {
        if (question.is("w2")) {
            return share.index == 0 ? matrix : LocalTensor::padding(matrix.shape());
        }
        return part_or_refuse(matrix, 0, share.ways, share.index, kRule);
    }
    matrix = matrix.transposed(0, 1);
    return part_or_refuse(matrix, question.is("w2") ? 1 : 0, share.ways, share.index, kRule);
}

LocalTensor expert_matrix(const Question& question, std::uint64_t expert, const ExpertShare& share) {
    constexpr const char* kRule = "ffn-not-divisible-by-tp";
    if (question.is("gptoss")) {
        return gptoss_expert(question, expert, share);
    }
    const bool is_second = question.is("w2");
    if (question.is("fused")) {
        const auto ffn = question.number("ffn");
        auto matrix = expert_slice(question.input(0), expert);
        if (matrix.shape()[0] != (is_second ? question.number("hidden") : 2 * ffn)) {
            matrix = matrix.transposed(0, 1);
        }
        return is_second ? part_or_refuse(matrix, 1, share.ways, share.index, kRule)
                         : parts_of(segments(matrix, 0, {ffn, ffn}), share.ways, share.index, kRule);
    }
    if (is_second) {
        return part_or_refuse(question.input(expert), 1, share.ways, share.index, kRule);
    }
    if (question.number_or("gated", 1) == 0) {
        return part_or_refuse(question.input(expert), 0, share.ways, share.index, kRule);
    }
    const auto gate = question.input(2 * expert);
    const auto up = question.input(2 * expert + 1);
    return question.is("swapped") ? parts_of({up, gate}, share.ways, share.index, kRule)
                                  : parts_of({gate, up}, share.ways, share.index, kRule);
}

LocalTensor experts(const Question& question, std::uint64_t rank) {
    const auto share = share_of(question, rank);
    Tensors local;
    for (const auto expert : share.experts) {
        local.push_back(expert_matrix(question, expert, share));
    }
    return LocalTensor::stack(local);
}

bool is_cut_by_rows(const Question& question) {
    return question.begins("column") || question.kind() == "head-vector" || question.kind() == "mamba-A" ||
           question.kind() == "mamba-norm" || question.kind() == "mla-q-b" || question.kind() == "mla-kv-b";
}

}  // namespace

LocalTensor vllm_rank(const Question& question, std::uint64_t rank) {
    const auto tp = question.number_or("tp", 1);
    const auto t = rank % tp;
    if (question.begins("experts-")) {
        return experts(question, rank);
    }
    if (question.begins("qkv") || question.begins("kv-replicated-qkv")) {
        return qkv(question, tp, t);
    }
    if (question.begins("gate-up")) {
        return gate_up(question, tp, t);
    }
    if (question.kind() == "vocab" || question.kind() == "tied-embedding") {
        return vocabulary(question, tp, t);
    }
    if (is_cut_by_rows(question)) {
        return part_or_refuse(question.input(0), 0, tp, t, kNotDivisible);
    }
    if (question.begins("mamba-")) {
        return mamba(question, tp, t);
    }
    if (question.begins("gdn-")) {
        return delta_net(question, tp, t);
    }
    if (question.begins("mla-absorbed")) {
        return absorbed(question, tp, t);
    }
    if (question.kind() == "mla-qkv-a-fused") {
        return joined({question.input(0), question.input(1)});
    }
    if (question.kind() == "row" || question.kind() == "mla-o") {
        return part_or_refuse(question.input(0), 1, tp, t, kNotDivisible);
    }
    if (question.kind() == "replicated" || question.kind() == "row-bias") {
        return question.input(0);
    }
    throw Refusal{ErrorCode::kUnsupported, "unknown-kind", "vLLM parameters of kind '" + question.kind() + "' are not known"};
}

}  // namespace refit::maps
