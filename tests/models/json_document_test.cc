// Reading JSON by SAX: what is read is what the text says, and each bound has its message. Writing
// it without a tree: the text is nlohmann-json's own.

#include "src/models/json/json_document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "src/models/json/json_writer.h"

namespace gpushare::models {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kBytesMax = int64_t{16} << 20;

std::string ErrorOf(const std::string& text) {
  const absl::StatusOr<JsonDocument> read = ParseStrictJson(text, "The text", kBytesMax);
  EXPECT_FALSE(read.ok());
  if (read.ok()) return "";
  EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(read.status().message());
}

void Copy(const JsonValue& value, JsonWriter& json) {
  using Type = JsonDocument::Type;
  switch (value.type()) {
    case Type::kNull:
      return json.WriteNull();
    case Type::kBool:
      return json.Write(value.truth());
    case Type::kSigned:
      return json.Write(value.whole());
    case Type::kUnsigned:
      return json.Write(value.unsigned_whole());
    case Type::kDouble:
      return json.Write(value.number());
    case Type::kText:
      return json.Write(value.text());
    case Type::kArray:
      json.BeginArray();
      for (const JsonValue element : value) Copy(element, json);
      return json.EndArray();
    case Type::kObject:
      json.BeginObject();
      for (const JsonValue member : value) {
        json.Key(member.key());
        Copy(member, json);
      }
      return json.EndObject();
  }
}

constexpr char kEverything[] =
    R"({"a": [], "b": {}, "c": [1, -2, 18446744073709551615, 0.1, 1e22, 1e-7, 2.0, [[null]]],
        "d": {"e": true, "f": [{"g": "x\"\\\n\u00e4"}, {"h": false}]}, "i": ""})";

TEST(JsonDocumentTest, WhatIsReadAndWrittenIsWhatTheLibraryWrites) {
  const JsonDocument read = ParseStrictJson(kEverything, "The text", kBytesMax).value();
  const auto reference = nlohmann::ordered_json::parse(kEverything);
  for (const int indentation : {-1, 1, 2}) {
    std::string text;
    JsonWriter json(text, indentation);
    Copy(read.root(), json);
    EXPECT_EQ(text, reference.dump(indentation));
  }
}

TEST(JsonDocumentTest, BytesThatAreNotUtf8AreReplacedWhenTheyAreWritten) {
  std::string text;
  JsonWriter json(text, -1);
  json.Write("a\xff");
  EXPECT_EQ(text, "\"a\xef\xbf\xbd\"");
}

// As a message says what stands in the place of something else.
TEST(JsonDocumentTest, EachValueIsShownAsItStands) {
  const auto shown = [](const std::string& text) {
    const absl::StatusOr<JsonDocument> read = ParseStrictJson(text, "The text", kBytesMax);
    EXPECT_TRUE(read.ok()) << read.status();
    return read.ok() ? ShowJson(read->root()) : "";
  };
  for (const char* value : {"true", "false", "null", "-2", "18446744073709551615", "0.25",
                            "\"text\"", "\"\"", "\"a \\\"quote\\\"\""}) {
    EXPECT_EQ(shown(value), value);
  }
  EXPECT_EQ(shown("{\"a\": 1}"), "an object");
  EXPECT_EQ(shown("[1]"), "an array");
}

TEST(JsonDocumentTest, EachBoundHasItsMessage) {
  EXPECT_EQ(ErrorOf("{\"a\": 1, \"b\": {\"c\": 1, \"c\": 2}}"),
            "The text has the key \"c\" twice in one object.");
  EXPECT_EQ(ErrorOf(std::string(100, '[') + std::string(100, ']')),
            "The text nests deeper than 16 levels, which is the limit.");
  EXPECT_EQ(ErrorOf("{\"a\": }"), "The text is not valid JSON: reading stops at byte 7 of 7.");
  EXPECT_THAT(ErrorOf("[1e999]"), HasSubstr("out of range"));
  EXPECT_THAT(ErrorOf("[1] 2"), HasSubstr("not valid JSON"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("reading stops"));
  std::string keys = "{";
  for (int i = 0; i < 300; ++i) absl::StrAppend(&keys, i == 0 ? "" : ",", "\"k", i, "\":0");
  EXPECT_EQ(ErrorOf(keys + "}"),
            "The text has more than 256 keys in one object, which is the limit.");
  std::string values = "[0";
  for (int i = 0; i < (1 << 21); ++i) values += ",0";
  EXPECT_EQ(ErrorOf(values + "]"), "The text has more than 2097152 values, which is the limit.");
  const absl::StatusOr<JsonDocument> large = ParseStrictJson("[1,2]", "The text", 4);
  EXPECT_EQ(large.status().message(), "The text has 5 bytes, and the limit is 4.");
}

}  // namespace
}  // namespace gpushare::models
