// Eviction latencies: the prior of a kernel, and what measured evictions make of it.

#include "src/models/durations/eviction_model.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/base/limits.h"

namespace gpushare::models {
namespace {

constexpr double kUs = 1000;
constexpr EvictionState kPrior = {.mean_ns = 100 * kUs, .error_ns = 20 * kUs};

core::KernelDesc Kernel(int64_t block_task_ns, int64_t yield_interval_ns) {
  core::KernelDesc kernel;
  kernel.simulation.block_task_ns = block_task_ns;
  kernel.yield_interval_ns = yield_interval_ns;
  return kernel;
}

core::DeviceProfile Device() {
  core::DeviceProfile device;
  device.eviction_write_latency_ns = 2'000;
  return device;
}

void Observe(EvictionModel& model, double latency_ns, int count) {
  for (int i = 0; i < count; ++i) model.Observe(latency_ns);
}

// hardware.md: a 27 us block task leaves within 40 us (p99), 267 us within 262, 2.7 ms within
// 2,560.
TEST(EvictionPriorTest, IsTheWriteAndMostOfABlockTaskWithTheMeasuredTail) {
  for (const auto& [block_task_us, p99_us] :
       {std::pair{27, 40}, std::pair{267, 262}, std::pair{2700, 2560}}) {
    const EvictionState prior = EvictionPrior(Device(), Kernel(block_task_us * 1000, 0));
    EXPECT_NEAR(prior.mean_ns, 2'000 + 0.9 * block_task_us * kUs, 1);
    EXPECT_NEAR(prior.mean_ns + 2 * prior.error_ns, p99_us * kUs, 0.2 * p99_us * kUs);
    EXPECT_FALSE(prior.trained);
  }
}

TEST(EvictionPriorTest, WorkersLeaveAtTheEarlierOfBlockTaskAndYield) {
  const double block_task = EvictionPrior(Device(), Kernel(50'000, 0)).mean_ns;
  EXPECT_EQ(EvictionPrior(Device(), Kernel(0, 50'000)).mean_ns, block_task);
  EXPECT_EQ(EvictionPrior(Device(), Kernel(50'000, 80'000)).mean_ns, block_task);
  EXPECT_EQ(EvictionPrior(Device(), Kernel(80'000, 50'000)).mean_ns, block_task);
  EXPECT_EQ(EvictionPrior(Device(), Kernel(0, 0)).mean_ns,
            EvictionPrior(Device(), Kernel(100'000, 0)).mean_ns)
      << "nothing is known";
}

TEST(EvictionPriorTest, WorkersThatAreSlowerOrVaryMoreLeaveLater) {
  core::KernelDesc kernel = Kernel(100'000, 0);
  const EvictionState plain = EvictionPrior(Device(), kernel);
  kernel.simulation.worker_overhead = 0.5;
  EXPECT_NEAR(EvictionPrior(Device(), kernel).mean_ns, plain.mean_ns + 0.9 * 50'000, 1);
  kernel.simulation.worker_overhead = 0;
  kernel.simulation.block_task_spread = 0.2;
  EXPECT_NEAR(EvictionPrior(Device(), kernel).error_ns, plain.error_ns + 0.1 * 100'000, 1);
  EXPECT_EQ(EvictionPrior(Device(), kernel).mean_ns, plain.mean_ns);
}

TEST(EvictionPriorTest, AMeasuredGraphCountsItsLongestWaitAtTheP99AndTheMeanOfAllOtherwise) {
  constexpr int64_t kSegment = 100'000;
  std::vector<int64_t> durations_ns(90, kSegment);
  durations_ns[40] = 1'000'000;
  core::KernelDesc graph;
  graph.code = core::GraphCode();
  graph.graph()->cut.segments = 90;
  graph.graph()->cut.longest_ns = 1'000'000;
  graph.graph()->cut.blocking = core::SegmentBlocking(durations_ns, kSegment);
  const EvictionState prior = EvictionPrior(Device(), graph);
  // 3 us for the spread of the write, twice.
  EXPECT_NEAR(prior.mean_ns + 2 * prior.error_ns, 2'000 + 1'000'000 + 6'000, 1);
  // A tenth of the time in the long one, and else one and a half of the others.
  EXPECT_NEAR(prior.mean_ns, 2'000 + 0.1 * 500'000 + 0.9 * 150'000, 5'000);
  graph.graph()->cut.blocking = {};
  EXPECT_GT(EvictionPrior(Device(), graph).mean_ns, 1'400'000) << "only the longest is known";
}

TEST(EvictionModelTest, SamplesReplaceThePriorByAnEighthEach) {
  EvictionModel model(kPrior);
  for (int seen = 1; seen <= 10; ++seen) {
    model.Observe(60 * kUs);
    const double trust = std::min(seen, 8) / 8.0;
    EXPECT_NEAR(model.state().mean_ns, (100 - 40 * trust) * kUs, 1) << seen;
    EXPECT_NEAR(model.state().error_ns, (20 - 20 * trust) * kUs, 1) << seen;
    EXPECT_EQ(model.state().trained, seen >= 8) << seen;
  }
}

TEST(EvictionModelTest, ATrainedPriorStaysTrained) {
  EvictionModel model({.mean_ns = 100 * kUs, .error_ns = 20 * kUs, .trained = true});
  EXPECT_TRUE(model.Predict().trained);
  model.Observe(100 * kUs);
  EXPECT_TRUE(model.Predict().trained);
}

// 100 samples: the second largest is the p99.
TEST(EvictionModelTest, TheErrorIsHalfOfWhatSeparatesTheP99FromTheMean) {
  EvictionModel model(kPrior);
  Observe(model, 50 * kUs, 98);
  Observe(model, 120 * kUs, 2);
  const double mean = (98 * 50 + 2 * 120) / 100.0 * kUs;
  EXPECT_NEAR(model.state().mean_ns, mean, 1);
  EXPECT_NEAR(model.state().error_ns, (120 * kUs - mean) / 2, 1);
}

TEST(EvictionModelTest, OneOfAHundredIsNotTheP99) {
  EvictionModel model(kPrior);
  Observe(model, 50 * kUs, 99);
  Observe(model, 120 * kUs, 1);
  const double mean = (99 * 50 + 120) / 100.0 * kUs;
  const double deviation =
      std::sqrt((99 * std::pow(50 * kUs - mean, 2) + std::pow(120 * kUs - mean, 2)) / 100);
  EXPECT_NEAR(model.state().error_ns, deviation, 1) << "which bounds the tail from below";
}

// The bound is the prior's, 140 us, where all leave earlier, and what was seen where some do not.
TEST(EvictionModelTest, TheBoundPassesNeitherTheRecordNorWhatWasSeen) {
  EvictionModel early(kPrior);
  Observe(early, 20 * kUs, 50);
  Observe(early, 138 * kUs, 50);
  EXPECT_NEAR(early.state().mean_ns + 2 * early.state().error_ns, 140 * kUs, 1);
  EvictionModel late(kPrior);
  Observe(late, 20 * kUs, 50);
  Observe(late, 180 * kUs, 50);
  EXPECT_NEAR(late.state().mean_ns + 2 * late.state().error_ns, 180 * kUs, 1);
}

// The model before it kept its window in order: it sorted a copy for each sample.
EvictionState BySorting(const EvictionState& prior, const std::vector<double>& samples) {
  const size_t count = std::min<size_t>(samples.size(), 128);
  std::vector<float> sorted(samples.end() - static_cast<std::ptrdiff_t>(count), samples.end());
  std::sort(sorted.begin(), sorted.end());
  double sum = 0;
  double squares = 0;
  for (const float sample : sorted) sum += sample;
  const double average = sum / static_cast<double>(count);
  for (const float sample : sorted) squares += (sample - average) * (sample - average);
  const double deviation = std::sqrt(squares / static_cast<double>(count));
  const double p99 = sorted[static_cast<size_t>(std::ceil(0.99 * static_cast<double>(count))) - 1];
  const double latest = std::max(prior.mean_ns + 2 * prior.error_ns, p99);
  const double mean = std::min(average, latest);
  const double tail = std::min(std::max((p99 - mean) / 2, deviation), (latest - mean) / 2);
  const double trust = std::min(1.0, static_cast<double>(count) / 8);
  return {.mean_ns = prior.mean_ns + trust * (mean - prior.mean_ns),
          .error_ns = prior.error_ns + trust * (tail - prior.error_ns)};
}

// Few distinct values, so that a sample that leaves the window is one of several equal ones.
TEST(EvictionModelTest, EachAnswerIsThatOfTheSortedWindow) {
  EvictionModel model(kPrior);
  std::vector<double> samples;
  uint32_t random = 1;
  for (int i = 0; i < 1000; ++i) {
    random = random * 1664525 + 1013904223;
    samples.push_back(i % 3 == 0 ? 50 * kUs : (random >> 16) % 40 * 7.3 * kUs);
    model.Observe(samples.back());
    const EvictionState expected = BySorting(kPrior, samples);
    ASSERT_EQ(model.state().mean_ns, expected.mean_ns) << i;
    ASSERT_EQ(model.state().error_ns, expected.error_ns) << i;
  }
}

// As of a process that a debugger stops. The second largest of 128 is the p99, far below the mean.
TEST(EvictionModelTest, OneEvictionThatTookASecondKeepsNobodyOut) {
  EvictionModel model(kPrior);
  Observe(model, 50 * kUs, 127);
  model.Observe(1e9);
  EXPECT_GE(model.Predict().error_ns, 0);
  EXPECT_NEAR(model.state().mean_ns + 2 * model.state().error_ns, 140 * kUs, 1);
}

TEST(EvictionModelTest, TheLast128SamplesCount) {
  EvictionModel model(kPrior);
  Observe(model, 200 * kUs, 1000);
  Observe(model, 50 * kUs, 127);
  EXPECT_GT(model.state().mean_ns, 51 * kUs);
  model.Observe(50 * kUs);
  EXPECT_NEAR(model.state().mean_ns, 50 * kUs, 1);
  EXPECT_NEAR(model.state().error_ns, 0, 1);
}

TEST(EvictionModelTest, AClockThatStepsBackCountsAsNoLatency) {
  EvictionModel model(kPrior);
  Observe(model, -500 * kUs, 8);
  EXPECT_EQ(model.state().mean_ns, 0);
  EXPECT_EQ(model.Predict().duration_ns, 0);
}

// Plans change with the bound, mean + 2 x error: 140 us at first.
TEST(EvictionModelTest, ABoundThatMovesByMoreThanATenthIsAnnounced) {
  EvictionModel still({.mean_ns = 100 * kUs, .error_ns = 0});
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(still.Observe(109 * kUs)) << i;
  EvictionModel up({.mean_ns = 100 * kUs, .error_ns = 0});
  int announced = 0;
  for (int i = 0; i < 20; ++i) announced += up.Observe(112 * kUs) ? 1 : 0;
  EXPECT_EQ(announced, 1) << "once";
  EvictionModel down({.mean_ns = 100 * kUs, .error_ns = 0});
  announced = 0;
  for (int i = 0; i < 20; ++i) announced += down.Observe(88 * kUs) ? 1 : 0;
  EXPECT_EQ(announced, 1);
  EvictionModel narrow(kPrior);
  announced = 0;
  for (int i = 0; i < 8; ++i) announced += narrow.Observe(100 * kUs) ? 1 : 0;
  EXPECT_EQ(announced, 2) << "the error goes from 20 us to 0: 140, 125, 110, 100 us";
}

TEST(EvictionModelTest, APredictionIsAtMostTheLongestDuration) {
  const double limit = static_cast<double>(core::kMaxDurationNs);
  const EvictionModel model({.mean_ns = 2 * limit, .error_ns = 3 * limit});
  EXPECT_EQ(model.Predict().duration_ns, core::kMaxDurationNs);
  EXPECT_EQ(model.Predict().error_ns, core::kMaxDurationNs);
}

TEST(EvictionModelTest, WhatIsRestoredIsThePriorOfWhatComes) {
  EvictionModel model(kPrior);
  Observe(model, 500 * kUs, 200);
  model.Restore({.mean_ns = 40 * kUs, .error_ns = 5 * kUs, .trained = true});
  EXPECT_EQ(model.Predict().duration_ns, 40'000);
  EXPECT_EQ(model.Predict().error_ns, 5'000);
  EXPECT_FALSE(model.Observe(40 * kUs)) << "close to what was restored";
  EXPECT_NEAR(model.state().mean_ns, 40 * kUs, 1);
}

}  // namespace
}  // namespace gpushare::models
