// Places that end and are made again: which ones may end, what stays, and that nothing of the old
// place reaches the new one.

#include <vector>

#include "src/core/base/limits.h"
#include "tests/contract/device_contract.h"

namespace gpushare::contract {
namespace {

using core::LaneIndex;
using core::LaunchId;
using core::Outcome;
using core::PlaceIndex;
using core::PlaceSpec;

constexpr PlaceIndex kPlace = 5;

class PlacesContract : public DeviceContract {
 protected:
  void SetUp() override {
    DeviceContract::SetUp();
    if (!capabilities().partitions) GTEST_SKIP() << "no partitions";
    half_ = capabilities().profile.Groups() / 2;
  }

  void Make(PlaceIndex place, const PlaceSpec& spec) {
    const absl::Status status = device().CreatePlace(place, spec);
    ASSERT_TRUE(status.ok()) << status;
  }
  void Destroy(PlaceIndex place) {
    const absl::Status status = device().DestroyPlace(place);
    ASSERT_TRUE(status.ok()) << status;
  }
  absl::StatusCode TryDestroy(PlaceIndex place) { return device().DestroyPlace(place).code(); }

  int32_t half_ = 0;  // of the groups
};

TEST_P(PlacesContract, APlaceEndsAndTheIndexTakesOtherSms) {
  Make(kPlace, {0, half_, true});
  const LaneIndex first = MakeLane(kPlace);
  Launch(Original(first, 500));
  WaitForAll();
  Destroy(kPlace);
  EXPECT_FALSE(device().Launch(Original(first, 1)).ok()) << "the lane ended with its place";
  EXPECT_FALSE(device().CreateLane({.place = kPlace}).ok());
  EXPECT_EQ(device().LaneStream(first), nullptr);

  Make(kPlace, {half_, capabilities().profile.Groups() - half_, false});
  const LaneIndex again = MakeLane(kPlace, true);
  EXPECT_EQ(again, first) << "the lowest free index";
  const LaunchId launch = Launch(Workers(again, 500, 0, true, 1));
  WaitForAll();
  EXPECT_EQ(Of(launch).outcome, Outcome::kFinished);
  EXPECT_EQ(Of(launch).block_tasks_done, 500);
}

TEST_P(PlacesContract, APlaceWithALaunchThatIsNotReportedStays) {
  Make(kPlace, {0, half_, true});
  const LaneIndex lane = MakeLane(kPlace);
  const LaunchId launch = Launch(Original(lane, 20'000));
  EXPECT_EQ(TryDestroy(kPlace), absl::StatusCode::kFailedPrecondition);
  const LaunchId behind = Launch(Original(lane, 10));
  EXPECT_EQ(TryDestroy(kPlace), absl::StatusCode::kFailedPrecondition);
  WaitForAll();
  EXPECT_EQ(Of(launch).outcome, Outcome::kFinished);
  EXPECT_EQ(Of(behind).outcome, Outcome::kFinished);
  Destroy(kPlace);
}

TEST_P(PlacesContract, OnlyAPlaceThatWasMadeEndsAndOnlyOnce) {
  for (const PlaceIndex place : {core::kNoPlace, core::kWholeDevice, kPlace, core::kMaxPlaces}) {
    EXPECT_EQ(TryDestroy(place), absl::StatusCode::kFailedPrecondition) << place;
  }
  Make(kPlace, {0, half_, true});
  Destroy(kPlace);
  EXPECT_EQ(TryDestroy(kPlace), absl::StatusCode::kFailedPrecondition);
  Launch(Original(MakeLane(), 100));
  WaitForAll();
}

TEST_P(PlacesContract, AnIndexThatIsTakenOrUnknownIsRefused) {
  const PlaceSpec spec = {0, half_, true};
  for (const PlaceIndex place : {core::kNoPlace, core::kWholeDevice, core::kMaxPlaces}) {
    EXPECT_EQ(device().CreatePlace(place, spec).code(), absl::StatusCode::kInvalidArgument);
  }
  Make(kPlace, spec);
  EXPECT_EQ(device().CreatePlace(kPlace, spec).code(), absl::StatusCode::kAlreadyExists);
  Make(kPlace + 2, spec);
}

// Work and evictions of the other places go on while one ends.
TEST_P(PlacesContract, OtherPlacesKeepTheirLanesAndTheirWork) {
  Make(1, {0, half_, true});
  Make(2, {half_, capabilities().profile.Groups() - half_, false});
  const LaneIndex ends = MakeLane(1, true);
  const LaneIndex stays = MakeLane(2, true);
  const LaunchId launch = Launch(Workers(stays, 20'000, 0, true, 1));
  Destroy(1);
  EXPECT_FALSE(device().Evict(ends, 1, 0).ok());
  Make(3, {0, half_, true});
  EXPECT_EQ(MakeLane(3, true), ends);
  Launch(Workers(ends, 500, 1, true, 1));
  WaitForAll();
  EXPECT_EQ(Of(launch).outcome, Outcome::kFinished);
  EXPECT_EQ(Of(launch).block_tasks_done, 20'000);
}

// An eviction of the old lane reaches no launch of the lane that has its index now.
TEST_P(PlacesContract, AnEvictionEndsWithItsPlace) {
  if (!capabilities().eviction) GTEST_SKIP() << "no eviction";
  Make(kPlace, {0, half_, true});
  const LaneIndex lane = MakeLane(kPlace, true);
  Launch(Workers(lane, 100, 0, true, 1));
  WaitForAll();
  ASSERT_TRUE(device().Evict(lane, 9, 0).ok());
  Destroy(kPlace);
  Make(kPlace, {0, half_, true});
  ASSERT_EQ(MakeLane(kPlace, true), lane);
  const LaunchId launch = Launch(Workers(lane, 5'000, 0, true, 1));
  WaitForAll();
  EXPECT_EQ(Of(launch).outcome, Outcome::kFinished);
  EXPECT_EQ(Of(launch).block_tasks_done, 5'000);
}

TEST_P(PlacesContract, APlaceWithALaneThatWasGivenUpStays) {
  Make(kPlace, {0, half_, true});
  const LaneIndex lane = MakeLane(kPlace);
  device().AbandonLane(lane);
  EXPECT_EQ(TryDestroy(kPlace), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(device().ReplaceLane(lane, {.place = kPlace}).ok());
  EXPECT_EQ(TryDestroy(kPlace), absl::StatusCode::kFailedPrecondition)
      << "what hung may never leave its SMs";
  Launch(Original(lane, 100));
  WaitForAll();
}

// Graphs have instances in each place: those of a new one are there before its first launch.
TEST_P(PlacesContract, PreparedGraphsRunInAPlaceThatIsMadeAgain) {
  for (int round = 0; round < 3; ++round) {
    Make(kPlace, {0, half_ + round % 2, true});
    const LaneIndex lane = MakeLane(kPlace, true);
    const LaunchId whole = Launch(Graph(lane));
    WaitForAll();
    EXPECT_EQ(Of(whole).outcome, Outcome::kFinished);
    const LaunchId segments = Launch(Segments(lane, 0, true, static_cast<uint64_t>(round) + 1));
    WaitForAll();
    EXPECT_EQ(Of(segments).outcome, Outcome::kFinished);
    EXPECT_EQ(Of(segments).block_tasks_done, long_graph().segments());
    Destroy(kPlace);
  }
}

TEST_P(PlacesContract, PlacesMadeAndEndedAThousandTimesUseUpNothing) {
  constexpr int kRounds = 1000;
  const int rounds = capabilities().simulated ? kRounds : kRounds / 20;
  for (int round = 0; round < rounds; ++round) {
    Make(kPlace, {0, 1 + round % half_, false});
    const LaneIndex lane = MakeLane(kPlace, true);
    ASSERT_NE(lane, core::kNoLane) << round;
    if (round % 50 == 0) {
      Launch(Workers(lane, 64, 0, true, 1));
      WaitForAll();
    }
    Destroy(kPlace);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, PlacesContract, testing::ValuesIn(DeviceFactories()),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace gpushare::contract
