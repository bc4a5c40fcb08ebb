// SPDX-License-Identifier: Apache-2.0
#include "refit/quantity.hpp"

#include <clocale>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace refit {
namespace {

/// The one fault of a refusal whose suggestion has been read back; its rule is empty where `parse` accepts.
template <class Parse>
Fault refusal(Parse parse, std::string_view text) {
    const auto result = parse(text);
    if (result.has_value()) {
        ADD_FAILURE() << "accepted: " << text;
        return {};
    }
    EXPECT_EQ(result.error().size(), 1U) << text;
    const auto& fault = result.error().front();
    EXPECT_EQ(fault.code, ErrorCode::kInvalidInput) << text;
    EXPECT_FALSE(fault.message.empty());
    EXPECT_NE(fault.message.back(), '.');
    EXPECT_EQ(fault.message.find('\n'), std::string::npos);
    if (!fault.nearest) {
        ADD_FAILURE() << "no suggestion for: " << text;
        return fault;
    }
    EXPECT_EQ(fault.nearest->field, "");
    EXPECT_TRUE(parse(fault.nearest->value).has_value()) << text << " -> " << fault.nearest->value;
    EXPECT_NE(fault.message.find(fault.nearest->value), std::string::npos) << fault.message;
    return fault;
}

struct Refused {
    const char* text;
    const char* rule;
    const char* offered;
};

template <class Parse>
void expect_refused(Parse parse, const std::vector<Refused>& cases) {
    for (const auto& expected : cases) {
        const auto fault = refusal(parse, expected.text);
        EXPECT_EQ(fault.rule, expected.rule) << expected.text << ": " << fault.message;
        ASSERT_TRUE(fault.nearest.has_value()) << expected.text;
        EXPECT_EQ(fault.nearest->value, expected.offered) << expected.text << ": " << fault.message;
        EXPECT_NE(fault.message.find(expected.text), std::string::npos) << fault.message;
    }
}

double rate_of(std::string_view text) {
    return parse_bandwidth(text).value().bytes_per_second();
}
double time_of(std::string_view text) {
    return parse_duration(text).value().value();
}
std::uint64_t size_of(std::string_view text) {
    return parse_bytes(text).value().count();
}

TEST(Quantity, ReadsRatesInBitsAndBytes) {
    // 400e9 / 8 = 50e9; 2^30 = 1073741824.
    EXPECT_EQ(rate_of("400Gbit/s"), 50e9);
    EXPECT_EQ(rate_of("400Gb/s"), 50e9);
    EXPECT_EQ(rate_of("50GB/s"), 50e9);
    EXPECT_EQ(rate_of("900 GB/s"), 900e9);
    EXPECT_EQ(rate_of("  900   GB/s "), 900e9);
    EXPECT_EQ(rate_of("1.45TB/s"), 1.45e12);
    EXPECT_EQ(rate_of("46.6GiB/s"), 46.6 * 1073741824.0);
    EXPECT_EQ(rate_of("8Gibit/s"), 1073741824.0);
    EXPECT_EQ(rate_of("8bit/s"), 1.0);
    EXPECT_EQ(rate_of("3kB/s"), 3000.0);
    EXPECT_EQ(rate_of("2KiB/s"), 2048.0);
    EXPECT_EQ(rate_of("5e2MB/s"), 500e6);
    EXPECT_EQ(rate_of(".5TiB/s"), 549755813888.0);
}

TEST(Quantity, ReadsDurationsToTheLastBit) {
    EXPECT_EQ(time_of("120s"), 120.0);
    EXPECT_EQ(time_of("2us"), 2e-6);
    EXPECT_EQ(time_of("27ns"), 27e-9);
    EXPECT_EQ(time_of("0.33ms"), 0.33 / 1e3);
    EXPECT_EQ(time_of("1.5min"), 90.0);
    EXPECT_EQ(time_of("2 h"), 7200.0);
}

TEST(Quantity, ReadsWholeBytesExactly) {
    EXPECT_EQ(size_of("64MiB"), 67108864U);
    EXPECT_EQ(size_of("1.7GB"), 1700000000U);
    EXPECT_EQ(size_of("5GiB"), 5368709120U);
    EXPECT_EQ(size_of("512B"), 512U);
    EXPECT_EQ(size_of("1.342TB"), 1342000000000U);
    // 2^64 - 1 and 2^53 + 1 have no double of their own.
    EXPECT_EQ(size_of("18446744073709551615B"), std::numeric_limits<std::uint64_t>::max());
    EXPECT_EQ(size_of("9007199254740993B"), 9007199254740993U);
    EXPECT_EQ(size_of("1.6B"), 2U);
}

TEST(Quantity, RefusesABareNumberAndOffersBothReadings) {
    const auto fault = refusal(parse_bandwidth, "400");
    EXPECT_EQ(fault.rule, "unit-missing");
    EXPECT_NE(fault.message.find("'400'"), std::string::npos);
    EXPECT_NE(fault.message.find("B/s or bit/s"), std::string::npos);
    EXPECT_NE(fault.message.find("write 400Gbit/s = 50 GB/s or 400GB/s"), std::string::npos) << fault.message;
    EXPECT_EQ(fault.nearest->note, "or 400GB/s");
    expect_refused(parse_bandwidth,
                   {{"400", "unit-missing", "400Gbit/s"}, {"400G", "unit-missing", "400Gbit/s"}});
    expect_refused(parse_duration, {{"120", "unit-missing", "120s"}, {"0.5", "unit-missing", "0.5s"}});
    expect_refused(parse_bytes,
                   {{"64", "unit-missing", "64MiB"},
                    {"1073741824", "unit-missing", "1073741824B"},
                    {"64M", "unit-missing", "64MB"},
                    {"64Gi", "unit-missing", "64GiB"}});
}

TEST(Quantity, RefusesLowerCaseGbAsBitsOrBytes) {
    const auto fault = refusal(parse_bandwidth, "400gb/s");
    EXPECT_EQ(fault.rule, "unit-case");
    EXPECT_EQ(fault.message, "'400gb/s' may mean bits or bytes: write 400Gbit/s = 50 GB/s or 400GB/s");
    EXPECT_EQ(fault.nearest->value, "400Gbit/s");
    expect_refused(parse_bandwidth,
                   {{"50GB/S", "unit-case", "50GB/s"},
                    {"400gbit/s", "unit-case", "400Gbit/s"},
                    {"3KB/s", "unit-case", "3kB/s"}});
    expect_refused(parse_duration, {{"120S", "unit-case", "120s"}, {"5MS", "unit-case", "5ms"}});
    expect_refused(parse_bytes, {{"64mib", "unit-case", "64MiB"}, {"3KB", "unit-case", "3kB"}});
}

TEST(Quantity, RefusesUnknownUnitsAndTextBehindTheUnit) {
    expect_refused(parse_bandwidth,
                   {{"400Gbps", "unit-unknown", "400Gbit/s"},
                    {"50GBps", "unit-unknown", "50GB/s"},
                    {"50GB", "unit-unknown", "50GB/s"},
                    {"400Gbit", "unit-unknown", "400Gbit/s"},
                    {"50GB/sec", "unit-unknown", "50GB/s"},
                    {"50GB/s, please", "unit-unknown", "50GB/s"},
                    {"50GB/s 7", "unit-unknown", "50GB/s"},
                    {"0x10GB/s", "unit-unknown", "400Gbit/s"}});
    expect_refused(parse_duration,
                   {{"5m", "unit-unknown", "5min"},
                    {"2\xC2\xB5s", "unit-unknown", "2us"},
                    {"120 seconds", "unit-unknown", "120s"},
                    {"120s;", "unit-unknown", "120s"},
                    {"3mins", "unit-unknown", "3min"}});
    expect_refused(parse_bytes,
                   {{"64 bytes", "unit-unknown", "64B"},
                    {"5GiB/s", "unit-unknown", "5GiB"},
                    {"1XB", "unit-unknown", "1B"}});
}

TEST(Quantity, RefusesWhatIsNoPlainNumber) {
    expect_refused(parse_bandwidth,
                   {{"", "number-syntax", "400Gbit/s"},
                    {"GB/s", "number-syntax", "400Gbit/s"},
                    {"1,5GB/s", "number-syntax", "1.5GB/s"},
                    {"1.2.3GB/s", "number-syntax", "400Gbit/s"},
                    {"+5GB/s", "number-syntax", "5GB/s"},
                    {".GB/s", "number-syntax", "400Gbit/s"},
                    {"fast", "number-syntax", "400Gbit/s"}});
    expect_refused(parse_bytes,
                   {{"400 000 MB", "number-syntax", "400000MB"}, {"1_000MB", "number-syntax", "1000MB"}});
    EXPECT_EQ(refusal(parse_bytes, "1,5GB").nearest->note, "");
    const auto fault = refusal(parse_bytes, "1,000MB");
    EXPECT_NE(fault.message.find("write 1.000MB or 1000MB"), std::string::npos) << fault.message;
}

TEST(Quantity, RefusesNumbersOutsideTheRange) {
    expect_refused(parse_bandwidth,
                   {{"0GB/s", "number-range", "1GB/s"},
                    {"0e5Gb/s", "number-range", "1Gbit/s"},
                    {"-5GB/s", "number-range", "5GB/s"},
                    {"-5 gb/s", "number-range", "400Gbit/s"},
                    {"nan", "number-range", "400Gbit/s"},
                    {"nanGB/s", "number-range", "400Gbit/s"},
                    {"inf GB/s", "number-range", "400Gbit/s"},
                    {"-Infinity", "number-range", "400Gbit/s"},
                    {"1e999GB/s", "number-range", "400Gbit/s"},
                    {"1e-999GB/s", "number-range", "400Gbit/s"},
                    {"1e305GB/s", "number-range", "400Gbit/s"}});
    EXPECT_NE(refusal(parse_bandwidth, "1e999GB/s").message.find("too large"), std::string::npos);
    EXPECT_NE(refusal(parse_bandwidth, "0." + std::string(500, '0') + "1GB/s").message.find("too small"),
              std::string::npos);
    EXPECT_NE(refusal(parse_bandwidth, "1e-999GB/s").message.find("too small"), std::string::npos);
    expect_refused(parse_duration, {{"0s", "number-range", "1s"}, {"-1ms", "number-range", "1ms"}});
    expect_refused(parse_bytes,
                   {{"0B", "number-range", "1B"},
                    {"0.3B", "number-range", "1B"},
                    {"18446744073709551616B", "number-range", "64MiB"},
                    {"17179869184GiB", "number-range", "64MiB"},
                    {"1e30B", "number-range", "64MiB"}});
}

TEST(Quantity, CutsLongTextsAndControlCharactersInMessages) {
    const std::string text = "400GB/s\x1B[31m\n" + std::string(1000000, 'x');
    const auto fault = refusal(parse_bandwidth, text);
    EXPECT_LT(fault.message.size(), 300U);
    EXPECT_EQ(fault.message.find('\x1B'), std::string::npos);
    EXPECT_EQ(refusal(parse_bandwidth, std::string(1000000, '9') + "GB/s").rule, "number-range");
}

TEST(Quantity, PrintsBytesInDecimalUnits) {
    EXPECT_EQ(format_bytes(Bytes{1342000000000U}), "1.342 TB");
    EXPECT_EQ(format_bytes(Bytes{39214000000U}), "39.2 GB");
    EXPECT_EQ(format_bytes(Bytes{234881024U}), "235 MB");
    EXPECT_EQ(format_bytes(Bytes{1700000000U}), "1.7 GB");
    EXPECT_EQ(format_bytes(Bytes{512U}), "512 B");
    EXPECT_EQ(format_bytes(Bytes{0U}), "0 B");
    EXPECT_EQ(format_bytes(Bytes{999U}), "999 B");
    EXPECT_EQ(format_bytes(Bytes{999999U}), "1 MB");
    EXPECT_EQ(format_bytes(Bytes{999600U}), "1 MB");
    EXPECT_EQ(format_bytes(Bytes{9999600U}), "10 MB");
    EXPECT_EQ(format_bytes(Bytes{std::numeric_limits<std::uint64_t>::max()}), "18447 PB");
}

TEST(Quantity, PrintsTimesWithThreeDigits) {
    EXPECT_EQ(format_seconds(Seconds{14.6123}), "14.6 s");
    EXPECT_EQ(format_seconds(Seconds{2.6749}), "2.67 s");
    EXPECT_EQ(format_seconds(Seconds{0.84}), "0.84 s");
    EXPECT_EQ(format_seconds(Seconds{0.0052}), "5.2 ms");
    EXPECT_EQ(format_seconds(Seconds{27e-6}), "27 us");
    EXPECT_EQ(format_seconds(Seconds{27.04e-9}), "27 ns");
    EXPECT_EQ(format_seconds(Seconds{0.0999}), "99.9 ms");
    EXPECT_EQ(format_seconds(Seconds{0.099999}), "0.1 s");
    EXPECT_EQ(format_seconds(Seconds{0.00099999}), "1 ms");
    EXPECT_EQ(format_seconds(Seconds{14612.0}), "14612 s");
    EXPECT_EQ(format_seconds(Seconds{999.7}), "1000 s");
    EXPECT_EQ(format_seconds(Seconds{0.0}), "0 s");
    EXPECT_EQ(format_seconds(Seconds{-2.5}), "-2.5 s");
}

TEST(Quantity, PrintsRatesWithThreeDigits) {
    EXPECT_EQ(format_bandwidth(Bandwidth::gigabits_per_second(400)), "50 GB/s");
    EXPECT_EQ(format_bandwidth(Bandwidth::gigabytes_per_second(450)), "450 GB/s");
    EXPECT_EQ(format_bandwidth(Bandwidth::gigabytes_per_second(1450)), "1.45 TB/s");
    EXPECT_EQ(format_bandwidth(Bandwidth::gigabytes_per_second(46.63)), "46.6 GB/s");
    EXPECT_EQ(format_bandwidth(Bandwidth::bytes_per_second(1e300)).find("inf"), std::string::npos);
    EXPECT_EQ(format_bandwidth(Bandwidth::bytes_per_second(0.25)), "0.25 B/s");
}

TEST(Quantity, WhatIsPrintedCanBeReadAgain) {
    std::mt19937_64 random{1};
    std::uniform_real_distribution<double> exponent{-9.0, 18.0};
    for (int i = 0; i < 2000; ++i) {
        // Three significant digits are wrong by at most 0.5 in 100.
        const double value = std::pow(10.0, exponent(random));
        EXPECT_NEAR(time_of(format_seconds(Seconds{value})), value, 0.0051 * value);
        EXPECT_NEAR(rate_of(format_bandwidth(Bandwidth::bytes_per_second(value))), value, 0.0051 * value);
        const auto count = static_cast<std::uint64_t>(value) + 1;
        const auto shown = static_cast<double>(size_of(format_bytes(Bytes{count})));
        EXPECT_NEAR(shown, static_cast<double>(count), 0.0051 * static_cast<double>(count));
    }
}

TEST(Quantity, DoesNotDependOnTheLocale) {
    const std::string before = std::setlocale(LC_ALL, nullptr);
    for (const auto* name : {"de_DE.UTF-8", "fr_FR.UTF-8", "C"}) {
        if (std::setlocale(LC_ALL, name) != nullptr) {
            EXPECT_EQ(rate_of("1.5GB/s"), 1.5e9);
            EXPECT_EQ(format_seconds(Seconds{2.67}), "2.67 s");
        }
    }
    std::setlocale(LC_ALL, before.c_str());
}

TEST(Quantity, AnyTextIsReadOrRefusedWithAnOfferThatReads) {
    const std::vector<std::string> parts{"400",
                                         "1.5",
                                         "0",
                                         "-",
                                         "+",
                                         ",",
                                         ".",
                                         " ",
                                         "e",
                                         "E9",
                                         "-400",
                                         "nan",
                                         "inf",
                                         "GB",
                                         "gb",
                                         "Gbit",
                                         "/s",
                                         "/S",
                                         "Gi",
                                         "i",
                                         "m",
                                         "us",
                                         "min",
                                         "_",
                                         "k",
                                         "K",
                                         "T",
                                         "b",
                                         "999999999999999999999",
                                         "\xC2",
                                         "\xB5",
                                         "\xFF",
                                         "\n",
                                         std::string(1, '\0')};
    std::mt19937_64 random{7};
    for (int i = 0; i < 6000; ++i) {
        std::string text;
        const auto length = random() % 7;
        for (std::uint64_t part = 0; part < length; ++part) {
            text += random() % 8 == 0 ? std::string(1, static_cast<char>(random() % 256))
                                      : parts[random() % parts.size()];
        }
        if (!parse_bandwidth(text)) {
            EXPECT_FALSE(refusal(parse_bandwidth, text).rule.empty());
        }
        if (!parse_duration(text)) {
            EXPECT_FALSE(refusal(parse_duration, text).rule.empty());
        }
        if (!parse_bytes(text)) {
            EXPECT_FALSE(refusal(parse_bytes, text).rule.empty());
        }
    }
}

}  // namespace
}  // namespace refit
