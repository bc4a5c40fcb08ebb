// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "refit/exec/values.hpp"
#include "stream_device.hpp"

namespace refit::testing_support {

using exec::Device;
using exec::LoadedTable;
using exec::RegionElements;

/// A device that is host memory: does at once what a GPU would begin, by the very arithmetic that its kernels
/// run, and checks whose memory is touched. Captures keep CUDA's rules: who waits for what is captured joins,
/// a wait for what is not is refused, and so is an end that leaves a stream out.
class HostDevice : public exec::StreamDevice {
public:
    HostDevice() { streams_.push_back(std::make_unique<Stream>(this, 0)); }

    [[nodiscard]] std::string describe() const override { return "host memory"; }
    Result<std::uint64_t> available() override { return room_; }
    Result<std::uint64_t> allocate(std::uint64_t bytes) override {
        auto memory = std::make_unique<std::byte[]>(bytes + 256);
        const auto address = (reinterpret_cast<std::uint64_t>(memory.get()) + 255) / 256 * 256;
        memory_[address] = {std::move(memory), bytes};
        return address;
    }
    Result<void> upload(std::uint64_t address, std::span<const std::byte> bytes) override {
        drain();
        std::memcpy(own(address, bytes.size()), bytes.data(), bytes.size());
        return {};
    }
    Result<void> download(std::uint64_t address, std::span<std::byte> bytes) override {
        drain();
        std::memcpy(bytes.data(), own(address, bytes.size()), bytes.size());
        return {};
    }
    Result<void> launch(const LoadedTable& table) override { return launch_on(0, table); }
    Result<void> launch_on(std::uint32_t stream, const LoadedTable& table) override {
        exec::CopyTable copies;
        copies.tiles = table.tiles;
        copies.copies.resize(table.count);
        copies.first_tiles.resize(table.count);
        if (table.count > 0) {
            std::memcpy(copies.copies.data(), own(table.copies, 1), table.count * sizeof(exec::TiledCopy));
            std::memcpy(
                copies.first_tiles.data(), own(table.first_tiles, 1), table.count * sizeof(std::uint32_t));
        }
        for (const exec::TiledCopy& copy : copies.copies) {
            own(copy.source, 1);
            own(copy.destination, 1);
        }
        begin(stream, [copies = std::move(copies)] { run_copy_table(copies); });
        return {};
    }
    Result<void> send(std::uint64_t from, Device& to_device, std::uint64_t to, std::uint64_t bytes) override {
        auto* target = dynamic_cast<HostDevice&>(to_device).own(to, bytes);
        begin(0, [target, source = own(from, bytes), bytes] { std::memcpy(target, source, bytes); });
        return {};
    }
    Result<void> follow(Device& other) override {
        auto& before = *dynamic_cast<HostDevice&>(other).streams_.front();
        return join(*streams_.front(), {before.capture, &before, before.begun});
    }
    Result<void> fill(const RegionElements& elements, bool is_complemented) override {
        begin(0,
              [to = own(elements.address, elements.count * elements.element_bytes),
               elements,
               is_complemented]() mutable {
                  for (std::uint64_t place = 0; place < elements.count;
                       ++place, to += elements.element_bytes) {
                      const std::uint64_t value =
                          element_value(elements, place) ^ (is_complemented ? ~std::uint64_t{0} : 0);
                      std::memcpy(to, &value, elements.element_bytes);
                  }
              });
        return {};
    }
    Result<void> compare(const RegionElements& elements, std::uint64_t address) override {
        begin(
            0,
            [from = own(elements.address, elements.count * elements.element_bytes),
             to = own(address, sizeof(exec::ElementVerdict)),
             elements] {
                exec::ElementVerdict verdict;
                // As threads of a kernel do: each takes every 7th element, and steps its factor back.
                const std::uint64_t step_back = exec::inverse(exec::power(exec::kChecksumFactor, 7));
                for (std::uint64_t thread = 0; thread < std::min<std::uint64_t>(7, elements.count);
                     ++thread) {
                    std::uint64_t factor = exec::power(exec::kChecksumFactor, elements.count - 1 - thread);
                    for (std::uint64_t place = thread; place < elements.count;
                         place += 7, factor *= step_back) {
                        std::uint64_t found = 0;
                        std::memcpy(&found, from + place * elements.element_bytes, elements.element_bytes);
                        verdict.checksum += found * factor;
                        if (found != exec::narrowed(element_value(elements, place), elements.element_bytes)) {
                            verdict.first_wrong = std::min(verdict.first_wrong, place);
                        }
                    }
                }
                std::memcpy(to, &verdict, sizeof(verdict));
            });
        return {};
    }
    Result<bool> is_idle() override { return !is_stuck_; }

    void clear() noexcept override {
        memory_.clear();
        marks_.clear();
        graphs_.clear();
    }
    Result<void> open_streams(std::uint32_t count) override {
        while (streams_.size() < count) {
            streams_.push_back(std::make_unique<Stream>(this, static_cast<std::uint32_t>(streams_.size())));
        }
        return {};
    }
    [[nodiscard]] CUstream_st* stream(std::uint32_t index) const override {
        return reinterpret_cast<CUstream_st*>(streams_.at(index).get());
    }
    /// Begins something on a stream that `stream` gave, of whatever device.
    static void begin_on(CUstream_st* stream, std::function<void()> work) {
        auto& own = *reinterpret_cast<Stream*>(stream);
        own.device->begin(own.index, std::move(work));
    }
    static bool is_capturing(CUstream_st* stream) {
        return reinterpret_cast<Stream*>(stream)->capture != nullptr;
    }
    static HostDevice& device_of(CUstream_st* stream) { return *reinterpret_cast<Stream*>(stream)->device; }

    Result<std::uint32_t> make_mark() override {
        marks_.emplace_back();
        return static_cast<std::uint32_t>(marks_.size() - 1);
    }
    Result<void> set_mark(std::uint32_t mark, std::uint32_t stream) override {
        auto& own = *streams_.at(stream);
        marks_.at(mark) = {own.capture, &own, own.begun};
        if (!own.capture) {
            set_off(mark, stream);
        }
        return {};
    }
    Result<void> await_mark(std::uint32_t stream, std::uint32_t mark) override {
        auto done = join(*streams_.at(stream), marks_.at(mark));
        if (done && !streams_.at(stream)->capture) {
            wait_for(stream, mark);
        }
        return done;
    }
    Result<bool> is_passed(std::uint32_t mark) override {
        if (marks_.at(mark).stream == nullptr || marks_.at(mark).capture) {
            return refused("a mark that was not set, or in a capture");
        }
        return has_passed(mark);
    }

    Result<void> begin_capture() override {
        if (cannot_capture_) {
            return refused("operation not permitted when stream is capturing");
        }
        auto& origin = *streams_.front();
        origin.capture = std::make_shared<Capture>();
        origin.capture->members.insert(&origin);
        return {};
    }
    Result<std::uint32_t> end_capture() override {
        auto& origin = *streams_.front();
        const auto capture = origin.capture;
        if (!capture) {
            return refused("no capture was begun");
        }
        bool is_whole = true;
        for (Stream* member : capture->members) {
            is_whole = is_whole && (member == &origin || member->joined == member->begun);
            member->capture = nullptr;
        }
        if (!is_whole) {
            return refused("a stream of the capture was not joined to its origin");
        }
        graphs_.push_back(std::move(capture->works));
        return static_cast<std::uint32_t>(graphs_.size() - 1);
    }
    Result<void> replay(std::uint32_t graph) override {
        ++replays_;
        begin(0, [works = &graphs_.at(graph)] {
            for (const auto& work : *works) {
                work();
            }
        });
        return {};
    }

    std::uint64_t room_ = std::uint64_t{1} << 40U;
    bool is_stuck_ = false;
    bool cannot_capture_ = false;
    std::size_t replays_ = 0;

protected:
    struct Stream;
    struct Capture {
        std::vector<std::function<void()>> works;
        std::set<Stream*> members;
    };
    struct Stream {
        Stream(HostDevice* owner, std::uint32_t number) : device{owner}, index{number} {}
        HostDevice* device;
        std::uint32_t index;
        std::shared_ptr<Capture> capture;
        std::size_t begun = 0;   ///< Works and waits, in captures.
        std::size_t joined = 0;  ///< Of these, what the capture's origin waits for.
    };
    struct Mark {
        std::shared_ptr<Capture> capture;
        Stream* stream = nullptr;
        std::size_t begun = 0;
    };

    /// What a stream runs, after what it ran before.
    virtual void run_on(std::uint32_t /*stream*/, std::function<void()> work) { work(); }
    virtual void set_off(std::uint32_t /*mark*/, std::uint32_t /*stream*/) {}
    virtual void wait_for(std::uint32_t /*stream*/, std::uint32_t /*mark*/) {}
    [[nodiscard]] virtual bool has_passed(std::uint32_t /*mark*/) { return true; }
    /// Until stream 0 is idle.
    virtual void drain() {}

    void begin(std::uint32_t stream, std::function<void()> work) {
        auto& own = *streams_.at(stream);
        if (own.capture) {
            ++own.begun;
            own.capture->works.push_back(std::move(work));
        } else {
            run_on(stream, std::move(work));
        }
    }
    static Failure refused(const std::string& what) {
        return fail(ErrorCode::kInfeasible, "transport", what);
    }

    std::byte* own(std::uint64_t address, std::uint64_t bytes) {
        auto found = memory_.upper_bound(address);
        EXPECT_NE(found, memory_.begin());
        --found;
        EXPECT_LE(address + bytes, found->first + found->second.second) << "outside the device's memory";
        return reinterpret_cast<std::byte*>(address);
    }

private:
    static Result<void> join(Stream& later, const Mark& mark) {
        if (later.capture && later.capture != mark.capture) {
            return refused("a capture waits for what is not captured");
        }
        if (mark.capture) {
            later.capture = mark.capture;
            mark.capture->members.insert(&later);
            ++later.begun;
            if (later.index == 0 && mark.stream != &later) {
                mark.stream->joined = mark.begun;
            }
        }
        return {};
    }

    std::map<std::uint64_t, std::pair<std::unique_ptr<std::byte[]>, std::uint64_t>> memory_;
    std::vector<std::unique_ptr<Stream>> streams_;
    std::vector<Mark> marks_;
    std::vector<std::vector<std::function<void()>>> graphs_;
};

}  // namespace refit::testing_support
