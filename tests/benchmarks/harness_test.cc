// The harness of the benchmarks: quantiles, arguments, JSON, how a program fails.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "benchmarks/harness/arguments.h"
#include "benchmarks/harness/failure.h"
#include "benchmarks/harness/json.h"
#include "benchmarks/harness/quantiles.h"
#include "benchmarks/harness/random.h"

namespace gpushare::benchmarks {
namespace {

// By sorting: no value may be nearer to the asked rank.
double ExactQuantile(std::vector<double> values, double quantile) {
  std::sort(values.begin(), values.end());
  size_t best = 0;
  double nearest = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < values.size(); ++i) {
    const double distance =
        std::abs(static_cast<double>(i) - quantile * static_cast<double>(values.size() - 1));
    if (distance > nearest) continue;  // of two that are as near, the larger value
    nearest = distance;
    best = i;
  }
  return values[best];
}

TEST(QuantilesTest, AreExact) {
  Random random(1);
  for (size_t count = 1; count <= 130; ++count) {
    std::vector<double> values;
    for (size_t i = 0; i < count; ++i) values.push_back(random.Between(-5, 5));
    for (const double quantile : {0.0, 0.01, 0.05, 0.25, 0.5, 0.9, 0.95, 0.99, 1.0}) {
      EXPECT_EQ(Quantile(values, quantile), ExactQuantile(values, quantile))
          << count << " values at " << quantile;
    }
  }
}

TEST(QuantilesTest, KnownValues) {
  std::vector<int64_t> values;
  for (int64_t i = 100; i > 0; --i) values.push_back(i);
  EXPECT_EQ(Quantile(values, 0), 1);
  EXPECT_EQ(Median(values), 51);
  EXPECT_EQ(Quantile(values, 0.99), 99);
  EXPECT_EQ(Quantile(values, 1), 100);
  EXPECT_EQ(Median(std::vector<double>{3, 1, 2}), 2);
  EXPECT_EQ(Median(std::vector<double>{}), 0);
}

TEST(RandomTest, ASeedRepeatsItsSequence) {
  Random a(7);
  Random b(7);
  Random other(8);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const double value = a.Between(2, 3);
    EXPECT_EQ(value, b.Between(2, 3));
    EXPECT_GE(value, 2);
    EXPECT_LT(value, 3);
    differs = differs || value != other.Between(2, 3);
  }
  EXPECT_TRUE(differs);
}

TEST(ArgumentsTest, AreReadByName) {
  Arguments given({"--ms", "2.5", "--check", "--only", "a,,b", "--sizes", "8,16", "--seed", "9"});
  EXPECT_EQ(given.Real("--ms", 1, 0.1), 2.5);
  EXPECT_EQ(given.Number("--repeats", 7, 1), 7);
  EXPECT_TRUE(given.Has("--check"));
  EXPECT_FALSE(given.Has("--other"));
  EXPECT_EQ(given.List("--only", {}), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(given.Numbers("--sizes", {1}, 1), (std::vector<int>{8, 16}));
  EXPECT_EQ(given.Seed(), 9U);
  given.Finish();
}

// The sentence with which `read` refuses the arguments.
template <class Read>
std::string Refusal(std::vector<std::string> words, const Read& read) {
  Arguments given(std::move(words));
  try {
    read(given);
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.exit_code(), kBadUse);
    return failure.what();
  }
  return "nothing is refused";
}

TEST(ArgumentsTest, WhatIsWrongIsRefused) {
  const auto number = [](Arguments& given) { given.Number("--repeats", 7, 1); };
  EXPECT_EQ(Refusal({"--repeats", "0"}, number),
            "--repeats is '0', and it must be a number of at least 1.");
  EXPECT_EQ(Refusal({"--repeats", "3x"}, number),
            "--repeats is '3x', and it must be a number of at least 1.");
  EXPECT_EQ(Refusal({"--repeats", "1.5"}, number),
            "--repeats is '1.5', and it must be a whole number below 2^31.");
  EXPECT_EQ(Refusal({"--repeats"}, number), "--repeats has no value.");
  EXPECT_EQ(Refusal({"--seed", "x"}, [](Arguments& given) { given.Seed(); }),
            "--seed is 'x', and it must be a whole number.");
}

TEST(ArgumentsTest, WhatNobodyReadIsRefusedWithWhatThereIs) {
  EXPECT_EQ(Refusal({"--repeat", "3"},
                    [](Arguments& given) {
                      given.Number("--repeats", 7, 1);
                      given.Has("--check");
                      given.Finish();
                    }),
            "'--repeat' is no option; there are [--repeats VALUE] [--check].");
}

TEST(ArgumentsTest, AnEmptyChoiceHasAll) {
  EXPECT_TRUE(IsChosen({}, "a"));
  EXPECT_TRUE(IsChosen({"b", "a"}, "a"));
  EXPECT_FALSE(IsChosen({"ab"}, "a"));
}

struct AbslLike {
  bool ok() const { return false; }
  std::string message() const { return "as absl says it"; }
};
struct KernelsLike {
  bool ok() const { return false; }
  std::string message = "as the kernels say it";
};

TEST(FailureTest, EveryStatusGivesItsSentence) {
  EXPECT_EQ(MessageOf(AbslLike()), "as absl says it");
  EXPECT_EQ(MessageOf(KernelsLike()), "as the kernels say it");
  EXPECT_THROW(Require(AbslLike()), Failure);
  EXPECT_THROW(Require(KernelsLike()), Failure);
}

TEST(FailureTest, MainGivesItsExitCodeAndSentence) {
  char name[] = "program";
  char* words[] = {name};
  testing::internal::CaptureStderr();
  const int code = Main("program", 1, words,
                        [](Arguments&) -> int { throw Failure("There is no GPU.", kNoGpu); });
  EXPECT_EQ(code, kNoGpu);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "program: There is no GPU.\n");
  EXPECT_EQ(Main("program", 1, words, [](Arguments&) { return 5; }), 5);
}

TEST(JsonTest, RoundsToWhatWasMeasured) {
  EXPECT_EQ(Rounded(1.23456, 4).dump(), "1.2346");
  EXPECT_EQ(Rounded(-0.1, 1).dump(), "-0.1");
  EXPECT_EQ(Rounded(27.04, 1).dump(), "27.0");
  EXPECT_TRUE(Rounded(std::nan(""), 4).is_null());
  EXPECT_TRUE(Rounded(1.0 / 0.0, 4).is_null());
}

TEST(JsonTest, AReportIsOneObjectInTheOrderOfItsKeys) {
  testing::internal::CaptureStdout();
  Report report({{"benchmark", "b"}, {"a \"name\"", 1}}, "rows");
  report.Row({{"z", 1}, {"a", "\xFF"}});
  report.Row({{"z", 2}});
  report.End({{"left_out", Json::array()}});
  const std::string text = testing::internal::GetCapturedStdout();
  const Json json = Json::parse(text);
  EXPECT_EQ(json["rows"].size(), 2U);
  EXPECT_EQ(json["rows"][1]["z"], 2);
  EXPECT_EQ(json["a \"name\""], 1);
  EXPECT_TRUE(json["left_out"].is_array());
  EXPECT_LT(text.find("\"benchmark\""), text.find("\"rows\""));
  EXPECT_LT(text.find("\"z\""), text.find("\"a\""));
}

TEST(JsonTest, AReportWithoutRowsAndTailIsWhole) {
  testing::internal::CaptureStdout();
  Report report({{"benchmark", "b"}}, "rows");
  report.End();
  EXPECT_TRUE(Json::parse(testing::internal::GetCapturedStdout())["rows"].empty());
}

}  // namespace
}  // namespace gpushare::benchmarks
