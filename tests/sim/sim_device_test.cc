// The simulated device through the seam: latencies, virtual time, busy SMs, opaque work, bad
// requests. A launch allocates nothing, and equal calls give equal completions.

#include "src/sim/sim_device.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <new>
#include <tuple>

#include "src/core/base/random.h"
#include "tests/core/make_place.h"
#include "tests/sim/sim_fixture.h"

namespace {
std::atomic<int64_t> allocations{0};
}

[[gnu::noinline]] void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace gpushare::sim {
namespace {

core::LaunchRequest Workers(core::LaneIndex lane, const char* kernel, int64_t tasks, uint64_t id) {
  core::LaunchRequest request;
  request.parts[0].launch = core::LaunchId{id};
  request.parts[0].lane = lane;
  request.form = core::Form::kWorkers;
  request.parts[0].work.kernel = &Kernel(kernel);
  request.parts[0].block_count = tasks;
  request.parts[0].counter = 0;
  request.parts[0].reset_counter = true;
  request.parts[0].epoch = 1;
  return request;
}

class SimDeviceTest : public testing::TestWithParam<Tier> {
 protected:
  SimDeviceTest() : device_(MakeDevice(GetParam())) {
    lane_ = *device_->CreateLane({core::kWholeDevice, core::LanePriority::kLow, true});
  }
  std::unique_ptr<core::Device> device_;
  core::LaneIndex lane_ = core::kNoLane;
};

INSTANTIATE_TEST_SUITE_P(Tiers, SimDeviceTest, testing::Values(Tier::kKernel, Tier::kBlock),
                         [](const auto& tier) {
                           return tier.param == Tier::kKernel ? "Kernel" : "Block";
                         });

TEST_P(SimDeviceTest, AWorkerLaunchTakesItsBlockTasksTimesTheirDuration) {
  // 100 waves of 8 workers on each of 132 SMs.
  ASSERT_TRUE(device_->Launch(Workers(lane_, "sincos_27us", 100 * 8 * 132, 1)).ok());
  const auto done = RunUntilIdle(*device_);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].block_tasks_done, 100 * 8 * 132);
  EXPECT_EQ(done[0].start_ns, H200().device.launch_latency_ns);
  const double expected = 100 * 27000 * 1.005;
  EXPECT_NEAR(static_cast<double>(done[0].end_ns - done[0].start_ns), expected, expected * 0.01);
  EXPECT_EQ(device_->NowNs(), done[0].end_ns + H200().device.completion_latency_ns);
}

TEST_P(SimDeviceTest, TimeAdvancesOnlyInAdvanceTo) {
  ASSERT_TRUE(device_->Launch(Workers(lane_, "sincos_27us", 1056, 1)).ok());
  EXPECT_EQ(device_->NowNs(), 0);
  std::array<core::DeviceCompletion, 4> out;
  EXPECT_EQ(device_->PollCompletions(absl::MakeSpan(out)), 0u);
  device_->AdvanceTo(1'000);
  EXPECT_EQ(device_->NowNs(), 1'000);
  device_->AdvanceTo(500);
  EXPECT_EQ(device_->NowNs(), 1'000);
}

TEST_P(SimDeviceTest, ACompletionIsVisibleAfterItsLatencyAndNotBefore) {
  ASSERT_TRUE(device_->Launch(Workers(lane_, "sincos_27us", 1056, 1)).ok());
  std::array<core::DeviceCompletion, 4> out;
  core::TimeNs before = 0;
  while (device_->PollCompletions(absl::MakeSpan(out)) == 0) {
    before = device_->NowNs();
    ASSERT_NE(device_->NextEventNs(), core::kNever);
    device_->AdvanceTo(device_->NextEventNs());
  }
  EXPECT_LT(before, out[0].end_ns + H200().device.completion_latency_ns);
  EXPECT_EQ(device_->NowNs(), out[0].end_ns + H200().device.completion_latency_ns);
}

TEST_P(SimDeviceTest, BusySmsAreThoseThatHoldBlocks) {
  const auto place = core::MakePlace(*device_, {0, 4, false}).value();
  const auto lane = *device_->CreateLane({place, core::LanePriority::kLow, true});
  ASSERT_TRUE(device_->Launch(Workers(lane, "sincos_27us", 50 * 8 * 32, 1)).ok());
  const auto done = RunUntilIdle(*device_);
  const double expected = 32.0 * static_cast<double>(done[0].end_ns - done[0].start_ns);
  EXPECT_NEAR(static_cast<double>(device_->BusySmNs()), expected, expected * 0.03);
}

TEST_P(SimDeviceTest, OpaqueWorkRunsItsFunctionAndOccupiesTheDevice) {
  int calls = 0;
  core::LaunchRequest request;
  request.parts[0].launch = core::LaunchId{7};
  request.parts[0].lane = lane_;
  request.form = core::Form::kOpaque;
  request.parts[0].work.host_function = [](void*, void* user) { ++*static_cast<int*>(user); };
  request.parts[0].work.host_user = &calls;
  request.parts[0].work.declared_ns = 90'000;
  ASSERT_TRUE(device_->Launch(request).ok());
  EXPECT_EQ(calls, 1);
  const auto done = RunUntilIdle(*device_);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].end_ns - done[0].start_ns, 90'000);
  request.parts[0].lane = 99;
  EXPECT_FALSE(device_->Launch(request).ok());
  EXPECT_EQ(calls, 1) << "a refused launch must not run the caller's function";
}

TEST_P(SimDeviceTest, LeftOverRoomGoesToTheLaterLaunch) {
  // Two workers an SM leave room for six of the next launch.
  auto first = Workers(lane_, "sincos_267us", 2000, 1);
  first.workers = 2 * 132;
  ASSERT_TRUE(device_->Launch(first).ok());
  const auto other = *device_->CreateLane({core::kWholeDevice, core::LanePriority::kLow, true});
  auto second = Workers(other, "sincos_27us", 2000, 2);
  second.parts[0].counter = 1;
  ASSERT_TRUE(device_->Launch(second).ok());
  const auto done = RunUntilIdle(*device_);
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].launch.value, 2u);
  EXPECT_LT(done[0].start_ns, 10'000) << "it starts beside the first, not after it";
}

TEST_P(SimDeviceTest, BadRequestsAreRefusedWithAMessage) {
  auto request = Workers(lane_, "sincos_27us", 0, 1);
  EXPECT_EQ(device_->Launch(request).code(), absl::StatusCode::kInvalidArgument);
  request = Workers(lane_, "sincos_27us", 10, 1);
  request.parts[0].reset_counter = false;
  EXPECT_EQ(device_->Launch(request).code(), absl::StatusCode::kFailedPrecondition);
  request = Workers(lane_, "chain1", 10, 1);
  EXPECT_EQ(device_->Launch(request).code(), absl::StatusCode::kInvalidArgument);
  request = Workers(lane_, "sincos_27us", 10, 1);
  core::KernelDesc stranger = Kernel("sincos_27us");
  stranger.name = "stranger";
  request.parts[0].work.kernel = &stranger;
  EXPECT_EQ(device_->Launch(request).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(device_->Evict(-1, 1, 0).ok());
  EXPECT_FALSE(device_->CreatePlace(1, {10, 10, false}).ok());
  EXPECT_FALSE(device_->CreatePlace(1, {0, 0, false}).ok());
  EXPECT_FALSE(device_->CreateLane({5, core::LanePriority::kLow, false}).ok());
  stranger.resources.registers_per_thread = 1000;
  EXPECT_EQ(device_->PrepareKernel(stranger).code(), absl::StatusCode::kInvalidArgument);
  SimOptions options;
  options.profile.pinned_bytes_per_ns = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(MakeSimDevice(options).ok());
  options = SimOptions();
  options.profile.sm_count = 0;
  EXPECT_FALSE(MakeSimDevice(options).ok());
  EXPECT_EQ(device_->NextEventNs(), core::kNever) << "refused calls leave nothing behind";
}

TEST_P(SimDeviceTest, LaunchEvictAndPollDoNotAllocate) {
  std::array<core::DeviceCompletion, 16> out;
  auto round = [&](uint64_t id) {
    auto request = Workers(lane_, "sincos_27us", 50'000, id);
    request.parts[0].epoch = id;
    ASSERT_TRUE(device_->Launch(request).ok());
    device_->AdvanceTo(device_->NowNs() + 300'000);
    ASSERT_TRUE(device_->Evict(lane_, id, 0).ok());
    device_->AdvanceTo(device_->NowNs() + 300'000);
    ASSERT_EQ(device_->PollCompletions(absl::MakeSpan(out)), 1u);
  };
  round(1);
  const int64_t before = allocations;
  for (uint64_t id = 2; id < 50; ++id) round(id);
  EXPECT_EQ(allocations, before);
}

TEST_P(SimDeviceTest, TheSameCallsGiveTheSameCompletions) {
  using Row = std::tuple<uint64_t, core::TimeNs, core::TimeNs, int64_t>;
  auto run = [&] {
    auto device = MakeDevice(GetParam(), 42);
    const auto lane = *device->CreateLane({core::kWholeDevice, core::LanePriority::kLow, true});
    std::vector<Row> rows;
    for (uint64_t id = 1; id < 20; ++id) {
      auto request = Workers(lane, "sincos_267us", 5'000, id);
      request.parts[0].epoch = id;
      EXPECT_TRUE(device->Launch(request).ok());
      device->AdvanceTo(device->NowNs() + 700'000);
      EXPECT_TRUE(device->Evict(lane, id, 0).ok());
      for (const auto& done : RunUntilIdle(*device)) {
        rows.emplace_back(done.launch.value, done.start_ns, done.end_ns, done.block_tasks_done);
      }
    }
    return rows;
  };
  EXPECT_EQ(run(), run());
}

}  // namespace
}  // namespace gpushare::sim
