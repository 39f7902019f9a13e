// Fused launches: two parts share blocks, and each ends, is evicted and continues by itself.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "src/core/base/limits.h"
#include "tests/contract/device_contract.h"

namespace gpushare::contract {
namespace {

using core::Form;
using core::LaneIndex;
using core::LaunchId;
using core::LaunchRequest;
using core::Outcome;

class FusedContract : public DeviceContract {
 protected:
  void SetUp() override {
    DeviceContract::SetUp();
    if (!capabilities().eviction) GTEST_SKIP() << "no eviction";
    first_lane_ = MakeLane();
    second_lane_ = MakeLane(core::kWholeDevice, true);
  }
  void Evict(LaneIndex lane, uint64_t epoch, int32_t keep = 0) {
    const absl::Status status = device().Evict(lane, epoch, keep);
    EXPECT_TRUE(status.ok()) << status;
  }
  int64_t Rounds(int64_t rounds) { return rounds * capabilities().profile.sm_count * 8; }

  // Launches the rest of the partner's task by its own kernel.
  LaunchRequest RestOfPartner(int64_t blocks, uint64_t epoch) {
    LaunchRequest request = Workers(second_lane_, blocks, 1, false, epoch);
    request.parts[0].work.kernel = &partner();
    return request;
  }
  bool TakesTime() const { return GetParam().work_takes_time; }

  LaneIndex first_lane_ = core::kNoLane;   // like an LC task's lane: nobody evicts it
  LaneIndex second_lane_ = core::kNoLane;  // like a BE task's lane
};

TEST_P(FusedContract, BothPartsAreReportedOnceWithAllTheirBlockTasks) {
  const LaunchRequest request = Fused(first_lane_, Rounds(10) + 3, second_lane_, Rounds(15) + 1);
  Launch(request);
  WaitForAll();
  EXPECT_EQ(Of(request.parts[0].launch).outcome, Outcome::kFinished);
  EXPECT_EQ(Of(request.parts[0].launch).block_tasks_done, Rounds(10) + 3);
  EXPECT_EQ(Of(request.parts[1].launch).outcome, Outcome::kFinished);
  EXPECT_EQ(Of(request.parts[1].launch).block_tasks_done, Rounds(15) + 1);
}

// The report of an LC part must not wait for its longer BE partner.
TEST_P(FusedContract, ThePartThatEndsFirstIsReportedWhileTheOtherGoesOn) {
  if (!TakesTime()) GTEST_SKIP() << "a launch is over at once";
  const LaunchRequest early = Fused(first_lane_, Rounds(5), second_lane_, Rounds(400));
  Launch(early);
  WaitForCount(1);
  EXPECT_TRUE(IsReported(early.parts[0].launch));
  EXPECT_FALSE(IsReported(early.parts[1].launch));
  WaitForAll();
  EXPECT_GT(Of(early.parts[1].launch).end_ns, Of(early.parts[0].launch).end_ns);
  EXPECT_EQ(Of(early.parts[1].launch).block_tasks_done, Rounds(400));

  const LaunchRequest late = Fused(first_lane_, Rounds(400), second_lane_, Rounds(5));
  Launch(late);
  WaitForCount(3);
  EXPECT_TRUE(IsReported(late.parts[1].launch));
  EXPECT_FALSE(IsReported(late.parts[0].launch));
  WaitForAll();
  EXPECT_EQ(Of(late.parts[0].launch).block_tasks_done, Rounds(400));
}

TEST_P(FusedContract, AnEvictedPartnerLeavesAndTheFirstPartGoesOn) {
  if (!TakesTime()) GTEST_SKIP() << "a launch is over before an eviction";
  const LaunchRequest request = Fused(first_lane_, Rounds(200), second_lane_, Rounds(200));
  Launch(request);
  WaitUntilTime(device().NowNs() + 300'000);
  const core::TimeNs evicted_at = device().NowNs();
  Evict(second_lane_, 1);
  WaitForCount(1);
  ASSERT_TRUE(IsReported(request.parts[1].launch));
  EXPECT_FALSE(IsReported(request.parts[0].launch));
  const core::DeviceCompletion left = Of(request.parts[1].launch);
  EXPECT_EQ(left.outcome, Outcome::kEvicted);
  EXPECT_GT(left.block_tasks_done, 0);
  EXPECT_LT(left.block_tasks_done, Rounds(200));
  EXPECT_LT(left.end_ns - evicted_at, 100'000);
  WaitForCount(2);
  EXPECT_EQ(Of(request.parts[0].launch).outcome, Outcome::kFinished);
  EXPECT_EQ(Of(request.parts[0].launch).block_tasks_done, Rounds(200));
  // A worker launch of its own finishes the rest.
  const LaunchId rest = Launch(RestOfPartner(Rounds(200), 2));
  WaitForAll();
  EXPECT_EQ(Of(rest).outcome, Outcome::kFinished);
  EXPECT_EQ(left.block_tasks_done + Of(rest).block_tasks_done, Rounds(200));
}

TEST_P(FusedContract, TheFirstPartMayBeEvictedAndTheSecondGoesOn) {
  if (!TakesTime()) GTEST_SKIP() << "a launch is over before an eviction";
  const LaneIndex plain = MakeLane();
  const LaunchRequest request = Fused(second_lane_, Rounds(200), plain, Rounds(200));
  Launch(request);
  WaitUntilTime(device().NowNs() + 300'000);
  Evict(second_lane_, 1);
  WaitForCount(1);
  ASSERT_TRUE(IsReported(request.parts[0].launch));
  EXPECT_EQ(Of(request.parts[0].launch).outcome, Outcome::kEvicted);
  const LaunchId rest = Launch(Workers(second_lane_, Rounds(200), 0, false, 2));
  WaitForAll();
  EXPECT_EQ(Of(request.parts[1].launch).block_tasks_done, Rounds(200));
  EXPECT_EQ(Of(request.parts[0].launch).block_tasks_done + Of(rest).block_tasks_done, Rounds(200));
}

TEST_P(FusedContract, ALimitedPartnerGoesOnWithFewerWorkers) {
  if (!TakesTime()) GTEST_SKIP() << "a launch is over before an eviction";
  const LaunchRequest whole = Fused(first_lane_, Rounds(10), second_lane_, Rounds(60));
  Launch(whole);
  WaitForAll();
  const auto duration = [this](LaunchId launch) { return Of(launch).end_ns - Of(launch).start_ns; };
  const LaunchRequest limited = Fused(first_lane_, Rounds(10), second_lane_, Rounds(60));
  Launch(limited);
  WaitUntilTime(device().NowNs() + 50'000);
  Evict(second_lane_, 1, capabilities().profile.sm_count / 2);
  WaitForAll();
  EXPECT_EQ(Of(limited.parts[0].launch).block_tasks_done, Rounds(10));
  EXPECT_EQ(Of(limited.parts[1].launch).outcome, Outcome::kFinished);
  EXPECT_EQ(Of(limited.parts[1].launch).block_tasks_done, Rounds(60));
  EXPECT_GT(duration(limited.parts[1].launch), duration(whole.parts[1].launch) * 5 / 4);
  EXPECT_LT(duration(limited.parts[0].launch), duration(whole.parts[0].launch) * 5 / 4);
}

TEST_P(FusedContract, APartnerEvictedBeforeItsLaunchLeavesAtOnce) {
  Evict(second_lane_, 1);
  const LaunchRequest request = Fused(first_lane_, Rounds(20), second_lane_, Rounds(500));
  Launch(request);
  WaitForAll();
  EXPECT_EQ(Of(request.parts[0].launch).block_tasks_done, Rounds(20));
  EXPECT_EQ(Of(request.parts[1].launch).outcome, Outcome::kEvicted);
  EXPECT_LT(Of(request.parts[1].launch).block_tasks_done, Rounds(500));
  const LaunchId rest = Launch(RestOfPartner(Rounds(500), 2));
  WaitForAll();
  EXPECT_EQ(Of(request.parts[1].launch).block_tasks_done + Of(rest).block_tasks_done, Rounds(500));
}

// As a quota is kept: of a tenth of the workers none other ever starts.
TEST_P(FusedContract, APartnerLimitedBeforeItsLaunchHasNoMoreWorkers) {
  if (!TakesTime()) GTEST_SKIP() << "a launch is over at once";
  const LaunchRequest whole = Fused(first_lane_, Rounds(10), second_lane_, Rounds(20));
  Launch(whole);
  WaitForAll();
  Evict(second_lane_, 1, capabilities().profile.sm_count * 8 / 10);
  const LaunchRequest limited = Fused(first_lane_, Rounds(10), second_lane_, Rounds(20));
  Launch(limited);
  WaitForAll();
  const auto duration = [this](LaunchId launch) { return Of(launch).end_ns - Of(launch).start_ns; };
  EXPECT_EQ(Of(limited.parts[0].launch).block_tasks_done, Rounds(10));
  EXPECT_EQ(Of(limited.parts[1].launch).outcome, Outcome::kFinished);
  EXPECT_EQ(Of(limited.parts[1].launch).block_tasks_done, Rounds(20));
  // Not ten times: the other part ends long before it, and leaves it the SMs.
  EXPECT_GT(duration(limited.parts[1].launch), duration(whole.parts[1].launch) * 3);
  EXPECT_LT(duration(limited.parts[0].launch), duration(whole.parts[0].launch) * 5 / 4);
}

// Not even for a block task: a quota of a quarter of an SM's worker each makes four turns of one.
TEST_P(FusedContract, APartnersLimitCountsFromItsFirstBlockTaskOn) {
  if (!TakesTime()) GTEST_SKIP() << "a launch is over at once";
  const int64_t blocks = capabilities().profile.sm_count;
  const LaunchRequest whole = Fused(first_lane_, Rounds(10), second_lane_, blocks);
  Launch(whole);
  WaitForAll();
  Evict(second_lane_, 1, capabilities().profile.sm_count / 4);
  const LaunchRequest limited = Fused(first_lane_, Rounds(10), second_lane_, blocks);
  Launch(limited);
  WaitForAll();
  const auto duration = [this](LaunchId launch) { return Of(launch).end_ns - Of(launch).start_ns; };
  EXPECT_EQ(Of(limited.parts[1].launch).block_tasks_done, blocks);
  EXPECT_GT(duration(limited.parts[1].launch), duration(whole.parts[1].launch) * 2);
}

// A quota of 16 of 132 SMs, and its end in the middle: the first part goes on as if it were alone,
// with all of its workers, which is more than any reservation.
TEST_P(FusedContract, APartnerWithAQuotaIsEvictedInTheMiddle) {
  if (!TakesTime()) GTEST_SKIP() << "a launch is over before an eviction";
  constexpr int64_t kBeforeNs = 300'000;
  const int32_t quota = capabilities().profile.sm_count * 16 / 132 * 8;
  int64_t done[2] = {};
  int64_t first_ns[2] = {};
  for (const bool limited : {false, true}) {
    const size_t before = completions().size();
    const uint64_t epoch = limited ? 2 : 1;
    if (limited) Evict(second_lane_, epoch, quota);
    LaunchRequest request = Fused(first_lane_, Rounds(200), second_lane_, Rounds(200));
    request.parts[1].epoch = epoch;
    Launch(request);
    WaitUntilTime(device().NowNs() + kBeforeNs);
    Evict(second_lane_, epoch);
    WaitForCount(before + 1);
    const LaunchId partner = request.parts[1].launch;
    ASSERT_TRUE(IsReported(partner));
    EXPECT_EQ(Of(partner).outcome, Outcome::kEvicted);
    done[limited ? 1 : 0] = Of(partner).block_tasks_done;
    WaitForCount(before + 2);
    const core::DeviceCompletion& first = Of(request.parts[0].launch);
    EXPECT_EQ(first.block_tasks_done, Rounds(200));
    first_ns[limited ? 1 : 0] = first.end_ns - first.start_ns;
    const LaunchId rest = Launch(RestOfPartner(Rounds(200), epoch + 1));
    WaitForCount(before + 3);
    EXPECT_EQ(Of(partner).block_tasks_done + Of(rest).block_tasks_done, Rounds(200));
  }
  EXPECT_GT(done[1], 0);
  EXPECT_LT(done[1], done[0] * 3 / 4);
  EXPECT_LT(first_ns[1], first_ns[0] * 5 / 4);
}

// The partner is evicted from one fused launch after another, at random moments: every block task
// runs once.
TEST_P(FusedContract, APartnerGoesOnInOtherFusedLaunches) {
  const int64_t blocks = Rounds(120) + 17;
  int64_t done = 0;
  size_t reported = 0;
  bool finished = false;
  uint64_t epoch = 1;
  for (int round = 0; round < 12 && !finished; ++round, ++epoch) {
    LaunchRequest request = Fused(first_lane_, Rounds(3) + round, second_lane_, blocks);
    request.parts[1].reset_counter = round == 0;
    request.parts[1].epoch = epoch;
    Launch(request);
    WaitUntilTime(device().NowNs() + 2'000 + 17'919 * (round % 4));
    Evict(second_lane_, epoch);
    WaitForCount(reported += 2);
    EXPECT_EQ(Of(request.parts[0].launch).block_tasks_done, Rounds(3) + round);
    done += Of(request.parts[1].launch).block_tasks_done;
    finished = Of(request.parts[1].launch).outcome == Outcome::kFinished;
    ASSERT_LE(done, blocks);
  }
  const LaunchId rest = Launch(RestOfPartner(blocks, epoch + 1));
  WaitForAll();
  EXPECT_EQ(done + Of(rest).block_tasks_done, blocks);
}

// The stream orders the whole fused launch, not only the lane's own part.
TEST_P(FusedContract, TheLanesNextLaunchWaitsForBothParts) {
  if (!TakesTime()) GTEST_SKIP() << "a launch is over at once";
  const LaunchRequest request = Fused(first_lane_, Rounds(5), second_lane_, Rounds(100));
  Launch(request);
  const LaunchId next = Launch(Workers(first_lane_, Rounds(1), 2, true, 1));
  WaitForAll();
  const int64_t clocks_apart_ns = 20'000;  // between readings of two GPU clocks
  EXPECT_GE(Of(next).start_ns + clocks_apart_ns, Of(request.parts[1].launch).end_ns);
  EXPECT_LT(Of(request.parts[0].launch).end_ns, Of(request.parts[1].launch).end_ns);
}

// A launch that ended before the fused launch began is reported then, not when the partner ends.
TEST_P(FusedContract, LaunchesBeforeItAreReportedWhileThePartnerGoesOn) {
  if (!TakesTime()) GTEST_SKIP() << "a launch is over at once";
  for (const bool more_follows : {false, true}) {
    SCOPED_TRACE(more_follows);
    const size_t before = completions().size();
    LaunchRequest ordinary = Original(first_lane_, Rounds(1));
    ordinary.more_follows = more_follows;
    Launch(ordinary);
    ordinary = Original(first_lane_, Rounds(1));
    ordinary.more_follows = more_follows;  // if false, the device marks its end at once
    Launch(ordinary);
    const LaunchRequest fused = Fused(first_lane_, Rounds(5), second_lane_, Rounds(400));
    Launch(fused);
    WaitForCount(before + 3);
    EXPECT_TRUE(IsReported(ordinary.parts[0].launch));
    EXPECT_TRUE(IsReported(fused.parts[0].launch));
    EXPECT_FALSE(IsReported(fused.parts[1].launch));
    WaitForAll();
    EXPECT_LT(Of(ordinary.parts[0].launch).end_ns, Of(fused.parts[0].launch).end_ns);
  }
}

TEST_P(FusedContract, PartsOnOneLaneWithoutAWord) {
  const LaunchRequest request = Fused(first_lane_, Rounds(30), first_lane_, Rounds(2));
  Launch(request);
  LaunchRequest after = Fused(first_lane_, Rounds(1), first_lane_, Rounds(8));
  after.parts[0].counter = 2;
  after.parts[1].counter = 3;
  Launch(after);
  if (TakesTime()) {
    WaitForCount(1);
    EXPECT_TRUE(IsReported(request.parts[1].launch));
  }
  WaitForAll();
  for (const auto& [launch, blocks] :
       {std::pair{request.parts[0].launch, Rounds(30)},
        std::pair{request.parts[1].launch, Rounds(2)}, std::pair{after.parts[0].launch, Rounds(1)},
        std::pair{after.parts[1].launch, Rounds(8)}}) {
    EXPECT_EQ(Of(launch).outcome, Outcome::kFinished);
    EXPECT_EQ(Of(launch).block_tasks_done, blocks);
  }
}

// Either part may be first; the first part's lane gives the order and the priority.
TEST_P(FusedContract, TheCudaCorePartMayBeTheFirst) {
  LaunchRequest request = Fused(first_lane_, Rounds(6), second_lane_, Rounds(9));
  std::swap(request.parts[0].work.kernel, request.parts[1].work.kernel);
  Launch(request);
  WaitForAll();
  EXPECT_EQ(Of(request.parts[0].launch).block_tasks_done, Rounds(6));
  EXPECT_EQ(Of(request.parts[1].launch).block_tasks_done, Rounds(9));
}

TEST_P(FusedContract, AFewFusedBlocksAreEnough) {
  LaunchRequest request = Fused(first_lane_, 50, second_lane_, 70);
  request.workers = 2;
  Launch(request);
  WaitForAll();
  EXPECT_EQ(Of(request.parts[0].launch).block_tasks_done, 50);
  EXPECT_EQ(Of(request.parts[1].launch).block_tasks_done, 70);
}

TEST_P(FusedContract, APartWithNothingLeftLeavesTheOtherAlone) {
  Launch(Workers(first_lane_, 900, 0, true, 1));
  WaitForAll();
  LaunchRequest request = Fused(first_lane_, 900, second_lane_, Rounds(2));
  request.parts[0].reset_counter = false;
  Launch(request);
  WaitForAll();
  EXPECT_EQ(Of(request.parts[0].launch).block_tasks_done, 0);
  EXPECT_EQ(Of(request.parts[0].launch).outcome, Outcome::kFinished);
  EXPECT_EQ(Of(request.parts[1].launch).block_tasks_done, Rounds(2));
}

TEST_P(FusedContract, InvalidPairsAreRefused) {
  std::vector<LaunchRequest> bad(7, Fused(first_lane_, 10, second_lane_, 10));
  bad[0].parts[1].launch = bad[0].parts[0].launch;
  bad[1].parts[1].counter = bad[1].parts[0].counter;
  bad[2].parts[1].counter = core::kMaxCounters;
  bad[3].parts[1].work.kernel = &kernel();
  bad[4].parts[1].lane = second_lane_ + 1;
  bad[5].parts[1].block_count = -1;
  bad[6].parts[1].work.arguments_bytes = core::kMaxArgumentBytes + 1;
  for (size_t i = 0; i < bad.size(); ++i) {
    const absl::Status status = device().Launch(bad[i]);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << i << ": " << status;
    EXPECT_FALSE(status.message().empty()) << i;
  }
  // The refused requests left nothing on either lane.
  Launch(Workers(second_lane_, 100, 1, true, 2));
  Launch(Original(first_lane_, 100));
  WaitForAll();
}

// The device could launch it, but would never learn that it has ended.
TEST_P(FusedContract, AKernelThatReportsNoEndIsRefusedAtRegistration) {
  if (GetParam().direct_function == nullptr) GTEST_SKIP() << "the device launches no functions";
  core::FusedKernelDesc direct = fused();
  direct.id = core::KernelId{2};
  direct.function = GetParam().direct_function;
  const absl::Status status = device().PrepareFusedKernel(direct);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_NE(status.message().find("GPUSHARE_FUSED_DIRECT"), std::string::npos) << status;
}

TEST_P(FusedContract, AnAbandonedPartnersLaneReportsNothing) {
  const LaunchRequest request = Fused(first_lane_, Rounds(5), second_lane_, Rounds(20));
  EXPECT_TRUE(device().Launch(request).ok());
  device().AbandonLane(second_lane_);
  WaitForAll(1);
  EXPECT_TRUE(IsReported(request.parts[0].launch));
}

INSTANTIATE_TEST_SUITE_P(Devices, FusedContract, testing::ValuesIn(DeviceFactories()),
                         [](const auto& factory) { return factory.param.name; });

}  // namespace
}  // namespace gpushare::contract
