// SPDX-License-Identifier: Apache-2.0
#include "refit/io/json_file.hpp"

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "scratch.hpp"

namespace refit::io {
namespace {

class JsonFile : public testing_io::Scratch {};

TEST_F(JsonFile, IsReadWhole) {
    const auto json = read_json(write("a.json", R"({"rows": 4096})"));
    ASSERT_TRUE(json.has_value());
    EXPECT_EQ(json->at("rows"), 4096);
}

TEST_F(JsonFile, IsRefusedAtEveryTruncation) {
    const std::string text = R"({"a": [1, "b\"c", {"d": null}]})";
    for (std::size_t length = 0; length < text.size(); ++length) {
        const auto json = read_json(write("cut.json", text.substr(0, length)));
        ASSERT_FALSE(json.has_value()) << length;
        EXPECT_EQ(json.error().front().code, ErrorCode::kInvalidInput);
        EXPECT_EQ(json.error().front().rule, "json-syntax");
    }
}

TEST_F(JsonFile, IsCalledTruncatedWithThePlaceOfItsEnd) {
    const auto json = parse_json("{\n \"a\": [1,", "cut.json");
    ASSERT_FALSE(json.has_value());
    EXPECT_NE(json.error().front().message.find("truncated"), std::string::npos);
    EXPECT_EQ(json.error().front().where.rfind("cut.json:2:", 0), 0U) << json.error().front().where;
}

TEST_F(JsonFile, NamesLineAndColumnOfAMistake) {
    // The x is the seventh character of line 2.
    const auto json = parse_json("{\n \"a\": x}", "bad.json");
    ASSERT_FALSE(json.has_value());
    EXPECT_EQ(json.error().front().message, "this is not valid JSON");
    EXPECT_EQ(json.error().front().where, "bad.json:2:7");
    EXPECT_EQ(parse_json("x", "bad.json").error().front().where, "bad.json:1:1");
}

TEST_F(JsonFile, IsRefusedAbove64Levels) {
    EXPECT_TRUE(parse_json(std::string(64, '[') + std::string(64, ']'), "a").has_value());
    const auto json = parse_json(std::string(65, '[') + std::string(65, ']'), "a");
    ASSERT_FALSE(json.has_value());
    EXPECT_EQ(json.error().front().rule, "json-depth");
    // A million levels must not exhaust the stack.
    EXPECT_FALSE(parse_json(std::string(1'000'000, '['), "a").has_value());
}

TEST_F(JsonFile, CountsNoBracketsInsideTexts) {
    const auto text = "[\"" + std::string(100, '[') + "\\\"" + std::string(100, '{') + "\"]";
    EXPECT_TRUE(parse_json(text, "a").has_value());
}

TEST_F(JsonFile, IsRefusedWithANumberOutOfRange) {
    const auto json = parse_json("[1e999]", "a");
    ASSERT_FALSE(json.has_value());
    EXPECT_EQ(json.error().front().rule, "json-number");
}

TEST_F(JsonFile, IsNotAFolder) {
    const auto text = read_text(path("."));
    ASSERT_FALSE(text.has_value());
    EXPECT_EQ(text.error().front().code, ErrorCode::kIo);
    EXPECT_NE(text.error().front().message.find("folder"), std::string::npos);
}

TEST_F(JsonFile, NamesAFileThatIsNotThere) {
    const auto text = read_text(path("none.json"));
    ASSERT_FALSE(text.has_value());
    EXPECT_EQ(text.error().front().code, ErrorCode::kIo);
    EXPECT_EQ(text.error().front().where, path("none.json").string());
}

TEST_F(JsonFile, IsRefusedWhereItCannotBeOpened) {
    // A link to itself cannot be opened by any user.
    std::filesystem::create_symlink("loop.json", path("loop.json"));
    const auto text = read_text(path("loop.json"));
    ASSERT_FALSE(text.has_value());
    EXPECT_EQ(text.error().front().rule, "unreadable");
}

TEST_F(JsonFile, IsRefusedWithoutPermission) {
    if (::geteuid() == 0) {
        GTEST_SKIP() << "root may read everything";
    }
    const auto file = write("secret.json", "{}");
    std::filesystem::permissions(file, std::filesystem::perms::none);
    const auto text = read_text(file);
    ASSERT_FALSE(text.has_value());
    EXPECT_EQ(text.error().front().code, ErrorCode::kIo);
}

TEST(ParseJson, RefusesEveryKeyThatAnObjectHasTwice) {
    const auto json = parse_json(R"({"a": 1, "b": [{"c": 2}, {"c": 3, "d": {"c": 4},
 "c": 5}], "\u0061": "a",
 "list": ["a", "a"], "a": {"a": 6}})",
                                 "mine.json");
    ASSERT_FALSE(json.has_value());
    ASSERT_EQ(json.error().size(), 3U);
    EXPECT_EQ(json.error()[0].rule, "json-repeated-key");
    EXPECT_EQ(json.error()[0].code, ErrorCode::kInvalidInput);
    EXPECT_EQ(json.error()[0].message, "the key /b/1/c appears a second time in its object; keep one");
    EXPECT_EQ(json.error()[0].where, "mine.json:2:2");
    EXPECT_EQ(json.error()[1].where, "mine.json:2:12");  // Written as an escape.
    EXPECT_EQ(json.error()[2].where, "mine.json:3:22");
    // The same key in other objects, in values and behind escaped quotes is no repetition.
    EXPECT_TRUE(parse_json(R"({"a": {"a": "a"}, "b": [{"a": 1}, {"a": 1}], "c": "\"a\": 1, {", "\"a": 2})", "mine.json").has_value());
}

TEST_F(JsonFile, IsRefusedAboveALimit) {
    const auto file = write("four.json", "1234");
    EXPECT_EQ(read_text(file, 4).value(), "1234");
    const auto text = read_text(file, 3);
    ASSERT_FALSE(text.has_value());
    EXPECT_EQ(text.error().front().rule, "too-large");
}

TEST_F(JsonFile, IsReplacedWholeAndLeavesNoPartialFile) {
    const auto file = write("out.json", "old");
    ASSERT_TRUE(write_whole(file, "new text").has_value());
    EXPECT_EQ(read_text(file).value(), "new text");
    EXPECT_FALSE(std::filesystem::exists(path("out.json.partial")));
}

TEST_F(JsonFile, IsWrittenInPiecesOrStaysUntouchedWhereItIsGivenUp) {
    const auto file = write("out.json", "old");
    const auto kept = write_whole(file, [](const TextSink& sink) { return sink("ne") && false; });
    ASSERT_TRUE(kept.has_value());
    EXPECT_FALSE(*kept);
    EXPECT_EQ(read_text(file).value(), "old");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator{file.parent_path()}, {}), 1);
    const auto written = write_whole(file, [](const TextSink& sink) { return sink("ne") && sink("w"); });
    ASSERT_TRUE(written.has_value());
    EXPECT_TRUE(*written);
    EXPECT_EQ(read_text(file).value(), "new");
    // A full device fails even where all was produced.
    EXPECT_FALSE(write_whole("/dev/full", [](const TextSink& sink) { return sink("text"); }).has_value());
}

TEST_F(JsonFile, IsWrittenPieceByPieceOrNotAtAll) {
    const auto file = write("pieces.json", "old");
    ASSERT_TRUE(write_whole(file, [](std::ostream& stream) { return static_cast<bool>(stream << "new " << "text"); }).has_value());
    EXPECT_EQ(read_text(file).value(), "new text");
    const auto failed = write_whole(file, [](std::ostream& stream) {
        stream << "half";
        stream.setstate(std::ios::failbit);
        return true;
    });
    ASSERT_FALSE(failed.has_value());
    EXPECT_EQ(failed.error().front().rule, "unwritable");
    EXPECT_EQ(read_text(file).value(), "new text");
}

TEST_F(JsonFile, IsNotWrittenIntoAMissingFolder) {
    const auto written = write_whole(path("none") / "out.json", "text");
    ASSERT_FALSE(written.has_value());
    EXPECT_EQ(written.error().front().code, ErrorCode::kIo);
    EXPECT_EQ(written.error().front().rule, "unwritable");
}

TEST_F(JsonFile, StaysUntouchedWhereItCannotBeReplaced) {
    // A folder with a file in it cannot be replaced by a file.
    std::filesystem::create_directory(path("taken"));
    const auto inner = write("taken/inner.json", "kept");
    ASSERT_FALSE(write_whole(path("taken"), "text").has_value());
    EXPECT_EQ(read_text(inner).value(), "kept");
    EXPECT_FALSE(std::filesystem::exists(path("taken.partial")));
}

}  // namespace
}  // namespace refit::io
