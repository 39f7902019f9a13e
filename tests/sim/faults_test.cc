// Faults on request: each has its effect, once, and the rest of the device continues.

#include <gtest/gtest.h>

#include <array>
#include <map>

#include "src/core/base/random.h"
#include "tests/sim/sim_fixture.h"

namespace gpushare::sim {
namespace {

core::LaunchRequest Workers(core::LaneIndex lane, uint64_t id, int64_t tasks = 10'000) {
  core::LaunchRequest request;
  request.parts[0].launch = core::LaunchId{id};
  request.parts[0].lane = lane;
  request.form = core::Form::kWorkers;
  request.parts[0].counter =
      static_cast<int32_t>(request.parts[0].launch.value % core::kMaxCounters);
  request.parts[0].reset_counter = true;
  request.parts[0].work.kernel = &Kernel("sincos_27us");
  request.parts[0].block_count = tasks;
  request.parts[0].epoch = id;
  return request;
}

struct World {
  explicit World(const FaultPlan& plan, uint64_t seed = 1)
      : device(MakeDevice(Tier::kKernel, seed, plan)) {
    for (auto& lane : lanes) {
      lane = *device->CreateLane({core::kWholeDevice, core::LanePriority::kLow, true});
    }
  }
  std::unique_ptr<core::Device> device;
  std::array<core::LaneIndex, 2> lanes{};
};

TEST(FaultsTest, TheNthLaunchIsRefused) {
  FaultPlan plan;
  plan.launch_error.nth = 2;
  World world(plan);
  EXPECT_TRUE(world.device->Launch(Workers(world.lanes[0], 1)).ok());
  EXPECT_EQ(world.device->Launch(Workers(world.lanes[0], 2)).code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(world.device->Launch(Workers(world.lanes[0], 3)).ok());
  EXPECT_EQ(RunUntilIdle(*world.device).size(), 2u);
}

TEST(FaultsTest, AFailedLaunchIsReportedWithItsErrorAndTheNextOneRuns) {
  FaultPlan plan;
  plan.launch_failure.nth = 1;
  World world(plan);
  EXPECT_TRUE(world.device->Launch(Workers(world.lanes[0], 1)).ok());
  EXPECT_TRUE(world.device->Launch(Workers(world.lanes[0], 2)).ok());
  const auto done = RunUntilIdle(*world.device);
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].outcome, core::Outcome::kFailed);
  EXPECT_NE(done[0].error_code, 0);
  EXPECT_EQ(done[0].block_tasks_done, 0);
  EXPECT_EQ(done[1].outcome, core::Outcome::kFinished);
}

TEST(FaultsTest, AHungLaunchKeepsItsSmsUntilItsLaneIsAbandoned) {
  FaultPlan plan;
  plan.hang.nth = 1;
  World world(plan);
  ASSERT_TRUE(world.device->Launch(Workers(world.lanes[0], 1)).ok());
  ASSERT_TRUE(world.device->Launch(Workers(world.lanes[0], 2)).ok());
  ASSERT_TRUE(world.device->Launch(Workers(world.lanes[1], 3)).ok());
  ASSERT_TRUE(world.device->Evict(world.lanes[0], 2, 0).ok());
  EXPECT_TRUE(RunUntilIdle(*world.device).empty());
  world.device->AbandonLane(world.lanes[0]);
  const auto done = RunUntilIdle(*world.device);
  ASSERT_EQ(done.size(), 1u) << "launches of an abandoned lane are never reported";
  EXPECT_EQ(done[0].launch.value, 3u);
  EXPECT_EQ(done[0].block_tasks_done, 10'000);
  EXPECT_FALSE(world.device->Launch(Workers(world.lanes[0], 4)).ok());
}

TEST(FaultsTest, ALostDeviceReportsEverythingInFlightOnce) {
  for (const bool by_time : {false, true}) {
    FaultPlan plan;
    if (by_time) {
      plan.device_lost_at_ns = 50'000;
    } else {
      plan.device_lost.nth = 3;
    }
    World world(plan);
    ASSERT_TRUE(world.device->Launch(Workers(world.lanes[0], 1)).ok());
    ASSERT_TRUE(world.device->Launch(Workers(world.lanes[0], 2)).ok());
    ASSERT_TRUE(world.device->Launch(Workers(world.lanes[1], 3)).ok());
    const auto done = RunUntilIdle(*world.device);
    ASSERT_EQ(done.size(), 3u);
    for (const auto& one : done) EXPECT_EQ(one.outcome, core::Outcome::kDeviceLost);
    EXPECT_EQ(world.device->Launch(Workers(world.lanes[0], 4)).code(),
              absl::StatusCode::kUnavailable);
    EXPECT_FALSE(world.device->Evict(world.lanes[0], 1, 0).ok());
  }
}

TEST(FaultsTest, OutOfMemoryOccursAtTheChosenCall) {
  FaultPlan plan;
  plan.lane_out_of_memory.nth = 3;
  plan.place_out_of_memory.nth = 1;
  plan.kernel_out_of_memory.nth = 1;
  World world(plan);
  EXPECT_EQ(world.device->CreateLane({}).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(world.device->CreatePlace(1, {0, 4, false}).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(world.device->CreatePlace(1, {0, 4, false}).ok());
  // The fault refused the profile's first kernel when the device was opened.
  core::LaunchRequest request = Workers(world.lanes[0], 1);
  request.form = core::Form::kGraph;
  request.parts[0].work.kernel = &H200().kernels.front();
  EXPECT_EQ(world.device->Launch(request).code(), absl::StatusCode::kFailedPrecondition);
}

TEST(FaultsTest, CompletionsAreDroppedAndDuplicated) {
  FaultPlan plan;
  plan.dropped_completion.nth = 1;
  plan.duplicated_completion.nth = 2;
  World world(plan);
  for (uint64_t id = 1; id <= 3; ++id) {
    ASSERT_TRUE(world.device->Launch(Workers(world.lanes[0], id)).ok());
  }
  std::map<uint64_t, int> reports;
  for (const auto& done : RunUntilIdle(*world.device)) ++reports[done.launch.value];
  EXPECT_EQ(reports, (std::map<uint64_t, int>{{2, 2}, {3, 1}}));
}

TEST(FaultsTest, ABlockedEvictionTakesEffectOnlyWhenTheLaunchHasEnded) {
  FaultPlan plan;
  plan.blocked_eviction.nth = 1;
  World world(plan);
  ASSERT_TRUE(world.device->Launch(Workers(world.lanes[0], 1, 100'000)).ok());
  world.device->AdvanceTo(100'000);
  ASSERT_TRUE(world.device->Evict(world.lanes[0], 1, 0).ok());
  const auto done = RunUntilIdle(*world.device);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].outcome, core::Outcome::kFinished);
  EXPECT_EQ(done[0].block_tasks_done, 100'000);
}

TEST(FaultsTest, AMispredictedLaunchTakesTenTimesAsLong) {
  FaultPlan plan;
  plan.misprediction.nth = 2;
  World world(plan);
  ASSERT_TRUE(world.device->Launch(Workers(world.lanes[0], 1, 105'600)).ok());
  ASSERT_TRUE(world.device->Launch(Workers(world.lanes[0], 2, 105'600)).ok());
  const auto done = RunUntilIdle(*world.device);
  const double ratio = static_cast<double>(done[1].end_ns - done[1].start_ns) /
                       static_cast<double>(done[0].end_ns - done[0].start_ns);
  EXPECT_NEAR(ratio, 10, 0.01);
}

TEST(FaultsTest, ASlowCopyTakesItsFactor) {
  FaultPlan plan;
  plan.slow_copy.nth = 1;
  World world(plan);
  core::LaunchRequest request;
  request.parts[0].launch = core::LaunchId{1};
  request.parts[0].lane = world.lanes[0];
  request.form = core::Form::kMemcpy;
  request.parts[0].work.copy = {
      core::CopyDirection::kHostToDevice, true, 55'500'000, 0, nullptr, nullptr};
  ASSERT_TRUE(world.device->Launch(request).ok());
  const auto done = RunUntilIdle(*world.device);
  EXPECT_NEAR(static_cast<double>(done[0].end_ns - done[0].start_ns), 10e6, 1e4);
}

TEST(FaultsTest, TheClockJumpsOnceAndNothingIsLost) {
  FaultPlan plan;
  plan.clock_jump_at_ns = 100'000;
  plan.clock_jump_ns = 5'000'000;
  World world(plan);
  ASSERT_TRUE(world.device->Launch(Workers(world.lanes[0], 1)).ok());
  world.device->AdvanceTo(99'999);
  EXPECT_EQ(world.device->NowNs(), 99'999);
  world.device->AdvanceTo(100'000);
  EXPECT_EQ(world.device->NowNs(), 5'100'000);
  EXPECT_EQ(RunUntilIdle(*world.device).size(), 1u);
  world.device->AdvanceTo(5'200'000);
  EXPECT_EQ(world.device->NowNs(), 5'200'000);
}

TEST(FaultsTest, TheClockStepsBackOnceAndTheLaunchKeepsItsDuration) {
  World ordinary{FaultPlan{}};
  ASSERT_TRUE(ordinary.device->Launch(Workers(ordinary.lanes[0], 1)).ok());
  const auto expected = RunUntilIdle(*ordinary.device);
  FaultPlan plan;
  plan.clock_jump_at_ns = 10'000;
  plan.clock_jump_ns = -4'000;
  World world(plan);
  ASSERT_TRUE(world.device->Launch(Workers(world.lanes[0], 1)).ok());
  world.device->AdvanceTo(10'000);
  EXPECT_EQ(world.device->NowNs(), 6'000);
  const auto done = RunUntilIdle(*world.device);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].end_ns, expected[0].end_ns - 4'000);
  EXPECT_EQ(done[0].end_ns - done[0].start_ns, expected[0].end_ns - expected[0].start_ns);
}

// With random faults, every accepted launch is reported exactly once, unless it was dropped,
// duplicated, or hung and abandoned.
TEST(FaultsTest, AcceptedLaunchesAreReportedOnceUnderRandomFaults) {
  for (uint64_t seed = 1; seed <= 1'000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    FaultPlan plan;
    plan.launch_error.probability = 0.1;
    plan.launch_failure.probability = 0.1;
    plan.blocked_eviction.probability = 0.1;
    plan.misprediction.probability = 0.1;
    plan.hang.probability = 0.03;
    if (seed % 5 == 0) plan.device_lost.probability = 0.03;
    World world(plan, seed);
    core::Random random(seed);
    std::map<uint64_t, int> reports;
    std::map<uint64_t, size_t> accepted;
    auto collect = [&] {
      std::array<core::DeviceCompletion, 8> out;
      for (size_t n = world.device->PollCompletions(absl::MakeSpan(out)); n > 0;
           n = world.device->PollCompletions(absl::MakeSpan(out))) {
        for (size_t i = 0; i < n; ++i) ++reports[out[i].launch.value];
      }
    };
    for (uint64_t id = 1; id <= 30; ++id) {
      const size_t lane = random.Next() % 2;
      if (world.device->Launch(Workers(world.lanes[lane], id)).ok()) accepted[id] = lane;
      if (random.Uniform() < 0.5) {
        // Fails once the device is lost.
        world.device->Evict(world.lanes[lane], id, 0).IgnoreError();
      }
      world.device->AdvanceTo(world.device->NowNs() +
                              static_cast<int64_t>(random.Next() % 100'000));
      collect();
    }
    for (const auto& done : RunUntilIdle(*world.device)) ++reports[done.launch.value];
    // The remaining launches hang, or wait behind one that hangs.
    const size_t before = reports.size();
    for (const auto& [id, count] : reports) EXPECT_EQ(count, 1) << "launch " << id;
    for (const auto& [id, count] : reports) EXPECT_TRUE(accepted.count(id)) << "launch " << id;
    for (const core::LaneIndex lane : world.lanes) world.device->AbandonLane(lane);
    RunUntilIdle(*world.device);
    EXPECT_LE(before, accepted.size());
    const int64_t busy = world.device->BusySmNs();
    world.device->AdvanceTo(world.device->NowNs() + 1'000'000);
    EXPECT_EQ(world.device->BusySmNs(), busy) << "nothing holds an SM any more";
    if (plan.device_lost.probability == 0 && before < accepted.size()) {
      EXPECT_EQ(world.device->NextEventNs(), core::kNever);
    }
  }
}

}  // namespace
}  // namespace gpushare::sim
