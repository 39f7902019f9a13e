// a / m + b over SM count, and the kinds of kernels by their counters.

#include "src/models/durations/thesis_scaling.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace gpushare::models {
namespace {

using core::KernelCounters;

constexpr int32_t kSms = 132;

// As an H200 counted them (benchmarks/samples/h200.jsonl.gz).
KernelCounters Counted(double dram, double issue, double l1) {
  KernelCounters counters = {.instructions = 1000, .issue = issue, .l1 = l1, .dram = dram};
  return counters;
}
KernelCounters Streaming() { return Counted(0.81, 0.03, 0.26); }
KernelCounters BlackScholes() { return Counted(0.85, 0.59, 0.24); }
KernelCounters Histogram() { return Counted(0.50, 0.36, 1.00); }
KernelCounters Sincos() { return Counted(0, 0.60, 0.01); }

TEST(FitTimeOverSmsTest, FindsBothTermsOfTheThesis) {
  std::vector<TimeOnSms> points;
  for (int32_t sms = 4; sms <= kSms; sms += 4) points.push_back({sms, 9000.0 / sms + 250});
  const TimeOverSms fit = FitTimeOverSms(points);
  EXPECT_NEAR(fit.a, 9000, 1e-6);
  EXPECT_NEAR(fit.b, 250, 1e-6);
  EXPECT_NEAR(fit.NsOn(66), 9000.0 / 66 + 250, 1e-6);
  EXPECT_LT(fit.error_worst, 1e-9);
  EXPECT_EQ(fit.NsOn(0), 0);
}

TEST(FitTimeOverSmsTest, ErrorsAreRelativeAndNoTermIsNegative) {
  // More than in proportion: b would be negative.
  TimeOverSms fit = FitTimeOverSms({{10, 1000}, {20, 450}});
  EXPECT_EQ(fit.b, 0);
  EXPECT_GT(fit.a, 9000);
  // Slower on more SMs: a would be negative.
  fit = FitTimeOverSms({{10, 100}, {20, 110}});
  EXPECT_EQ(fit.a, 0);
  EXPECT_NEAR(fit.b, 104.5, 0.1);
  EXPECT_NEAR(fit.error_mean, 0.5 * (std::abs(fit.b / 100 - 1) + std::abs(fit.b / 110 - 1)), 1e-9);
  EXPECT_NEAR(fit.error_worst, std::abs(fit.b / 110 - 1), 1e-9);
  // A knee at 66 SMs: the line is above it and below it elsewhere, in shares of the time.
  std::vector<TimeOnSms> knee;
  for (int32_t sms = 8; sms <= kSms; sms += 4) {
    knee.push_back({sms, 1e6 / std::min(1.0, sms / 66.0)});
  }
  fit = FitTimeOverSms(knee);
  EXPECT_GT(fit.error_mean, 0.05);
  EXPECT_LT(fit.error_worst, 0.25);
}

TEST(FitTimeOverSmsTest, FewPointsAndBadOnesGiveAFiniteLine) {
  EXPECT_EQ(FitTimeOverSms({}).NsOn(66), 0);
  EXPECT_DOUBLE_EQ(FitTimeOverSms({{66, 500}}).NsOn(33), 500);
  EXPECT_DOUBLE_EQ(FitTimeOverSms({{66, 500}, {66, 500}}).NsOn(33), 500);
  EXPECT_DOUBLE_EQ(FitTimeOverSms({{66, 500}, {0, 7}, {-4, 7}, {8, 0}}).NsOn(33), 500);
}

TEST(CountedIntensityTest, FollowsWhatTheKernelIsBoundBy) {
  EXPECT_EQ(CountedIntensity(Streaming()), Intensity::kMemory);
  EXPECT_EQ(CountedIntensity(BlackScholes()), Intensity::kMemory);
  EXPECT_EQ(CountedIntensity(Sincos()), Intensity::kCompute);
  EXPECT_EQ(CountedIntensity(Histogram()), Intensity::kCompute) << "its L1 is full on every SM";
  EXPECT_EQ(CountedIntensity({}), Intensity::kUnknown);
}

TEST(CountedSpeedTest, MemoryIntensiveKernelsAreFlatFromTheirKnee) {
  EXPECT_NEAR(CountedKnee(Streaming()) * kSms, 58, 0.5);
  EXPECT_NEAR(CountedKnee(BlackScholes()) * kSms, 93.5, 0.5) << "its SMs are busier";
  EXPECT_DOUBLE_EQ(CountedSpeedOnSms(Streaming(), 60, kSms), 1);
  EXPECT_NEAR(CountedSpeedOnSms(Streaming(), 29, kSms), 0.5, 0.01);
  EXPECT_LT(CountedSpeedOnSms(BlackScholes(), 60, kSms), 0.7);
}

TEST(CountedSpeedTest, OtherKernelsRunInProportion) {
  for (const KernelCounters& counters : {Sincos(), Histogram(), KernelCounters()}) {
    EXPECT_DOUBLE_EQ(CountedSpeedOnSms(counters, 33, kSms), 0.25);
    EXPECT_DOUBLE_EQ(CountedSpeedOnSms(counters, 2 * kSms, kSms), 1);
    EXPECT_EQ(CountedSpeedOnSms(counters, 0, kSms), 0);
    EXPECT_EQ(CountedSpeedOnSms(counters, 33, 0), 0);
  }
}

}  // namespace
}  // namespace gpushare::models
