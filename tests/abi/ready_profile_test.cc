// A profile file is parsed once, and another content of the same file is seen.

#include "bindings/c/ready_profile.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "src/core/base/file_io.h"

namespace gpushare::abi {
namespace {

std::string Text(const ReadyProfile& ready) {
  return models::FormatProfile(ready.profile) + models::FormatLearned(ready.learned);
}

void Write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

TEST(ReadyProfileTest, AFileGivesWhatItHoldsEachTime) {
  const char* const source = std::getenv("GPUSHARE_TEST_PROFILE");
  ASSERT_NE(source, nullptr);
  const std::string path = ::testing::TempDir() + "/gpushare_ready_profile_test.json";
  const std::string text = *core::ReadWholeFile(source, models::kProfileBytesMax);
  Write(path, text);
  const auto first = ReadProfileFile(path).value();
  const auto again = ReadProfileFile(path).value();
  EXPECT_EQ(Text(again), Text(first));
  const auto built_in = ReadBuiltInProfile().value();
  EXPECT_EQ(Text(built_in), Text(first)) << "the file is the one that is built in";
  EXPECT_FALSE(first.learned.pairs.empty());

  models::Profile other = first.profile;
  other.device.name = "another";
  Write(path, models::FormatProfile(other));
  const auto changed = ReadProfileFile(path).value();
  EXPECT_EQ(changed.profile.device.name, "another");
  EXPECT_TRUE(changed.learned.pairs.empty());

  Write(path, text.substr(0, text.size() / 2));
  const auto cut = ReadProfileFile(path);
  ASSERT_FALSE(cut.ok());
  EXPECT_NE(std::string(cut.status().message()).find(path), std::string::npos);
  EXPECT_FALSE(ReadProfileFile(path + ".none").ok());
}

}  // namespace
}  // namespace gpushare::abi
