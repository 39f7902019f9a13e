// Room that becomes free goes to the blocks that wait for it, beside those of the same launch too.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>

#include "tests/core/make_place.h"
#include "tests/sim/sim_fixture.h"

namespace gpushare::sim {
namespace {

constexpr int64_t kTasks = 132 * 8 * 200;

class RoomTest : public testing::TestWithParam<Tier> {
 protected:
  void Open() {
    device_ = MakeDevice(GetParam());
    be_ = *device_->CreateLane({core::kWholeDevice, core::LanePriority::kLow, true});
  }

  core::LaneIndex Lane(core::PlaceIndex place, core::LanePriority priority) {
    return *device_->CreateLane({place, priority, true});
  }

  void Launch(uint64_t id, core::LaneIndex lane, core::Form form, int64_t tasks,
              int32_t workers = 0) {
    core::LaunchRequest request;
    request.form = form;
    request.workers = workers;
    core::LaunchPart& part = request.parts[0];
    part.launch = core::LaunchId{id};
    part.lane = lane;
    part.work.kernel = &Kernel("sincos_27us");
    part.block_count = tasks;
    if (form == core::Form::kWorkers) {
      part.counter = static_cast<int32_t>(id);
      part.reset_counter = true;
      part.epoch = 1;
    }
    ASSERT_TRUE(device_->Launch(request).ok());
  }

  // Workers on three quarters of each SM, which run for a long time.
  void FillWithWorkers() {
    const int32_t most = Kernel("sincos_27us").resources.workers_per_sm_max;
    Launch(1, be_, core::Form::kWorkers, int64_t{1} << 30, most * 3 / 4 * 132);
    device_->AdvanceTo(device_->NowNs() + 200'000);
  }

  std::map<uint64_t, core::DeviceCompletion> Finish() {
    std::map<uint64_t, core::DeviceCompletion> ends;
    for (const auto& done : RunUntilIdle(*device_)) ends[done.launch.value] = done;
    return ends;
  }

  // How long a grid takes that starts beside workers, which are evicted 300 us later or never were.
  double GridNs(const core::PlaceSpec* spec, bool beside) {
    Open();
    const core::PlaceIndex place =
        spec != nullptr ? *core::MakePlace(*device_, *spec) : core::kWholeDevice;
    if (beside) FillWithWorkers();
    Launch(2, Lane(place, core::LanePriority::kHigh), core::Form::kOriginal, kTasks);
    if (beside) {
      device_->AdvanceTo(device_->NowNs() + 300'000);
      EXPECT_TRUE(device_->Evict(be_, 1, 0).ok());
    }
    const auto ends = Finish();
    EXPECT_EQ(ends.at(2).block_tasks_done, kTasks);
    return static_cast<double>(ends.at(2).end_ns - ends.at(2).start_ns);
  }

  std::unique_ptr<core::Device> device_;
  core::LaneIndex be_ = core::kNoLane;
};

INSTANTIATE_TEST_SUITE_P(Tiers, RoomTest, testing::Values(Tier::kKernel, Tier::kBlock),
                         [](const auto& tier) {
                           return tier.param == Tier::kKernel ? "Kernel" : "Block";
                         });

TEST_P(RoomTest, AGridTakesTheRoomThatWorkersLeave) {
  const double alone = GridNs(nullptr, false);
  const double beside = GridNs(nullptr, true);
  EXPECT_GT(beside, alone);
  EXPECT_LT(beside, alone + 400'000);
}

TEST_P(RoomTest, AGridTakesRoomOnlyInItsPlace) {
  const core::PlaceSpec half = {0, 8, false};
  const double alone = GridNs(&half, false);
  const double beside = GridNs(&half, true);
  EXPECT_GT(beside, alone);
  EXPECT_LT(beside, alone + 400'000);
}

TEST_P(RoomTest, WorkersThatWaitTakeTheRoomThatOthersLeave) {
  Open();
  FillWithWorkers();
  const core::LaneIndex lane = Lane(core::kWholeDevice, core::LanePriority::kHigh);
  Launch(2, lane, core::Form::kWorkers, kTasks);
  device_->AdvanceTo(device_->NowNs() + 300'000);
  ASSERT_TRUE(device_->Evict(be_, 1, 0).ok());
  const auto beside = Finish().at(2);
  Open();
  Launch(2, Lane(core::kWholeDevice, core::LanePriority::kHigh), core::Form::kWorkers, kTasks);
  const auto alone = Finish().at(2);
  EXPECT_LT(beside.end_ns - beside.start_ns, alone.end_ns - alone.start_ns + 400'000);
  EXPECT_EQ(beside.block_tasks_done, kTasks);
}

TEST_P(RoomTest, TheGridThatCameFirstTakesTheRoom) {
  Open();
  FillWithWorkers();
  const core::LaneIndex first = Lane(core::kWholeDevice, core::LanePriority::kHigh);
  const core::LaneIndex second = Lane(core::kWholeDevice, core::LanePriority::kHigh);
  Launch(2, first, core::Form::kOriginal, kTasks);
  device_->AdvanceTo(device_->NowNs() + 100'000);
  Launch(3, second, core::Form::kOriginal, kTasks);
  device_->AdvanceTo(device_->NowNs() + 200'000);
  ASSERT_TRUE(device_->Evict(be_, 1, 0).ok());
  const auto ends = Finish();
  const double alone = GridNs(nullptr, false);
  EXPECT_LT(static_cast<double>(ends.at(2).end_ns - ends.at(2).start_ns), alone + 400'000);
  EXPECT_GT(ends.at(3).start_ns, ends.at(2).end_ns - 100'000);
  EXPECT_EQ(ends.at(3).block_tasks_done, kTasks);
}

TEST_P(RoomTest, AGridBehindAHigherPriorityTakesNoRoomFromIt) {
  Open();
  FillWithWorkers();
  Launch(2, Lane(core::kWholeDevice, core::LanePriority::kLow), core::Form::kOriginal, kTasks);
  device_->AdvanceTo(device_->NowNs() + 100'000);
  Launch(3, Lane(core::kWholeDevice, core::LanePriority::kHigh), core::Form::kOriginal, kTasks);
  device_->AdvanceTo(device_->NowNs() + 200'000);
  ASSERT_TRUE(device_->Evict(be_, 1, 0).ok());
  const auto ends = Finish();
  const double alone = GridNs(nullptr, false);
  EXPECT_LT(static_cast<double>(ends.at(3).end_ns - ends.at(3).start_ns), alone + 400'000);
  EXPECT_GT(ends.at(2).end_ns, ends.at(3).end_ns);
}

TEST_P(RoomTest, WorkersTakeNoRoomThatIsHeldForAChain) {
  Open();
  FillWithWorkers();
  const core::LaneIndex lane = Lane(core::kWholeDevice, core::LanePriority::kLow);
  Launch(2, lane, core::Form::kWorkers, int64_t{1} << 30);
  core::LaunchRequest chain;  // its nodes take whole SMs
  chain.form = core::Form::kGraph;
  chain.parts[0].launch = core::LaunchId{3};
  chain.parts[0].lane = Lane(core::kWholeDevice, core::LanePriority::kHigh);
  chain.parts[0].work.kernel = &Kernel("chain1");
  ASSERT_TRUE(device_->Launch(chain).ok());
  device_->AdvanceTo(device_->NowNs() + 100'000);
  ASSERT_TRUE(device_->Evict(be_, 1, 0).ok());
  device_->AdvanceTo(device_->NowNs() + 5'000'000);
  ASSERT_TRUE(device_->Evict(lane, 1, 0).ok());
  const auto ends = Finish();
  const double span = static_cast<double>(ends.at(2).end_ns - ends.at(2).start_ns);
  const double full = 132 * span /
                      static_cast<double>(Kernel("sincos_27us").simulation.block_task_ns) *
                      Kernel("sincos_27us").resources.workers_per_sm_max;
  EXPECT_LT(static_cast<double>(ends.at(2).block_tasks_done), 0.6 * full);
  EXPECT_GT(ends.at(3).start_ns, ends.at(2).end_ns - 200'000);
}

}  // namespace
}  // namespace gpushare::sim
