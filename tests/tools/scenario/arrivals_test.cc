// Arrivals have the asked rate and shape, are the same for the same seed, and traces are read
// exactly.

#include "tools/gpushare/scenario/arrivals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tools/gpushare/base/errors.h"

namespace gpushare::tool {
namespace {

constexpr int64_t kCount = 200'000;
constexpr double kGapNs = 2e6;

ArrivalRequest Request(uint64_t seed = 1) {
  ArrivalRequest request = {.mean_gap_ns = kGapNs, .queries_max = kCount, .seed = seed};
  return request;
}

std::vector<double> Gaps(const std::vector<int64_t>& times) {
  std::vector<double> gaps;
  for (size_t i = 1; i < times.size(); ++i) {
    gaps.push_back(static_cast<double>(times[i] - times[i - 1]));
  }
  return gaps;
}

double MeanOf(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double VariationOf(const std::vector<double>& values) {
  const double mean = MeanOf(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size())) / mean;
}

TEST(ArrivalsTest, PeriodicIsExact) {
  ArrivalSpec spec;
  spec.kind = ArrivalKind::kPeriodic;
  ArrivalRequest request = Request();
  request.queries_max = 3;
  EXPECT_EQ(MakeArrivals(spec, request), (std::vector<int64_t>{2'000'000, 4'000'000, 6'000'000}));
}

TEST(ArrivalsTest, PoissonHasTheRateAndVariationOne) {
  const std::vector<double> gaps = Gaps(MakeArrivals(ArrivalSpec(), Request()));
  EXPECT_NEAR(MeanOf(gaps), kGapNs, 0.01 * kGapNs);
  EXPECT_NEAR(VariationOf(gaps), 1, 0.01);
}

TEST(ArrivalsTest, GammaHasTheAskedVariation) {
  for (const double cv : {0.3, 1.0, 3.0}) {
    ArrivalSpec spec;
    spec.kind = ArrivalKind::kGamma;
    spec.cv = cv;
    const std::vector<double> gaps = Gaps(MakeArrivals(spec, Request()));
    EXPECT_NEAR(MeanOf(gaps), kGapNs, 0.03 * kGapNs) << cv;
    EXPECT_NEAR(VariationOf(gaps), cv, 0.04 * cv) << cv;
  }
}

TEST(ArrivalsTest, BurstsKeepTheMeanRateAndTheSilences) {
  for (const bool random : {false, true}) {
    ArrivalSpec spec;
    spec.kind = ArrivalKind::kOnOff;
    spec.on_ns = 50'000'000;
    spec.off_ns = 100'000'000;
    spec.random_spells = random;
    const std::vector<int64_t> times = MakeArrivals(spec, Request());
    EXPECT_NEAR(MeanOf(Gaps(times)), kGapNs, 0.05 * kGapNs) << random;
    if (random) continue;
    for (const int64_t time : times) ASSERT_LT(time % 150'000'000, 50'000'000);
  }
}

TEST(ArrivalsTest, TheSeedDecidesAndNothingElse) {
  EXPECT_EQ(MakeArrivals(ArrivalSpec(), Request(5)), MakeArrivals(ArrivalSpec(), Request(5)));
  EXPECT_NE(MakeArrivals(ArrivalSpec(), Request(5)), MakeArrivals(ArrivalSpec(), Request(6)));
  // Pinned: another standard library must give the same numbers.
  ArrivalRequest request = Request(1);
  request.queries_max = 2;
  EXPECT_EQ(MakeArrivals(ArrivalSpec(), request), (std::vector<int64_t>{4'021'673, 8'005'897}));
}

TEST(ArrivalsTest, DurationCutsTheStream) {
  ArrivalRequest request = Request();
  request.duration_ns = 1'000'000'000;
  const std::vector<int64_t> times = MakeArrivals(ArrivalSpec(), request);
  EXPECT_LT(times.back(), 1'000'000'000);
  EXPECT_NEAR(static_cast<double>(times.size()), 500, 100);
}

TEST(ArrivalsTest, ExplicitTimesAreKeptOrStretched) {
  ArrivalSpec spec;
  spec.kind = ArrivalKind::kExplicit;
  spec.times_ns = {10, 20, 50};
  spec.scaled = false;
  EXPECT_EQ(MakeArrivals(spec, Request()), spec.times_ns);
  spec.scaled = true;  // two gaps of 2 ms on average
  EXPECT_EQ(MakeArrivals(spec, Request()), (std::vector<int64_t>{0, 1'000'000, 4'000'000}));
}

TEST(TraceTest, ReadsTimeStampsExactly) {
  const std::vector<int64_t> times = ParseTrace(
      "id,TIMESTAMP\n1,2023-11-16 23:59:59.9799600\n2,2023-11-17 00:00:00.0319600\n"
      "3,2023-11-17T00:00:01Z\n",
      "t.csv", "TIMESTAMP");
  EXPECT_EQ(times, (std::vector<int64_t>{0, 52'000'000, 1'020'040'000}));
}

TEST(TraceTest, ReadsSecondsAndSortsThem) {
  EXPECT_EQ(ParseTrace("t\r\n2.5\r\n1.25\r\n\r\n3\r\n", "t.csv", ""),
            (std::vector<int64_t>{0, 1'250'000'000, 1'750'000'000}));
}

TEST(TraceTest, BadRowsAreNamed) {
  const auto error = [](const char* text, const char* column) -> std::string {
    try {
      ParseTrace(text, "t.csv", column);
    } catch (const InputError& caught) {
      return caught.what();
    }
    return "";
  };
  EXPECT_THAT(error("t\n1\nx\n", ""), ::testing::HasSubstr("line 3"));
  EXPECT_THAT(error("t\n1\n-2\n", ""), ::testing::HasSubstr("line 3"));
  EXPECT_THAT(error("t\n1\nnan\n", ""), ::testing::HasSubstr("line 3"));
  EXPECT_THAT(error("t\n1\n2023-13-01 00:00:00\n", ""), ::testing::HasSubstr("line 3"));
  EXPECT_THAT(error("t\n1\n2\n", "time"), ::testing::HasSubstr("no column 'time'"));
  EXPECT_THAT(error("t\n1\n", ""), ::testing::HasSubstr("fewer than 2 rows"));
  EXPECT_THAT(error("", ""), ::testing::HasSubstr("fewer than 2 rows"));
}

}  // namespace
}  // namespace gpushare::tool
