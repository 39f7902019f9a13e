// The packed profile is what the reader makes of profiles/h200.json.

#include "bindings/c/built_in_profile.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "src/core/base/file_io.h"
#include "src/models/learned/learned.h"
#include "src/models/profile/profile.h"

namespace gpushare::abi {
namespace {

using models::JsonDocument;
using models::JsonValue;

std::string ProfileText() {
  const char* const path = std::getenv("GPUSHARE_TEST_PROFILE");
  EXPECT_NE(path, nullptr);
  const absl::StatusOr<std::string> text =
      core::ReadWholeFile(path == nullptr ? "" : path, models::kProfileBytesMax);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? *text : "";
}

// Values, keys and order; `places` counts what was compared.
void ExpectSame(JsonValue packed, JsonValue parsed, int& places) {
  ++places;
  ASSERT_EQ(packed.key(), parsed.key());
  ASSERT_EQ(packed.type(), parsed.type()) << packed.key();
  switch (packed.type()) {
    case JsonDocument::Type::kArray:
    case JsonDocument::Type::kObject: {
      ASSERT_EQ(packed.size(), parsed.size()) << packed.key();
      auto other = parsed.begin();
      for (const JsonValue child : packed) {
        ASSERT_NO_FATAL_FAILURE(ExpectSame(child, *other, places));
        ++other;
      }
      return;
    }
    case JsonDocument::Type::kText:
      ASSERT_EQ(packed.text(), parsed.text()) << packed.key();
      return;
    case JsonDocument::Type::kBool:
      ASSERT_EQ(packed.truth(), parsed.truth()) << packed.key();
      return;
    case JsonDocument::Type::kNull:
      return;
    default:
      ASSERT_EQ(packed.number(), parsed.number()) << packed.key();
  }
}

TEST(BuiltInProfileTest, IsTheFileValueByValue) {
  const JsonDocument parsed =
      models::ParseStrictJson(ProfileText(), "The profile", models::kProfileBytesMax).value();
  int places = 0;
  const JsonDocument packed = BuiltInProfile();
  ASSERT_NO_FATAL_FAILURE(ExpectSame(packed.root(), parsed.root(), places));
  EXPECT_GT(places, 1000);
}

TEST(BuiltInProfileTest, ReadsAsTheFileReads) {
  const absl::StatusOr<models::Profile> packed = models::ReadProfile(BuiltInProfile());
  const absl::StatusOr<models::Profile> parsed = models::ParseProfile(ProfileText());
  ASSERT_TRUE(packed.ok()) << packed.status();
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(models::FormatProfile(*packed), models::FormatProfile(*parsed));
}

TEST(BuiltInProfileTest, WhatWasLearnedReadsAsItsTextReads) {
  const models::Profile profile = models::ParseProfile(ProfileText()).value();
  ASSERT_FALSE(profile.learned.empty());
  const absl::StatusOr<models::Learned> packed = models::ReadLearned(BuiltInLearned());
  const absl::StatusOr<models::Learned> parsed = models::ParseLearned(profile.learned);
  ASSERT_TRUE(packed.ok()) << packed.status();
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(models::FormatLearned(*packed), models::FormatLearned(*parsed));
}

}  // namespace
}  // namespace gpushare::abi
