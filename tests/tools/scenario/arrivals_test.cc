// Arrivals have the asked rate and shape, are the same for the same seed, and traces are read
// exactly.

#include "tools/gpushare/scenario/arrivals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
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

ArrivalSpec Phases(std::vector<ArrivalPhase> phases, bool random = false) {
  ArrivalSpec spec;
  spec.kind = ArrivalKind::kPhases;
  spec.phases = std::move(phases);
  spec.random_phases = random;
  return spec;
}

ArrivalSpec Batches(double mean_size) {
  ArrivalSpec spec;
  spec.kind = ArrivalKind::kBatches;
  spec.batch_size = mean_size;
  return spec;
}

// Share of the times that lie in [from, to) of a round.
double ShareWithin(const std::vector<int64_t>& times, int64_t round, int64_t from, int64_t to) {
  const auto inside = std::count_if(times.begin(), times.end(), [&](int64_t time) {
    return time % round >= from && time % round < to;
  });
  return static_cast<double>(inside) / static_cast<double>(times.size());
}

TEST(ArrivalsTest, SporadicJobsAreAPeriodApartOrMore) {
  ArrivalSpec spec;
  spec.kind = ArrivalKind::kSporadic;
  spec.period_ns = 1'000'000;
  ArrivalRequest request = Request();
  request.mean_gap_ns = 0;  // they follow no load
  const std::vector<double> exact = Gaps(MakeArrivals(spec, request));
  ASSERT_EQ(exact.size(), static_cast<size_t>(kCount - 1));
  EXPECT_EQ(*std::min_element(exact.begin(), exact.end()), 1e6);
  EXPECT_EQ(*std::max_element(exact.begin(), exact.end()), 1e6);
  spec.jitter = 0.2;
  const std::vector<int64_t> times = MakeArrivals(spec, request);
  EXPECT_EQ(times.front(), 0) << "all apps of a case release a job at the start";
  const std::vector<double> gaps = Gaps(times);
  EXPECT_GE(*std::min_element(gaps.begin(), gaps.end()), 1e6);
  EXPECT_LE(*std::max_element(gaps.begin(), gaps.end()), 1.2e6);
  EXPECT_NEAR(MeanOf(gaps), 1.1e6, 2e3);
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
    const ArrivalSpec spec = Phases({{50'000'000, 1, 1}, {100'000'000, 0, 0}}, random);
    const std::vector<int64_t> times = MakeArrivals(spec, Request());
    EXPECT_NEAR(MeanOf(Gaps(times)), kGapNs, 0.05 * kGapNs) << random;
    if (random) continue;
    for (const int64_t time : times) ASSERT_LT(time % 150'000'000, 50'000'000);
  }
}

TEST(ArrivalsTest, BurstsHaveTheTimesThatTheyAlwaysHad) {
  // Pinned: published results have these arrivals.
  ArrivalRequest request = Request();
  request.queries_max = 4;
  for (const bool random : {false, true}) {
    const ArrivalSpec spec = Phases({{1'000'000, 1, 1}, {2'000'000, 0, 0}}, random);
    const std::vector<int64_t> pinned =
        random ? std::vector<int64_t>{1'340'558, 1'871'099, 8'047'184, 9'329'642}
               : std::vector<int64_t>{3'340'558, 6'668'632, 9'199'173, 15'773'893};
    EXPECT_EQ(MakeArrivals(spec, request), pinned) << random;
  }
}

TEST(ArrivalsTest, EachPhaseHasItsShareOfTheQueries) {
  const std::vector<int64_t> times =
      MakeArrivals(Phases({{30'000'000, 1, 1}, {10'000'000, 5, 5}, {20'000'000, 2, 2}}), Request());
  EXPECT_NEAR(MeanOf(Gaps(times)), kGapNs, 0.02 * kGapNs);
  EXPECT_NEAR(ShareWithin(times, 60'000'000, 0, 30'000'000), 30.0 / 120, 0.01);
  EXPECT_NEAR(ShareWithin(times, 60'000'000, 30'000'000, 40'000'000), 50.0 / 120, 0.01);
}

TEST(ArrivalsTest, ARampIsAStraightLineUpAndDown) {
  const std::vector<int64_t> times =
      MakeArrivals(Phases({{40'000'000, 0, 3}, {40'000'000, 3, 1}}), Request());
  EXPECT_NEAR(MeanOf(Gaps(times)), kGapNs, 0.02 * kGapNs);
  // Areas under the line: 60 going up, a quarter of it in the first half; 80 going down.
  EXPECT_NEAR(ShareWithin(times, 80'000'000, 0, 20'000'000), 15.0 / 140, 0.01);
  EXPECT_NEAR(ShareWithin(times, 80'000'000, 20'000'000, 40'000'000), 45.0 / 140, 0.01);
  EXPECT_NEAR(ShareWithin(times, 80'000'000, 40'000'000, 60'000'000), 50.0 / 140, 0.01);
}

TEST(ArrivalsTest, RandomPhasesKeepTheMeanRateAndVisitEachOther) {
  for (const std::vector<ArrivalPhase>& phases :
       {std::vector<ArrivalPhase>{{50'000'000, 1, 1}, {20'000'000, 7, 7}},
        std::vector<ArrivalPhase>{
            {20'000'000, 1, 1}, {40'000'000, 5, 5}, {20'000'000, 0, 4}, {80'000'000, 8, 8}}}) {
    const std::vector<double> gaps = Gaps(MakeArrivals(Phases(phases, true), Request()));
    EXPECT_NEAR(MeanOf(gaps), kGapNs, 0.05 * kGapNs) << phases.size();
    EXPECT_GT(VariationOf(gaps), 1.1) << phases.size();
  }
}

TEST(ArrivalsTest, BatchesArriveAtOnceAndKeepTheMeanRate) {
  const std::vector<int64_t> times = MakeArrivals(Batches(4), Request());
  EXPECT_NEAR(MeanOf(Gaps(times)), kGapNs, 0.03 * kGapNs);
  std::map<int64_t, int> sizes;
  for (const int64_t time : times) ++sizes[time];
  EXPECT_NEAR(static_cast<double>(times.size()) / static_cast<double>(sizes.size()), 4, 0.1);
  int single = 0;
  for (const auto& [time, size] : sizes) {
    ASSERT_LE(size, 64);
    single += size == 1 ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(single) / static_cast<double>(sizes.size()), 0.25, 0.01);
  const std::vector<int64_t> alone = MakeArrivals(Batches(1), Request());
  EXPECT_EQ(std::adjacent_find(alone.begin(), alone.end()), alone.end());
}

TEST(ArrivalsTest, PhasesAndBatchesFollowTheSeed) {
  for (const ArrivalSpec& spec :
       {Phases({{9'000'000, 1, 2}, {5'000'000, 4, 0}, {7'000'000, 3, 3}}, true), Batches(3)}) {
    EXPECT_EQ(MakeArrivals(spec, Request(5)), MakeArrivals(spec, Request(5)));
    EXPECT_NE(MakeArrivals(spec, Request(5)), MakeArrivals(spec, Request(6)));
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
      "t.csv", {"TIMESTAMP"});
  EXPECT_EQ(times, (std::vector<int64_t>{0, 52'000'000, 1'020'040'000}));
}

TEST(TraceTest, ReadsSecondsAndSortsThem) {
  EXPECT_EQ(ParseTrace("t\r\n2.5\r\n1.25\r\n\r\n3\r\n", "t.csv", {}),
            (std::vector<int64_t>{0, 1'250'000'000, 1'750'000'000}));
}

// As the Azure LLM trace of 2024 has them.
TEST(TraceTest, ReadsOffsetsFromUtc) {
  EXPECT_EQ(ParseTrace("TIMESTAMP\n2024-05-10 00:00:00.009930+00:00\n"
                       "2024-05-10 02:00:01.009930+02:00\n2024-05-09T18:30:02.00993-0530\n"
                       "2024-05-10 01:00:03.00993+01\n2024-05-10 00:00:04.00993Z\n",
                       "t.csv", {}),
            (std::vector<int64_t>{0, 1'000'000'000, 2'000'000'000, 3'000'000'000, 4'000'000'000}));
}

TEST(TraceTest, ACommaInQuotesBelongsToItsCell) {
  const std::vector<int64_t> expected = {0, 1'000'000'000, 2'000'000'000};
  EXPECT_EQ(ParseTrace("\"tokens, in\",time\n\"12,7\",3.25\n\"a \"\"b\"\", c\",4.25\n8,\"5.25\"\n",
                       "t.csv", {"time"}),
            expected);
  EXPECT_EQ(
      ParseTrace("prompt,time\n\"two\nlines\",3.25\nx,4.25\n \"y,\" , 5.25\n", "t.csv", {"time"}),
      expected);
}

TEST(TraceTest, SkipsAByteOrderMark) {
  EXPECT_EQ(ParseTrace("\xEF\xBB\xBFTIMESTAMP,x\n1,2\n3,4\n", "t.csv", {"TIMESTAMP"}),
            (std::vector<int64_t>{0, 2'000'000'000}));
}

// As Mooncake's traces have them: milliseconds.
TEST(TraceTest, ReadsJsonLines) {
  EXPECT_EQ(ParseTrace("{\"timestamp\": 27482, \"hash_ids\": [1, 2]}\r\n\n"
                       "{\"timestamp\": 27491.5, \"hash_ids\": []}\n",
                       "t.jsonl", {"timestamp", 1'000'000}),
            (std::vector<int64_t>{0, 9'500'000}));
  EXPECT_EQ(ParseTrace("{\"t\": \"2024-05-10 00:00:01+00:00\"}\n{\"t\": \"2024-05-10 00:00:00Z\"}",
                       "t.jsonl", {"t"}),
            (std::vector<int64_t>{0, 1'000'000'000}));
}

TEST(TraceTest, NumbersAreOfTheUnit) {
  EXPECT_EQ(ParseTrace("t\n1000\n1250\n", "t.csv", {"", 1'000'000}),
            (std::vector<int64_t>{0, 250'000'000}));
}

TEST(TraceTest, BadRowsAreNamed) {
  const auto error = [](const char* text, const char* column) -> std::string {
    try {
      ParseTrace(text, "t.csv", {column});
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
  EXPECT_THAT(error("t\n1\n2024-02-30 00:00:00\n", ""), ::testing::HasSubstr("line 3"));
  EXPECT_THAT(error("t\n1\n2024-02-29 00:00:00+1:00\n", ""), ::testing::HasSubstr("line 3"));
  EXPECT_THAT(error("t\n\"a\nb\"\n", ""), ::testing::HasSubstr("line 2"));
  EXPECT_THAT(error("t\n1\n\"2\n", ""), ::testing::HasSubstr("quote in line 3"));
  EXPECT_THAT(error("t\n7\n7\n7\n", ""), ::testing::HasSubstr("same time in each of its 3 rows"));
  EXPECT_THAT(error("{\"t\": 1}\n{\"t\": 2}\n", ""), ::testing::HasSubstr("time_column"));
  EXPECT_THAT(error("{\"t\": 1}\n{\"u\": 2}\n", "t"), ::testing::HasSubstr("line 2"));
  EXPECT_THAT(error("{\"t\": 1}\n{\"t\": \n", "t"), ::testing::HasSubstr("line 2"));
  EXPECT_THAT(error("{\"t\": 1}\n{\"t\": [2]}\n", "t"), ::testing::HasSubstr("line 2"));
}

}  // namespace
}  // namespace gpushare::tool
