// Evictions, epochs and claim counters: which workers leave, which stay, and that no block task is
// lost or repeated.

#include <algorithm>
#include <vector>

#include "src/core/base/limits.h"
#include "tests/contract/device_contract.h"

namespace gpushare::contract {
namespace {

using core::LaneIndex;
using core::LaunchId;
using core::Outcome;
using core::PlaceIndex;
using core::TimeNs;

class EvictionContract : public DeviceContract {
 protected:
  void SetUp() override {
    DeviceContract::SetUp();
    if (!capabilities().eviction) GTEST_SKIP() << "no eviction";
  }
  void Evict(LaneIndex lane, uint64_t epoch, int32_t keep = 0) {
    const absl::Status status = device().Evict(lane, epoch, keep);
    EXPECT_TRUE(status.ok()) << status;
  }
  // Block tasks that occupy the whole device for `rounds` x 10 us.
  int64_t Rounds(int64_t rounds) { return rounds * capabilities().profile.sm_count * 8; }
};

TEST_P(EvictionContract, AnEvictedLaunchLeavesAndItsRestStays) {
  if (!GetParam().work_takes_time) GTEST_SKIP() << "a launch is over before an eviction";
  const LaneIndex lane = MakeLane(core::kWholeDevice, true);
  const int64_t blocks = Rounds(100);  // 1 ms
  const LaunchId first = Launch(Workers(lane, blocks, 0, true, 1));
  WaitUntilTime(device().NowNs() + 300'000);
  const TimeNs evicted_at = device().NowNs();
  Evict(lane, 1);
  WaitForCount(1);
  EXPECT_EQ(Of(first).outcome, Outcome::kEvicted);
  EXPECT_GT(Of(first).block_tasks_done, 0);
  EXPECT_LT(Of(first).block_tasks_done, blocks);
  // The launch leaves after one block task and the write's latency, long before its end.
  EXPECT_LT(Of(first).end_ns - evicted_at, 100'000);
  const LaunchId rest = Launch(Workers(lane, blocks, 0, false, 2));
  WaitForAll();
  EXPECT_EQ(Of(rest).outcome, Outcome::kFinished);
  EXPECT_EQ(Of(first).block_tasks_done + Of(rest).block_tasks_done, blocks);
}

TEST_P(EvictionContract, ALaterLaunchIsUntouchedByAnEarlierEviction) {
  const LaneIndex lane = MakeLane(core::kWholeDevice, true);
  Evict(lane, 1);
  const LaunchId launch = Launch(Workers(lane, 5000, 0, true, 2));
  WaitForAll();
  EXPECT_EQ(Of(launch).outcome, Outcome::kFinished);
  EXPECT_EQ(Of(launch).block_tasks_done, 5000);
}

TEST_P(EvictionContract, LatecomerDoesNotLoseItsEviction) {
  const LaneIndex lane = MakeLane(core::kWholeDevice, true);
  // A launcher read epoch 1, an LC caller raised the word to 1, and only then the launch arrives.
  Evict(lane, 1);
  const LaunchId launch = Launch(Workers(lane, Rounds(100), 0, true, 1));
  WaitForCount(1);
  EXPECT_EQ(Of(launch).outcome, Outcome::kEvicted);
  EXPECT_LT(Of(launch).block_tasks_done, Rounds(100));
  const LaunchId rest = Launch(Workers(lane, Rounds(100), 0, false, 2));
  WaitForAll();
  EXPECT_EQ(Of(launch).block_tasks_done + Of(rest).block_tasks_done, Rounds(100));
}

TEST_P(EvictionContract, EveryQueuedLaunchUpToTheEpochLeaves) {
  const LaneIndex lane = MakeLane(core::kWholeDevice, true);
  if (!GetParam().work_takes_time) GTEST_SKIP() << "a launch is over before an eviction";
  const LaunchId running = Launch(Workers(lane, Rounds(100), 0, true, 1));
  const LaunchId queued = Launch(Workers(lane, Rounds(100), 1, true, 1));
  const LaunchId newer = Launch(Workers(lane, Rounds(1), 2, true, 2));
  WaitUntilTime(device().NowNs() + 100'000);
  Evict(lane, 1);
  WaitForAll();
  EXPECT_EQ(Of(running).outcome, Outcome::kEvicted);
  EXPECT_EQ(Of(queued).outcome, Outcome::kEvicted);
  EXPECT_EQ(Of(newer).outcome, Outcome::kFinished);
  EXPECT_EQ(Of(newer).block_tasks_done, Rounds(1));
}

TEST_P(EvictionContract, EvictionReachesItsOwnLaneOnly) {
  const LaneIndex a = MakeLane(core::kWholeDevice, true);
  const LaneIndex b = MakeLane(core::kWholeDevice, true);
  const LaunchId other = Launch(Workers(b, Rounds(20), 0, true, 1));
  const LaunchId mine = Launch(Workers(a, Rounds(20), 1, true, 1));
  WaitUntilTime(device().NowNs() + 50'000);
  Evict(a, 1);
  WaitForAll();
  EXPECT_EQ(Of(other).outcome, Outcome::kFinished);
  EXPECT_EQ(Of(other).block_tasks_done, Rounds(20));
  if (GetParam().work_takes_time) {
    EXPECT_EQ(Of(mine).outcome, Outcome::kEvicted);
  }
}

// Devices compare words by their signed difference, of all 64 bits or of the low 32.
TEST_P(EvictionContract, EpochsWrapAround) {
  const LaneIndex lane = MakeLane(core::kWholeDevice, true);
  // Raise the word to three before the wrap, with a launch behind each step. Either signed
  // difference orders each step.
  uint64_t word = 0;
  const auto advance_to = [&](uint64_t next) {
    Evict(lane, next);
    Launch(Workers(lane, 10, 2, true, next + 1));
    WaitForAll();
    word = next;
  };
  for (uint64_t quarter = 1; quarter <= 3; ++quarter) advance_to(quarter << 62);
  for (uint64_t step = 1; step <= 3; ++step) advance_to((uint64_t{3} << 62) + (step << 30));
  advance_to(~uint64_t{0} - 2);
  for (int i = 0; i < 6; ++i) {
    const LaunchId untouched = Launch(Workers(lane, 1000, 0, true, word + 1));
    WaitForAll();
    EXPECT_EQ(Of(untouched).outcome, Outcome::kFinished) << "word " << word;
    EXPECT_EQ(Of(untouched).block_tasks_done, 1000);
    ++word;
    Evict(lane, word);
    const LaunchId leaves = Launch(Workers(lane, Rounds(100), 1, true, word));
    WaitForAll();
    EXPECT_EQ(Of(leaves).outcome, Outcome::kEvicted) << "word " << word;
  }
  EXPECT_EQ(word, 3u) << "it wrapped";
}

TEST_P(EvictionContract, APartialEvictionKeepsWorkersThatFinishTheTask) {
  if (!GetParam().work_takes_time) GTEST_SKIP() << "a launch is over before an eviction";
  const LaneIndex lane = MakeLane(core::kWholeDevice, true);
  const LaneIndex plain = MakeLane();
  const int64_t whole = DurationOf(plain, Rounds(20));
  const LaunchId launch = Launch(Workers(lane, Rounds(20), 0, true, 1));
  WaitUntilTime(device().NowNs() + whole / 4);
  // A quarter of the workers stay.
  Evict(lane, 1, capabilities().profile.sm_count * 2);
  WaitForAll();
  EXPECT_EQ(Of(launch).outcome, Outcome::kFinished) << "nothing is left for a relaunch";
  EXPECT_EQ(Of(launch).block_tasks_done, Rounds(20));
  EXPECT_GT(Of(launch).end_ns - Of(launch).start_ns, whole * 5 / 4);
}

TEST_P(EvictionContract, KeptWorkersLeaveAtTheNextEviction) {
  if (!GetParam().work_takes_time) GTEST_SKIP() << "a launch is over before an eviction";
  const LaneIndex lane = MakeLane(core::kWholeDevice, true);
  const LaunchId launch = Launch(Workers(lane, Rounds(200), 0, true, 1));
  WaitUntilTime(device().NowNs() + 100'000);
  Evict(lane, 1, 16);
  WaitUntilTime(device().NowNs() + 100'000);
  EXPECT_FALSE(IsReported(launch));
  Evict(lane, 2);
  WaitForCount(1);
  EXPECT_EQ(Of(launch).outcome, Outcome::kEvicted);
  const LaunchId rest = Launch(Workers(lane, Rounds(200), 0, false, 3));
  WaitForAll();
  EXPECT_EQ(Of(launch).block_tasks_done + Of(rest).block_tasks_done, Rounds(200));
}

// Evictions at random moments: every block task still runs once.
TEST_P(EvictionContract, RepeatedEvictionsClaimEveryBlockTaskOnce) {
  const LaneIndex lane = MakeLane(core::kWholeDevice, true);
  const int64_t blocks = Rounds(50) + 17;
  int64_t done = 0;
  uint64_t epoch = 1;
  size_t launches = 0;
  for (int round = 0; round < 40; ++round, ++epoch) {
    const LaunchId launch = Launch(Workers(lane, blocks, 5, round == 0, epoch));
    WaitUntilTime(device().NowNs() + 1'000 + 7'919 * (round % 5));
    Evict(lane, epoch);
    WaitForCount(++launches);
    done += Of(launch).block_tasks_done;
    ASSERT_LE(done, blocks);
    if (Of(launch).outcome == Outcome::kFinished) break;
  }
  const LaunchId rest = Launch(Workers(lane, blocks, 5, false, epoch + 1));
  WaitForAll();
  EXPECT_EQ(done + Of(rest).block_tasks_done, blocks);
}

TEST_P(EvictionContract, ResettingACounterStartsTheNextTask) {
  const LaneIndex lane = MakeLane(core::kWholeDevice, true);
  const LaunchId first = Launch(Workers(lane, 700, 3, true, 1));
  const LaunchId nothing_left = Launch(Workers(lane, 700, 3, false, 1));
  WaitForAll();  // a counter may serve another task only when its own is complete
  const LaunchId second = Launch(Workers(lane, 900, 3, true, 1));
  WaitForAll();
  EXPECT_EQ(Of(first).block_tasks_done, 700);
  EXPECT_EQ(Of(nothing_left).block_tasks_done, 0);
  EXPECT_EQ(Of(second).block_tasks_done, 900);
}

// The elastic partition: one task with a worker launch on each side of a split and one counter.
TEST_P(EvictionContract, TwoLanesOnOneCounterShareTheTask) {
  if (!capabilities().partitions) GTEST_SKIP() << "no partitions";
  const int32_t groups = capabilities().profile.Groups();
  const LaneIndex lc_side = MakeLane(MakePlace(0, groups - 6, true), true);
  const LaneIndex be_side = MakeLane(MakePlace(groups - 6, 6), true);
  const int64_t blocks = Rounds(100);
  const LaunchId on_be = Launch(Workers(be_side, blocks, 0, true, 1));
  const LaunchId on_lc = Launch(Workers(lc_side, blocks, 0, false, 1));
  WaitUntilTime(device().NowNs() + 300'000);
  // An LC query arrives, and only the launch on its side leaves.
  Evict(lc_side, 1);
  WaitUntilTime(device().NowNs() + 200'000);
  if (GetParam().work_takes_time) {
    EXPECT_TRUE(IsReported(on_lc));
    EXPECT_FALSE(IsReported(on_be));
  }
  // The query has ended, and BE returns to the LC side.
  const LaunchId back = Launch(Workers(lc_side, blocks, 0, false, 2));
  WaitForAll();
  if (GetParam().work_takes_time) {
    EXPECT_EQ(Of(on_lc).outcome, Outcome::kEvicted);
    EXPECT_GT(Of(back).block_tasks_done, 0);
  }
  EXPECT_EQ(Of(on_be).outcome, Outcome::kFinished);
  EXPECT_EQ(Of(on_be).block_tasks_done + Of(on_lc).block_tasks_done + Of(back).block_tasks_done,
            blocks);
}

TEST_P(EvictionContract, OrdinaryGridsAreNotEvicted) {
  const LaneIndex lane = MakeLane(core::kWholeDevice, true);
  const LaunchId grid = Launch(Original(lane, Rounds(5)));
  WaitUntilTime(device().NowNs() + 10'000);
  Evict(lane, 1);
  WaitForAll();
  EXPECT_EQ(Of(grid).outcome, Outcome::kFinished);
  EXPECT_EQ(Of(grid).block_tasks_done, Rounds(5));
}

TEST_P(EvictionContract, WorkersOnALaneWithoutAnEvictionWordStay) {
  const LaneIndex plain = MakeLane();
  const LaunchId launch = Launch(Workers(plain, Rounds(5), 0, true, 1));
  WaitUntilTime(device().NowNs() + 10'000);
  Evict(plain, 1);
  WaitForAll();
  EXPECT_EQ(Of(launch).outcome, Outcome::kFinished);
  EXPECT_EQ(Of(launch).block_tasks_done, Rounds(5));
}

TEST_P(EvictionContract, InvalidEvictionsAreRefused) {
  const LaneIndex lane = MakeLane(core::kWholeDevice, true);
  EXPECT_EQ(device().Evict(core::kNoLane, 1, 0).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(device().Evict(core::kMaxLanes + 1, 1, 0).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(device().Evict(lane, 1, -1).code(), absl::StatusCode::kInvalidArgument);
  // The refused eviction has not changed the word.
  const LaunchId launch = Launch(Workers(lane, 1000, 0, true, 1));
  WaitForAll();
  EXPECT_EQ(Of(launch).outcome, Outcome::kFinished);
}

TEST_P(EvictionContract, EveryLaneIsEvictedWhileAllAreBusy) {
  if (!GetParam().work_takes_time) GTEST_SKIP() << "a launch is over before an eviction";
  // The simulated device writes words through hardware queues, which more busy lanes would block.
  const int busy_lanes = capabilities().simulated ? 4 : 16;
  std::vector<LaneIndex> lanes;
  std::vector<LaunchId> launches;
  for (int i = 0; i < busy_lanes; ++i) {
    lanes.push_back(MakeLane(core::kWholeDevice, true));
    // Two workers run for 100 ms, and another launch waits behind them.
    launches.push_back(Launch(Workers(lanes.back(), 20'000, 2 * i, true, 1, 2)));
    launches.push_back(Launch(Workers(lanes.back(), 20'000, 2 * i + 1, true, 1, 2)));
  }
  WaitUntilTime(device().NowNs() + 2'000'000);
  const TimeNs evicted_at = device().NowNs();
  for (const LaneIndex lane : lanes) Evict(lane, 1);
  WaitForAll();
  for (const LaunchId launch : launches) {
    EXPECT_EQ(Of(launch).outcome, Outcome::kEvicted);
    EXPECT_LT(Of(launch).end_ns - evicted_at, 2'000'000);
  }
}

TEST_P(EvictionContract, AnIdleLaneMayBeEvicted) {
  const LaneIndex lane = MakeLane(core::kWholeDevice, true);
  for (uint64_t word = 1; word <= 100; ++word) Evict(lane, word);
  const LaunchId launch = Launch(Workers(lane, 1000, 0, true, 101));
  WaitForAll();
  EXPECT_EQ(Of(launch).outcome, Outcome::kFinished);
}

INSTANTIATE_TEST_SUITE_P(Devices, EvictionContract, testing::ValuesIn(DeviceFactories()),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace gpushare::contract
