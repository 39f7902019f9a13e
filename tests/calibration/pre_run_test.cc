// A pre-run on a simulated device whose counters the test makes up: which launches are counted,
// what becomes of the counts, and that a refusal of the device reaches the caller.

#include "src/calibration/pre_run/pre_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/models/profile/profile.h"
#include "src/sim/sim_device.h"
#include "tests/core/forwarding_device.h"

namespace gpushare::models {
namespace {

using testing::HasSubstr;

constexpr int kPasses = 7;

const Profile& Truth() {
  static const auto* const kProfile =
      new Profile(*LoadProfile(GPUSHARE_CALIBRATED_PROFILE));  // NOLINT: lives as the program does
  return *kProfile;
}

// Counts block tasks: each has the counters of its kernel in the profile.
class CountingDevice final : public core::ForwardingDevice {
 public:
  explicit CountingDevice(std::unique_ptr<core::Device> inner)
      : ForwardingDevice(std::move(inner)) {}

  absl::Status Launch(const core::LaunchRequest& request) override {
    if (counting_) counted.push_back(request);
    return inner().Launch(request);
  }

  absl::StatusOr<core::LaunchCounts> CountLaunches(absl::FunctionRef<absl::Status()> run) override {
    if (!refusal.ok()) return refusal;
    counting_ = true;
    for (int pass = 0; pass < kPasses; ++pass) {
      if (absl::Status status = run(); !status.ok()) return status;
    }
    counting_ = false;
    const core::LaunchPart& part = counted.back().parts[0];
    const core::KernelCounters& truth = Truth().FindKernel(part.work.kernel->name)->counters;
    const auto tasks = static_cast<double>(part.block_count);
    core::LaunchCounts counts;
    counts.instructions = truth.instructions * tasks;
    counts.memory_instructions = truth.memory_instructions * tasks;
    counts.requests = truth.memory_instructions * tasks;
    counts.sectors = counts.requests * truth.sectors_per_request;
    counts.dram_read_bytes = 3e6;
    counts.dram_write_bytes = 1e6;
    counts.issue = truth.issue;
    counts.fma = truth.fma;
    counts.alu = truth.alu;
    counts.tensor = truth.tensor;
    counts.special = truth.special;
    counts.lsu = truth.lsu;
    counts.shared = truth.shared;
    counts.l1 = truth.l1;
    counts.l2 = truth.l2;
    counts.dram = truth.dram;
    return counts;
  }

  absl::Status refusal;
  std::vector<core::LaunchRequest> counted;

 private:
  bool counting_ = false;
};

class PreRunTest : public testing::Test {
 protected:
  PreRunTest() {
    sim::SimOptions options;
    options.profile = Truth().device;
    device_ = std::make_unique<CountingDevice>(*sim::MakeSimDevice(options));
  }

  // As many block tasks as take about `ms`.
  static CalibrationItem Item(const std::string& name, double ms) {
    CalibrationItem item;
    item.kernel = *Truth().FindKernel(name);
    const double rounds = ms * 1e6 / static_cast<double>(item.kernel.simulation.block_task_ns);
    item.block_tasks = static_cast<int64_t>(rounds) * Round(item.kernel);
    return item;
  }
  static int64_t Round(const core::KernelDesc& kernel) {
    return int64_t{kernel.resources.workers_per_sm_max} * Truth().device.sm_count;
  }

  std::unique_ptr<CountingDevice> device_;
  CalibrationOptions options_;
};

TEST_F(PreRunTest, ItGivesTheCountersOfOneBlockTask) {
  const absl::StatusOr<PreRunResult> result = PreRun(*device_, Item("streaming", 20), options_);
  ASSERT_TRUE(result.ok()) << result.status();
  const core::KernelDesc& truth = *Truth().FindKernel("streaming");
  const core::KernelCounters& own = result->counters;
  EXPECT_NEAR(own.instructions, truth.counters.instructions, 1e-6);
  EXPECT_NEAR(own.memory_instructions, truth.counters.memory_instructions, 1e-6);
  EXPECT_NEAR(own.sectors_per_request, truth.counters.sectors_per_request, 1e-9);
  EXPECT_EQ(own.issue, truth.counters.issue);
  EXPECT_EQ(own.fma, truth.counters.fma);
  EXPECT_EQ(own.alu, truth.counters.alu);
  EXPECT_EQ(own.tensor, truth.counters.tensor);
  EXPECT_EQ(own.special, truth.counters.special);
  EXPECT_EQ(own.lsu, truth.counters.lsu);
  EXPECT_EQ(own.shared, truth.counters.shared);
  EXPECT_EQ(own.l1, truth.counters.l1);
  EXPECT_EQ(own.l2, truth.counters.l2);
  EXPECT_EQ(own.dram, truth.counters.dram);
  EXPECT_NEAR(own.dram_write, truth.counters.dram / 4, 1e-9) << "a quarter of the bytes";
  // The simulated SM slows in proportion below this occupancy; four workers are three steps of it.
  EXPECT_NEAR(result->saturating_occupancy, truth.simulation.saturating_occupancy, 0.03);
}

TEST_F(PreRunTest, OfALongSampleItCountsSlicesOfDifferentBlockTasks) {
  const CalibrationItem item = Item("sincos", 50);
  const absl::StatusOr<PreRunResult> result = PreRun(*device_, item, options_);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(device_->counted.size(), size_t{kPasses});
  EXPECT_EQ(result->block_tasks % Round(item.kernel), 0);
  EXPECT_LT(result->block_tasks, item.block_tasks / 10);
  const double ns = static_cast<double>(result->block_tasks) /
                    static_cast<double>(Round(item.kernel)) *
                    static_cast<double>(item.kernel.simulation.block_task_ns);
  EXPECT_NEAR(ns, kPreRunNs, 0.1 * kPreRunNs);
  int64_t expected = device_->counted.front().block_begin;
  for (const core::LaunchRequest& request : device_->counted) {
    EXPECT_EQ(request.form, core::Form::kSlice);
    EXPECT_EQ(request.parts[0].block_count, result->block_tasks);
    EXPECT_EQ(request.block_begin, expected);
    expected += result->block_tasks;
  }
}

TEST_F(PreRunTest, AShortSampleRunsWholeAsAnOrdinaryGrid) {
  const CalibrationItem item = Item("sincos", 3);
  const absl::StatusOr<PreRunResult> result = PreRun(*device_, item, options_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->block_tasks, item.block_tasks);
  for (const core::LaunchRequest& request : device_->counted) {
    EXPECT_EQ(request.form, core::Form::kOriginal);
  }
}

TEST_F(PreRunTest, AKernelWithoutAWorkerOrSliceFormRunsWholeHoweverLong) {
  int original = 0;
  CalibrationItem item = Item("sincos", 50);
  item.kernel.evictable = false;
  item.kernel.functions()->original = &original;
  const absl::StatusOr<PreRunResult> result = PreRun(*device_, item, options_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->block_tasks, item.block_tasks);
  EXPECT_EQ(result->saturating_occupancy, 1) << "nothing is known";
}

TEST_F(PreRunTest, ASliceFunctionAloneRunsSlices) {
  int original = 0;
  int slice = 0;
  CalibrationItem item = Item("sincos", 50);
  item.kernel.evictable = false;
  item.kernel.functions()->original = &original;
  item.kernel.functions()->slice = &slice;
  const absl::StatusOr<PreRunResult> result = PreRun(*device_, item, options_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_LT(result->block_tasks, item.block_tasks / 10);
  for (const core::LaunchRequest& request : device_->counted) {
    EXPECT_EQ(request.form, core::Form::kSlice);
  }
  EXPECT_EQ(result->saturating_occupancy, 1) << "no workers are timed";
}

TEST_F(PreRunTest, ARefusalOfTheDeviceReachesTheCaller) {
  device_->refusal = absl::PermissionDeniedError("Only administrators count.");
  const absl::StatusOr<PreRunResult> result = PreRun(*device_, Item("sincos", 3), options_);
  EXPECT_EQ(result.status(), device_->refusal);
  sim::SimOptions plain;
  plain.profile = Truth().device;
  const auto sim = sim::MakeSimDevice(plain);
  EXPECT_EQ(PreRun(**sim, Item("sincos", 3), options_).status().code(),
            absl::StatusCode::kUnimplemented)
      << "it counts nothing";
}

TEST_F(PreRunTest, WhatCannotRunIsRefused) {
  CalibrationItem item = Item("sincos", 3);
  item.block_tasks = 0;
  absl::Status refused = PreRun(*device_, item, options_).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("'sincos' has 0 block tasks"));
  CalibrationItem graph;
  graph.kernel = *Truth().FindKernel("chain1");
  EXPECT_EQ(PreRun(*device_, graph, options_).status().code(), absl::StatusCode::kInvalidArgument);
  options_.hang_limit_ns = 0;
  refused = PreRun(*device_, Item("sincos", 3), options_).status();
  EXPECT_THAT(std::string(refused.message()), HasSubstr("The hang limit is 0 ns"));
  options_.hang_limit_ns = 1'000'000'000;
  options_.cancelled = [] { return true; };
  EXPECT_EQ(PreRun(*device_, Item("sincos", 3), options_).status().code(),
            absl::StatusCode::kCancelled);
}

TEST(CountersOfTest, RatiosWithoutAnyAccessAreZero) {
  const core::LaunchCounts counts = {.instructions = 1000, .memory_instructions = 0, .issue = 0.5};
  const core::KernelCounters counters = CountersOf(counts, 10);
  EXPECT_EQ(counters.instructions, 100);
  EXPECT_EQ(counters.sectors_per_request, 0);
  EXPECT_EQ(counters.dram_write, 0);
}

// Counts of different passes do not agree to the last instruction.
TEST(CountersOfTest, MemoryInstructionsAreAtMostAllOfThem) {
  const core::LaunchCounts counts = {
      .instructions = 1000, .memory_instructions = 1001, .requests = 1, .sectors = 1e9};
  const core::KernelCounters counters = CountersOf(counts, 10);
  EXPECT_EQ(counters.memory_instructions, counters.instructions);
  EXPECT_EQ(counters.sectors_per_request, 1024);
}

}  // namespace
}  // namespace gpushare::models
