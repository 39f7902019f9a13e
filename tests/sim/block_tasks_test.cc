// Every block task runs exactly once, through any sequence of evictions, partial evictions,
// relaunches and shared counters, in both tiers.

#include <gtest/gtest.h>

#include <array>

#include "src/core/base/random.h"
#include "tests/core/make_place.h"
#include "tests/sim/sim_fixture.h"

namespace gpushare::sim {
namespace {

class BlockTasksTest : public testing::TestWithParam<Tier> {
 protected:
  void Open(uint64_t seed) {
    device_ = MakeDevice(GetParam(), seed);
    lanes_.clear();
    const auto lc_side = *core::MakePlace(*device_, {0, 9, true});
    const auto be_side = *core::MakePlace(*device_, {9, 6, false});
    for (core::PlaceIndex place : {core::kWholeDevice, lc_side, be_side}) {
      lanes_.push_back(*device_->CreateLane({place, core::LanePriority::kLow, true}));
    }
  }
  core::LaunchRequest Request(size_t lane, const char* kernel, int64_t tasks, bool reset,
                              uint64_t epoch) {
    core::LaunchRequest request;
    request.parts[0].launch = core::LaunchId{++launches_};
    request.parts[0].lane = lanes_[lane];
    request.form = core::Form::kWorkers;
    request.parts[0].work.kernel = &Kernel(kernel);
    request.parts[0].block_count = tasks;
    request.parts[0].counter = 5;
    request.parts[0].reset_counter = reset;
    request.parts[0].epoch = epoch;
    return request;
  }
  int64_t Drain(size_t* reports = nullptr) {
    int64_t tasks = 0;
    for (const auto& done : RunUntilIdle(*device_)) {
      tasks += done.block_tasks_done;
      if (reports != nullptr) ++*reports;
      last_ = done;
    }
    return tasks;
  }
  std::unique_ptr<core::Device> device_;
  std::vector<core::LaneIndex> lanes_;
  uint64_t launches_ = 0;
  core::DeviceCompletion last_;
};

INSTANTIATE_TEST_SUITE_P(Tiers, BlockTasksTest, testing::Values(Tier::kKernel, Tier::kBlock),
                         [](const auto& tier) {
                           return tier.param == Tier::kKernel ? "Kernel" : "Block";
                         });

TEST_P(BlockTasksTest, EveryBlockTaskRunsOnceThroughRandomEvictions) {
  const char* const kernels[] = {"sincos_27us", "sincos_267us", "sincos_2700us_yield", "streaming"};
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Open(seed);
    core::Random random(seed);
    const char* kernel = kernels[random.Next() % 4];
    const int64_t tasks = 1 + static_cast<int64_t>(random.Next() % 60'000);
    int64_t done = 0;
    size_t reports = 0;
    uint64_t accepted = 0;
    bool reset = true;
    uint64_t epoch = 0;
    for (int round = 0; round < 200 && done < tasks; ++round) {
      ++epoch;
      // One launch on the whole device, or one launch on each side of a split with the same
      // counter.
      const bool split = random.Uniform() < 0.5;
      for (size_t lane = split ? 1 : 0; lane < (split ? 3u : 1u); ++lane) {
        auto request = Request(lane, kernel, tasks, reset, epoch);
        if (random.Uniform() < 0.3) request.workers = 1 + static_cast<int32_t>(random.Next() % 900);
        ASSERT_TRUE(device_->Launch(request).ok());
        ++accepted;
        reset = false;
      }
      const bool last = round > 100;
      for (int eviction = 0; eviction < 3 && !last; ++eviction) {
        device_->AdvanceTo(device_->NowNs() + static_cast<int64_t>(random.Next() % 2'000'000));
        const size_t lane = random.Next() % 3;
        const int32_t keep = random.Uniform() < 0.5 ? 0 : static_cast<int32_t>(random.Next() % 300);
        ASSERT_TRUE(device_->Evict(lanes_[lane], epoch, keep).ok());
      }
      done += Drain(&reports);
      ASSERT_LE(done, tasks);
    }
    EXPECT_EQ(done, tasks);
    EXPECT_EQ(reports, accepted);
  }
}

TEST_P(BlockTasksTest, ALaunchEvictedBeforeItStartsDoesNothing) {
  Open(1);
  ASSERT_TRUE(device_->Launch(Request(0, "sincos_2700us", 10'000, true, 3)).ok());
  ASSERT_TRUE(device_->Evict(lanes_[0], 3, 0).ok());
  // The write takes 4 us and the launch 4.5 us, so the write arrives first.
  ASSERT_TRUE(device_->Evict(lanes_[0], 3, 0).ok());
  auto queued = Request(0, "sincos_2700us", 0, false, 3);
  ASSERT_TRUE(device_->Launch(queued).ok());
  const auto done = RunUntilIdle(*device_);
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[1].outcome, core::Outcome::kEvicted);
  EXPECT_EQ(done[1].block_tasks_done, 0);
  EXPECT_EQ(done[1].start_ns, done[1].end_ns) << "the launch leaves at once";
}

TEST_P(BlockTasksTest, ALaterEpochIsUntouchedByAnEarlierWord) {
  Open(1);
  // the last epoch before the wrap to 0
  ASSERT_TRUE(device_->Evict(lanes_[0], ~uint64_t{0}, 0).ok());
  device_->AdvanceTo(100'000);
  ASSERT_TRUE(device_->Launch(Request(0, "sincos_27us", 5'000, true, 0)).ok());
  EXPECT_EQ(Drain(), 5'000);
  EXPECT_EQ(last_.outcome, core::Outcome::kFinished);
  ASSERT_TRUE(device_->Launch(Request(0, "sincos_27us", 5'000, true, ~uint64_t{0})).ok());
  EXPECT_EQ(Drain(), 0);
  EXPECT_EQ(last_.outcome, core::Outcome::kEvicted);
}

TEST_P(BlockTasksTest, AnEvictionEndsWithinOneBlockTask) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Open(seed);
    ASSERT_TRUE(device_->Launch(Request(0, "sincos_267us", 1'000'000, true, 1)).ok());
    const core::TimeNs at = 3'000'000 + static_cast<core::TimeNs>(seed) * 17'000;
    device_->AdvanceTo(at);
    ASSERT_TRUE(device_->Evict(lanes_[0], 1, 0).ok());
    Drain();
    EXPECT_EQ(last_.outcome, core::Outcome::kEvicted);
    EXPECT_GT(last_.end_ns - at, 0.65 * 267'000);
    EXPECT_LT(last_.end_ns - at, 1.08 * 267'000 + 20'000);
  }
}

TEST_P(BlockTasksTest, YieldPointsShortenAnEvictionAndLoseNoWork) {
  Open(3);
  const int64_t tasks = 4 * 1056;
  ASSERT_TRUE(device_->Launch(Request(0, "sincos_2700us_yield", tasks, true, 1)).ok());
  device_->AdvanceTo(4'000'000);
  ASSERT_TRUE(device_->Evict(lanes_[0], 1, 0).ok());
  int64_t done = Drain();
  EXPECT_LT(last_.end_ns - 4'000'000, 180'000);
  const int64_t spell = last_.end_ns - last_.start_ns;
  ASSERT_TRUE(device_->Launch(Request(0, "sincos_2700us_yield", 0, false, 2)).ok());
  done += Drain();
  EXPECT_EQ(done, tasks);
  // Both launches together take as long as one uninterrupted launch.
  const double whole = 4 * 2'700'000 * 1.005;
  EXPECT_NEAR(static_cast<double>(spell + last_.end_ns - last_.start_ns), whole, 0.04 * whole);
}

TEST_P(BlockTasksTest, APartialEvictionFreesRoomAndTheRestGoesOn) {
  Open(1);
  ASSERT_TRUE(device_->Launch(Request(0, "sincos_27us", 400'000, true, 1)).ok());
  device_->AdvanceTo(1'000'000);
  ASSERT_TRUE(device_->Evict(lanes_[0], 1, 528).ok());  // half of the workers
  device_->AdvanceTo(1'100'000);
  auto other = Request(0, "sincos_27us", 1'000, true, 1);
  other.parts[0].lane = lanes_[1];
  other.parts[0].counter = 6;
  ASSERT_TRUE(device_->Launch(other).ok());
  const auto done = RunUntilIdle(*device_);
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].launch.value, 2u);
  EXPECT_EQ(done[0].start_ns, 1'100'000 + H200().device.launch_latency_ns);
  EXPECT_EQ(done[0].block_tasks_done, 1'000);
  EXPECT_EQ(done[1].block_tasks_done, 400'000);
  EXPECT_EQ(done[1].outcome, core::Outcome::kFinished);
}

TEST_P(BlockTasksTest, ASliceRunsItsRangeAsAnOrdinaryGrid) {
  Open(1);
  auto slice = Request(0, "sincos_27us", 2'112, false, 0);
  slice.form = core::Form::kSlice;
  slice.parts[0].counter = -1;
  slice.block_begin = 5'000;
  ASSERT_TRUE(device_->Launch(slice).ok());
  EXPECT_EQ(Drain(), 2'112);
  EXPECT_NEAR(static_cast<double>(last_.end_ns - last_.start_ns), 54'000, 600);
}

}  // namespace
}  // namespace gpushare::sim
