// SPDX-License-Identifier: Apache-2.0
#include "refit/exec/injection.hpp"

#include <gtest/gtest.h>

#include "refit/exec/machine.hpp"
#include "refit/exec/transport_kind.hpp"

namespace refit::exec {
namespace {

TEST(Injection, ReadsKindRankAndWave) {
    EXPECT_EQ(parse_injection("dies:3@5").value(), (Injection{InjectionKind::kDies, 3, 5}));
    EXPECT_EQ(parse_injection("memory:12").value(), (Injection{InjectionKind::kOutOfMemory, 12, 0}));
}

TEST(Injection, RefusesWhatItCannotReadNamingTheNearestKind) {
    for (const auto* text : {"dise:3", "dies", "dies:", "dies:x", "dies:1@", "dies:1@2x", "dies:-1"}) {
        const auto injection = parse_injection(text);
        ASSERT_FALSE(injection.has_value()) << text;
        EXPECT_NE(injection.error().front().message.find("'dies'"), std::string::npos);
    }
}

TEST(TransportKind, HasANameThatIsReadBack) {
    for (const auto kind :
         {TransportKind::kHost, TransportKind::kMpi, TransportKind::kCuda, TransportKind::kNccl}) {
        EXPECT_EQ(parse_transport(name_of(kind)).value(), kind);
    }
    EXPECT_NE(parse_transport("hots").error().front().message.find("did you mean host?"), std::string::npos);
}

TEST(TransportKind, HostIsAlwaysThere) {
    EXPECT_EQ(make_transport(TransportKind::kHost).value()->name(), "host");
}

TEST(Machine, HasACoreAndMemory) {
    const auto machine = this_machine();
    EXPECT_GE(machine.cores, 1U);
    EXPECT_GT(machine.memory, Bytes{});
    EXPECT_LE(machine.available, machine.memory);
    EXPECT_NE(describe({1, "CPU", Bytes{std::uint64_t{3} << 29U}, Bytes{}}).find("1 core, 1.5 GiB, CPU"),
              std::string::npos);
}

}  // namespace
}  // namespace refit::exec
