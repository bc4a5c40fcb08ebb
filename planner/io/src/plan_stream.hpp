// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace refit::io {

/// Bytes on their way to wherever `flush` brings them, a block at a time.
template <class Flush>
class BlockBuffer {
public:
    explicit BlockBuffer(Flush flush) : flush_{std::move(flush)} { block_.reserve(kBlock); }

    void put(char byte) {
        block_.push_back(byte);
        if (block_.size() >= kBlock) {
            finish();
        }
    }
    void put(std::string_view bytes) {
        block_.append(bytes);
        if (block_.size() >= kBlock) {
            finish();
        }
    }
    void finish() {
        flush_(std::string_view{block_});
        block_.clear();
    }

private:
    static constexpr std::size_t kBlock = std::size_t{1} << 16U;
    Flush flush_;
    std::string block_;
};

/// A document as CBOR, with definite lengths and each number as short as it can be. Source: RFC 8949.
template <class Buffer>
class CborWriter {
public:
    explicit CborWriter(Buffer& buffer) : buffer_{buffer} {}

    void begin_object(std::size_t members) { head(0xa0, members); }
    void end_object() {}
    void key(std::string_view name) { text(name); }
    void begin_list(std::size_t values) { head(0x80, values); }
    void end_list() {}
    void number(std::uint64_t value) { head(0x00, value); }
    void minus_one() { buffer_.put(char(0x20)); }
    void flag(bool value) { buffer_.put(static_cast<char>(value ? 0xf5 : 0xf4)); }
    void text(std::string_view value) {
        head(0x60, value.size());
        buffer_.put(value);
    }

private:
    void head(unsigned type, std::uint64_t value) {
        if (value < 24) {
            buffer_.put(static_cast<char>(type + value));
            return;
        }
        const unsigned exponent = value <= 0xff ? 0 : value <= 0xffff ? 1 : value <= 0xffffffff ? 2 : 3;
        buffer_.put(static_cast<char>(type + 24 + exponent));
        for (unsigned bytes = 1U << exponent; bytes > 0; --bytes) {
            buffer_.put(static_cast<char>((value >> (8U * (bytes - 1))) & 0xffU));
        }
    }

    Buffer& buffer_;
};

/// A document as JSON on one line.
template <class Buffer>
class JsonWriter {
public:
    explicit JsonWriter(Buffer& buffer) : buffer_{buffer} {}

    void begin_object(std::size_t) { begin('{'); }
    void end_object() { end('}'); }
    void key(std::string_view name) {
        text(name);
        buffer_.put(':');
        is_first_ = true;
    }
    void begin_list(std::size_t) { begin('['); }
    void end_list() { end(']'); }
    void number(std::uint64_t value) {
        separate();
        std::array<char, 20> digits{};
        auto first = digits.size();
        do {
            digits[--first] = static_cast<char>('0' + value % 10);
            value /= 10;
        } while (value > 0);
        buffer_.put(std::string_view{digits.data() + first, digits.size() - first});
    }
    void minus_one() { word("-1"); }
    void flag(bool value) { word(value ? "true" : "false"); }
    void text(std::string_view value) { word(nlohmann::json(value).dump()); }

private:
    void separate() {
        if (!is_first_) {
            buffer_.put(',');
        }
        is_first_ = false;
    }
    void word(std::string_view value) {
        separate();
        buffer_.put(value);
    }
    void begin(char bracket) {
        separate();
        buffer_.put(bracket);
        is_first_ = true;
    }
    void end(char bracket) {
        buffer_.put(bracket);
        is_first_ = false;
    }

    Buffer& buffer_;
    bool is_first_ = true;
};

}  // namespace refit::io
