// SPDX-License-Identifier: Apache-2.0
// How Megatron-Core stores what Megatron-Bridge loads from a Hugging Face checkpoint.
#include "composition.hpp"

namespace refit::maps {
namespace {

constexpr const char* kNotDivisible = "not-divisible";

LocalTensor part_or_refuse(const LocalTensor& tensor, std::size_t axis, std::uint64_t ways, std::uint64_t index, const char* rule) {
    require(tensor.shape()[axis] % ways == 0, rule);
    return tensor.part(axis, ways, index);
}

/// q, k and v regrouped by KV head: for each, its query heads, their gates where q stores them, k, v.
LocalTensor grouped_qkv(const Question& question, const LocalTensor& q, const LocalTensor& k, const LocalTensor& v,
                        const LocalTensor* scalar_gate) {
    const auto groups = question.number("kv_heads");
    const auto heads = question.number("heads") / groups;
    const auto rows = question.number("head_dim");
    const bool is_gated = question.number_or("gated", 0) != 0;
    const auto stride = is_gated ? 2 * rows : rows;
    Tensors fused;
    for (std::uint64_t group = 0; group < groups; ++group) {
        for (std::uint64_t h = group * heads; h < (group + 1) * heads; ++h) {
            fused.push_back(q.slice(0, {h * stride, h * stride + rows}));
        }
        for (std::uint64_t h = group * heads; h < (group + 1) * heads && is_gated; ++h) {
            fused.push_back(q.slice(0, {h * stride + rows, (h + 1) * stride}));
        }
        for (std::uint64_t h = group * heads; h < (group + 1) * heads && scalar_gate != nullptr; ++h) {
            fused.insert(fused.end(), rows, scalar_gate->slice(0, {h, h + 1}));
        }
        fused.push_back(k.slice(0, {group * rows, (group + 1) * rows}));
        fused.push_back(v.slice(0, {group * rows, (group + 1) * rows}));
    }
    return joined(fused);
}

LocalTensor qkv(const Question& question, std::uint64_t tp, std::uint64_t t) {
    const auto kv_heads = question.number("kv_heads");
    require(kv_heads % tp == 0 || tp % kv_heads == 0, "kv-heads-and-tp");
    if (question.is("concatenated")) {
        const auto rows = question.number("head_dim");
        const auto bands = segments(question.input(0), 0, {question.number("heads") * rows, kv_heads * rows, kv_heads * rows});
        return parts_of(bands, tp, t, kNotDivisible);
    }
    const auto q = question.input(0);
    const auto k = question.input(1);
    const auto v = question.input(2);
    if (!question.is("scalar-gate")) {
        return part_or_refuse(grouped_qkv(question, q, k, v, nullptr), 0, tp, t, kNotDivisible);
    }
    const auto gate = question.input(3);
    const bool is_expanded = question.number_or("attention_output_gate", 0) != 0;
    const auto fused = is_expanded ? grouped_qkv(question, q, k, v, &gate)
                                   : joined({grouped_qkv(question, q, k, v, nullptr), gate});
    return part_or_refuse(fused, 0, tp, t, kNotDivisible);
}

LocalTensor vocabulary(const Question& question, std::uint64_t tp, std::uint64_t t) {
    const auto table = question.input(0);
    const auto rows = table.shape()[0];
    const auto divisor = question.number_or("make_vocab_size_divisible_by", 0) * tp;
    const auto computed = divisor == 0 ? rows : (rows + divisor - 1) / divisor * divisor;
    const auto padded = question.number_or("padded_vocab", computed);
    require(padded % tp == 0, kNotDivisible);
    require(tp > 1 || padded == rows, "padded-parameter-at-tp1");
    return table.padded(0, padded).part(0, tp, t);
}

LocalTensor mamba(const Question& question, std::uint64_t tp, std::uint64_t t) {
    require(question.number("mamba_num_heads") % tp == 0, "heads-not-divisible-by-tp");
    require(question.number("mamba_num_groups") % tp == 0, "state-groups-not-divisible-by-tp");
    return parts_of(segments(question.input(0), 0, mamba_segments(question, question.is("conv1d"))), tp, t, kNotDivisible);
}

/// A checkpoint that stores q, k, v and z (and b, a) head by head: regrouped by part.
Tensors regrouped_delta_net(const Question& question) {
    const auto keys = question.number("linear_num_key_heads");
    const auto key_rows = question.number("linear_key_head_dim");
    const auto ratio = question.number("linear_num_value_heads") / keys;
    const auto value_rows = ratio * question.number("linear_value_head_dim");
    std::vector<Tensors> parts(6);
    const auto add = [&](const LocalTensor& head, const std::vector<std::uint64_t>& lengths, std::size_t first) {
        const auto cut = segments(head, 0, lengths);
        for (std::size_t i = 0; i < cut.size(); ++i) {
            parts[first + i].push_back(cut[i]);
        }
    };
    for (std::uint64_t head = 0; head < keys; ++head) {
        add(question.input(0).part(0, keys, head), {key_rows, key_rows, value_rows, value_rows}, 0);
        add(question.input(1).part(0, keys, head), {ratio, ratio}, 4);
    }
    Tensors whole;
    for (const auto& part : parts) {
        whole.push_back(joined(part));
    }
    return whole;
}

LocalTensor delta_net(const Question& question, std::uint64_t tp, std::uint64_t t) {
    constexpr const char* kRule = "shapes-do-not-fit";
    if (question.is("fused")) {
        return parts_of(regrouped_delta_net(question), tp, t, kRule);
    }
    auto parts = segments(question.input(0), 0, delta_net_segments(question));
    if (!question.is("conv1d")) {
        for (std::size_t i = 1; i < question.inputs(); ++i) {
            parts.push_back(question.input(i));
        }
    }
    return parts_of(parts, tp, t, kRule);
}

/// fc1 or fc2 of one expert from stacked inputs; [E, hidden, …] is turned unless it already has the target's shape.
LocalTensor fused_expert(const Question& question, std::uint64_t expert, std::uint64_t etp, std::uint64_t t) {
    const auto ffn = question.number("ffn");
    auto matrix = expert_slice(question.input(0), expert);
    if (question.is("gptoss")) {
        require(etp == 1, "unexpected-orientation");
        if (!question.is("bias")) {
            matrix = matrix.transposed(0, 1);
        }
        return question.is("w2") ? matrix : joined({every_second(matrix, 0, 0), every_second(matrix, 0, 1)});
    }
    const bool is_first = question.is("w13");
    const auto rows = is_first ? 2 * ffn : question.number("hidden");
    if (matrix.shape()[0] != rows) {
        matrix = matrix.transposed(0, 1);
    }
    return is_first ? parts_of(segments(matrix, 0, {ffn, ffn}), etp, t, "ffn-not-divisible-by-tp")
                    : part_or_refuse(matrix, 1, etp, t, "ffn-not-divisible-by-tp");
}

LocalTensor single_expert(const Question& question, std::uint64_t expert, std::uint64_t etp, std::uint64_t t) {
    constexpr const char* kRule = "ffn-not-divisible-by-tp";
    if (question.is("w2")) {
        return part_or_refuse(question.input(expert), 1, etp, t, kRule);
    }
    if (question.number_or("gated", 1) == 0) {
        return part_or_refuse(question.input(expert), 0, etp, t, kRule);
    }
    return parts_of({question.input(2 * expert), question.input(2 * expert + 1)}, etp, t, kRule);
}

/// Rows of gate and up in turn, `moe_mlp_glu_interleave_size` at a time.
LocalTensor interleaved_glu(const Question& question, std::uint64_t etp, std::uint64_t t) {
    const auto size = question.number("moe_mlp_glu_interleave_size");
    const auto gate = part_or_refuse(question.input(0), 0, etp, t, "ffn-not-divisible-by-tp");
    const auto up = part_or_refuse(question.input(1), 0, etp, t, "ffn-not-divisible-by-tp");
    require(gate.shape()[0] % size == 0, "shapes-do-not-fit");
    Tensors blocks;
    for (std::uint64_t row = 0; row < gate.shape()[0]; row += size) {
        blocks.push_back(gate.slice(0, {row, row + size}));
        blocks.push_back(up.slice(0, {row, row + size}));
    }
    return joined(blocks);
}

LocalTensor experts(const Question& question, std::uint64_t rank) {
    const auto etp = question.number_or("etp", 1);
    const auto ep = question.number_or("ep", 1);
    const auto t = rank % etp;
    if (question.is("glu-interleaved")) {
        return interleaved_glu(question, etp, t);
    }
    const auto count = question.number("experts");
    require(count % ep == 0, "experts-not-divisible-by-ep");
    const auto first = rank / etp % ep * (count / ep);
    Tensors local;
    for (auto expert = first; expert < first + count / ep; ++expert) {
        const bool is_stacked = question.is("fused") || question.is("gptoss");
        local.push_back(is_stacked ? fused_expert(question, expert, etp, t) : single_expert(question, expert, etp, t));
    }
    return LocalTensor::stack(local);
}

}  // namespace

LocalTensor megatron_rank(const Question& question, std::uint64_t rank) {
    const auto tp = question.number_or("tp", 1);
    const auto t = rank % tp;
    if (question.begins("experts-")) {
        return experts(question, rank);
    }
    if (question.begins("qkv-")) {
        return qkv(question, tp, t);
    }
    if (question.begins("gate-up")) {
        return parts_of({question.input(0), question.input(1)}, tp, t, "ffn-not-divisible-by-tp");
    }
    if (question.kind() == "vocab" || question.kind() == "tied-embedding") {
        return vocabulary(question, tp, t);
    }
    if (question.begins("mamba-")) {
        return mamba(question, tp, t);
    }
    if (question.begins("gdn-")) {
        return delta_net(question, tp, t);
    }
    if (question.kind() == "row" || question.kind() == "mla-o") {
        return part_or_refuse(question.input(0), 1, tp, t, kNotDivisible);
    }
    if (question.begins("column") || question.kind() == "head-vector" || question.kind() == "mla-q-b" || question.kind() == "mla-kv-b") {
        return part_or_refuse(question.input(0), 0, tp, t, kNotDivisible);
    }
    if (question.kind() == "replicated" || question.kind() == "row-bias" || question.kind() == "mla-q-a" || question.kind() == "mla-kv-a") {
        return question.input(0);
    }
    throw Refusal{ErrorCode::kUnsupported, "unknown-kind", "Megatron parameters of kind '" + question.kind() + "' are not known"};
}

}  // namespace refit::maps
