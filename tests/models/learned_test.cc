// The text of a learned model: what is written is read back, and what is out of range is refused.

#include "src/models/learned.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gpushare::models {
namespace {

using ::testing::HasSubstr;

TEST(LearnedTest, WhatIsWrittenIsReadBack) {
  Learned learned;
  learned.kernels.resize(1);
  learned.kernels[0].name = "decode";
  learned.kernels[0].solo.samples = 5;
  learned.kernels[0].eviction = {250e3, 1e3, true};
  learned.kernels[0].blocking.mean = 200e3;
  learned.copies.push_back({2, true, {}});
  learned.pairs.push_back({"decode", "train", 84, {7, 0.5, 0}});
  learned.fused.push_back({"pair", 0.04, {{0.5, 1.1}, {2, 2.4}}});
  const std::string text = FormatLearned(learned);
  const absl::StatusOr<Learned> read = ParseLearned(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(FormatLearned(*read), text);
  EXPECT_EQ(read->kernels.at(0).eviction.mean_ns, 250e3);
  EXPECT_EQ(read->copies.at(0).direction, 2);
  EXPECT_EQ(read->pairs.at(0).speed.mean, 0.5);
  EXPECT_EQ(read->fused.at(0).error, 0.04);
  EXPECT_EQ(read->fused.at(0).points.at(1).duration_ratio, 2.4);
}

TEST(LearnedTest, AKernelNeedsANameAndATextItsVersion) {
  EXPECT_THAT(ParseLearned("{}").status().message(), HasSubstr("'schema_version' is missing"));
  EXPECT_THAT(ParseLearned(R"({"schema_version": 2})").status().message(),
              HasSubstr("it must be 1"));
  EXPECT_THAT(ParseLearned(R"({"schema_version": 1, "kernels": [{}]})").status().message(),
              HasSubstr("'kernels[0]' needs a 'name'"));
  EXPECT_THAT(ParseLearned(R"({"schema_version": 1, "pairs": [{"speed": {"mean": 11}}]})")
                  .status()
                  .message(),
              HasSubstr("'pairs[0].speed.mean' is 11, and it must be from 0 to 10"));
}

}  // namespace
}  // namespace gpushare::models
