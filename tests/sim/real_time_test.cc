// The simulated device in real time: work takes its simulated time on the steady clock, and what
// happens on the device does not depend on when the host looks.

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "src/sim/sim_device.h"
#include "tests/sim/sim_fixture.h"

namespace gpushare::sim {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kPatienceNs = 20'000 * kMs;
constexpr const char* kGraph = "chain1";

std::unique_ptr<core::Device> Open(bool real_time, const FaultPlan& faults = {}) {
  SimOptions options;
  options.profile = H200().device;
  options.real_time = real_time;
  options.faults = faults;
  auto device = MakeSimDevice(options).value();
  for (const core::KernelDesc& kernel : H200().kernels) {
    EXPECT_TRUE(device->PrepareKernel(kernel).ok()) << kernel.name;
  }
  return device;
}

core::LaunchRequest Graph(core::LaneIndex lane, uint64_t id) {
  core::LaunchRequest request;
  request.parts[0].launch = core::LaunchId{id};
  request.parts[0].lane = lane;
  request.form = core::Form::kGraph;
  request.parts[0].work.kernel = &Kernel(kGraph);
  return request;
}

core::LaunchRequest Workers(core::LaneIndex lane, int64_t tasks, uint64_t id) {
  core::LaunchRequest request = Graph(lane, id);
  request.form = core::Form::kWorkers;
  request.parts[0].work.kernel = &Kernel("sincos_27us");
  request.parts[0].block_count = tasks;
  request.parts[0].counter = 0;
  request.parts[0].reset_counter = true;
  request.parts[0].epoch = 1;
  return request;
}

// Waits for `count` completions, in either time.
std::vector<core::DeviceCompletion> Await(core::Device& device, size_t count) {
  std::vector<core::DeviceCompletion> all;
  const core::TimeNs give_up_ns = device.NowNs() + kPatienceNs;
  while (all.size() < count && device.NowNs() < give_up_ns) {
    std::array<core::DeviceCompletion, 8> some;
    const size_t found = device.PollCompletions(absl::MakeSpan(some));
    all.insert(all.end(), some.begin(), some.begin() + static_cast<ptrdiff_t>(found));
    if (found == 0) device.AdvanceTo(device.NextEventNs());
  }
  EXPECT_EQ(all.size(), count);
  all.resize(count);
  return all;
}

int64_t DurationOf(const core::DeviceCompletion& completion) {
  return completion.end_ns - completion.start_ns;
}

TEST(RealTimeTest, WorkTakesItsSimulatedTimeOnTheSteadyClock) {
  const core::SteadyClock wall;
  const auto device = Open(true);
  EXPECT_FALSE(device->capabilities().virtual_time);
  EXPECT_TRUE(device->capabilities().simulated);
  const core::LaneIndex lane = *device->CreateLane({});
  const core::TimeNs called_ns = wall.NowNs();
  ASSERT_TRUE(device->Launch(Graph(lane, 1)).ok());
  const core::TimeNs returned_ns = wall.NowNs();
  const core::DeviceCompletion end = Await(*device, 1)[0];
  const core::TimeNs seen_ns = wall.NowNs();
  const core::DeviceProfile& profile = device->capabilities().profile;
  EXPECT_GE(end.start_ns, called_ns + profile.graph_launch_latency_ns);
  EXPECT_LE(end.start_ns, returned_ns + profile.graph_launch_latency_ns);
  EXPECT_GE(seen_ns, end.end_ns + profile.completion_latency_ns);

  const auto virtual_device = Open(false);
  const core::LaneIndex virtual_lane = *virtual_device->CreateLane({});
  ASSERT_TRUE(virtual_device->Launch(Graph(virtual_lane, 1)).ok());
  EXPECT_EQ(DurationOf(end), DurationOf(Await(*virtual_device, 1)[0]));
}

// Three launches, one behind another, of which the host sees nothing until all have ended.
TEST(RealTimeTest, AHostThatSleepsDoesNotDelayTheDevice) {
  std::array<std::vector<core::DeviceCompletion>, 2> ends;
  for (const bool real_time : {false, true}) {
    const auto device = Open(real_time);
    const core::LaneIndex lane = *device->CreateLane({});
    for (uint64_t id = 1; id <= 3; ++id) ASSERT_TRUE(device->Launch(Graph(lane, id)).ok());
    if (real_time) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ends[real_time ? 1 : 0] = Await(*device, 3);
  }
  for (size_t i = 1; i < 3; ++i) {
    EXPECT_EQ(ends[1][i].start_ns - ends[1][i - 1].end_ns,
              ends[0][i].start_ns - ends[0][i - 1].end_ns);
    EXPECT_EQ(DurationOf(ends[1][i]), DurationOf(ends[0][i]));
  }
}

TEST(RealTimeTest, AnEvictionTakesEffectWhenItWasCalled) {
  const auto device = Open(true);
  const core::LaneIndex lane =
      *device->CreateLane({core::kWholeDevice, core::LanePriority::kLow, true});
  ASSERT_TRUE(device->Launch(Workers(lane, 100'000'000, 1)).ok());  // 1.5 s
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const core::TimeNs called_ns = device->NowNs();
  ASSERT_TRUE(device->Evict(lane, 1, 0).ok());
  const core::TimeNs returned_ns = device->NowNs();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const core::DeviceCompletion end = Await(*device, 1)[0];
  EXPECT_EQ(end.outcome, core::Outcome::kEvicted);
  EXPECT_GT(end.end_ns, called_ns);
  EXPECT_LT(end.end_ns, returned_ns + kMs / 2);  // the write and a block task of 27 us
  EXPECT_GT(end.block_tasks_done, 0);
}

// The scheduler's thread sleeps until then, and finds the end in time.
TEST(RealTimeTest, TheNextLookIsWhenTheCompletionIsVisible) {
  const auto device = Open(true);
  const core::LaneIndex lane = *device->CreateLane({});
  EXPECT_EQ(device->NextLookNs(), core::kNever) << "idle";
  bool seen = false;
  for (uint64_t id = 1; id <= 200 && !seen; ++id) {
    ASSERT_TRUE(device->Launch(Graph(lane, id)).ok());
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    const core::TimeNs look_ns = device->NextLookNs();
    seen = device->NowNs() < look_ns;  // this thread was not away for too long
    const core::DeviceCompletion end = Await(*device, 1)[0];
    if (seen) {
      EXPECT_EQ(look_ns, end.end_ns + device->capabilities().profile.completion_latency_ns);
    }
  }
  EXPECT_TRUE(seen);
}

// Counts who asks: a look that takes the mutex reads the clock a second time.
class CountingClock final : public core::Clock {
 public:
  explicit CountingClock(int* reads) : reads_(reads) {}
  core::TimeNs NowNs() const override {
    ++*reads_;
    return 0;  // time stands still, so that nothing happens
  }

 private:
  int* const reads_;
};

TEST(RealTimeTest, LooksThatFindNothingNewTakeNoMutexAndALaunchEndsThat) {
  int reads = 0;
  SimOptions options;
  options.profile = H200().device;
  options.real_time = true;
  const auto device = MakeSimDevice(options, std::make_unique<CountingClock>(&reads)).value();
  ASSERT_TRUE(device->PrepareKernel(Kernel(kGraph)).ok());
  const core::LaneIndex lane = *device->CreateLane({});
  const auto looks = [&] {
    reads = 0;
    for (int i = 0; i < 100; ++i) {
      std::array<core::DeviceCompletion, 8> some;
      EXPECT_EQ(device->PollCompletions(absl::MakeSpan(some)), 0U);
      device->NextLookNs();
    }
    return reads;
  };
  looks();
  EXPECT_EQ(looks(), 200);
  EXPECT_EQ(device->NextLookNs(), core::kNever);
  ASSERT_TRUE(device->Launch(Graph(lane, 1)).ok());
  EXPECT_NE(device->NextLookNs(), core::kNever);
  looks();
  EXPECT_EQ(looks(), 200);
}

// Two chains share the SMs, so that each of their 144 nodes is an event of the device.
TEST(RealTimeTest, EventsThatEndNothingAskForNoLook) {
  const auto device = Open(true);
  for (uint64_t id = 1; id <= 2; ++id) {
    ASSERT_TRUE(device->Launch(Graph(*device->CreateLane({}), id)).ok());
  }
  size_t ended = 0;
  int looks = 0;
  for (core::TimeNs look_ns = device->NextLookNs(); ended < 2 && look_ns != core::kNever;
       look_ns = device->NextLookNs()) {
    ++looks;
    while (device->NowNs() < look_ns) {
    }
    std::array<core::DeviceCompletion, 2> out;
    ended += device->PollCompletions(absl::MakeSpan(out));
    // What the thread takes for a look that comes to nothing.
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  EXPECT_EQ(ended, 2U);
  EXPECT_LE(looks, 40);
}

TEST(RealTimeTest, TwoDevicesHaveOneClock) {
  const auto first = Open(true);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  const auto second = Open(true);
  const core::SteadyClock wall;
  const core::TimeNs before_ns = wall.NowNs();
  for (const auto* device : {&first, &second}) {
    const core::TimeNs now_ns = (*device)->NowNs();
    EXPECT_GE(now_ns, before_ns);
    EXPECT_LE(now_ns, wall.NowNs());
    EXPECT_EQ((*device)->NextEventNs(), core::kNever);
  }
}

TEST(RealTimeTest, ALossAtATimeCountsFromTheBegin) {
  FaultPlan faults;
  faults.device_lost_at_ns = 20 * kMs;
  const core::SteadyClock wall;
  const core::TimeNs begin_ns = wall.NowNs();
  const auto device = Open(true, faults);
  const core::TimeNs opened_ns = wall.NowNs();
  const core::LaneIndex lane = *device->CreateLane({});
  for (uint64_t id = 1; id <= 100; ++id) ASSERT_TRUE(device->Launch(Graph(lane, id)).ok());
  const core::DeviceCompletion last = Await(*device, 100)[99];
  EXPECT_EQ(last.outcome, core::Outcome::kDeviceLost);
  EXPECT_GE(last.end_ns, begin_ns + faults.device_lost_at_ns);
  EXPECT_LE(last.end_ns, opened_ns + faults.device_lost_at_ns);
}

TEST(RealTimeTest, AClockThatJumpsIsRefused) {
  SimOptions options;
  options.real_time = true;
  options.faults.clock_jump_at_ns = 5;
  const auto device = MakeSimDevice(options);
  EXPECT_EQ(device.status().code(), absl::StatusCode::kInvalidArgument) << device.status();
}

}  // namespace
}  // namespace gpushare::sim
