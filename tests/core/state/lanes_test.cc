// The splits of a device by its sizes: how many SMs either side has, that the sides share none, and
// that the CapSM ledger rounds packed amounts to sides that exist. On a device that makes every
// valid place.

#include "src/core/state/lanes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "src/core/base/tuning.h"
#include "src/core/checks/launch_check.h"
#include "src/core/seams/device_profile.h"
#include "src/core/state/capsm_ledger.h"

namespace gpushare::core {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::Not;

// Makes places and lanes, writes the places down and runs nothing.
class PlaceDevice final : public Device {
 public:
  explicit PlaceDevice(const DeviceProfile& profile) {
    capabilities_.profile = profile;
    capabilities_.partitions = capabilities_.eviction = true;
    places_.push_back({0, profile.Groups(), true});
  }

  const std::vector<PlaceSpec>& places() const { return places_; }

  TimeNs NowNs() const override { return 0; }
  const DeviceCapabilities& capabilities() const override { return capabilities_; }
  absl::Status PrepareKernel(const KernelDesc& /*kernel*/) override { return absl::OkStatus(); }
  absl::Status CreatePlace(PlaceIndex place, const PlaceSpec& spec) override {
    if (absl::Status status = CheckNewPlace(place, spec, capabilities_.profile); !status.ok()) {
      return status;
    }
    places_.resize(std::max(places_.size(), static_cast<size_t>(place) + 1));
    places_[static_cast<size_t>(place)] = spec;
    return absl::OkStatus();
  }
  absl::Status DestroyPlace(PlaceIndex /*place*/) override { return absl::OkStatus(); }
  absl::StatusOr<LaneIndex> CreateLane(const LaneSpec& /*spec*/) override { return lanes_++; }
  void AbandonLane(LaneIndex /*lane*/) override {}
  absl::Status Launch(const LaunchRequest& /*request*/) override {
    return absl::UnimplementedError("This device runs nothing.");
  }
  absl::Status Evict(LaneIndex /*lane*/, uint64_t /*epoch*/, int32_t /*workers*/) override {
    return absl::OkStatus();
  }
  void* LaneStream(LaneIndex /*lane*/) override { return nullptr; }
  size_t PollCompletions(absl::Span<DeviceCompletion> /*out*/) override { return 0; }
  TimeNs NextEventNs() const override { return kNever; }
  void AdvanceTo(TimeNs /*time*/) override {}
  int64_t BusySmNs() const override { return 0; }

 private:
  DeviceCapabilities capabilities_;
  std::vector<PlaceSpec> places_;
  LaneIndex lanes_ = 0;
};

DeviceProfile Sizes(int32_t sms, int32_t groups, bool remainder_for_lc) {
  DeviceProfile profile;
  profile.sm_count = sms;
  profile.sm_granularity = 8;
  profile.sm_groups = groups;
  profile.remainder_for_lc = remainder_for_lc;
  return profile;
}

// first, first + step, ... through last.
std::vector<int32_t> Steps(int32_t first, int32_t last, int32_t step) {
  std::vector<int32_t> steps;
  for (int32_t at = first; step > 0 ? at <= last : at >= last; at += step) steps.push_back(at);
  return steps;
}

// Which SMs a place has, one flag each; what whole groups leave over stands behind the last group.
std::vector<bool> SmsOf(const PlaceSpec& spec, const DeviceProfile& profile) {
  std::vector<bool> sms(static_cast<size_t>(profile.sm_count));
  const int32_t grouped = profile.Groups() * profile.sm_granularity;
  for (int32_t sm = 0; sm < profile.sm_count; ++sm) {
    const int32_t group = sm / profile.sm_granularity;
    sms[static_cast<size_t>(sm)] =
        sm < grouped ? group >= spec.first_group && group < spec.first_group + spec.groups
                     : spec.with_remainder;
  }
  return sms;
}

TEST(LanePlacesTest, AQueueGoesOnInALargerPlaceAlone) {
  PlaceDevice device(Sizes(132, 16, false));
  Lanes lanes;
  ASSERT_TRUE(lanes.Create(device, kMaxSplits).ok());
  const SplitView& small = lanes.splits().front();
  const SplitView& large = lanes.splits().back();
  const auto lane_of = [&](PlaceIndex place) { return lanes.Pick(place, LaneClass::kLc, 0); };
  EXPECT_TRUE(lanes.GoesOn(lane_of(small.lc_place), kWholeDevice));
  EXPECT_TRUE(lanes.GoesOn(lane_of(small.lc_place), large.lc_place));
  EXPECT_FALSE(lanes.GoesOn(lane_of(small.lc_place), small.lc_place));
  EXPECT_FALSE(lanes.GoesOn(lane_of(large.lc_place), small.lc_place));
  EXPECT_FALSE(lanes.GoesOn(lane_of(kWholeDevice), large.lc_place));
  EXPECT_FALSE(lanes.GoesOn(lane_of(small.lc_place), kNoPlace));
}

// On one lane a copy would wait for those of the other direction.
TEST(CopyLanesTest, EachDirectionHasItsLanesAsLongAsOneIsLeft) {
  PlaceDevice device(Sizes(132, 15, false));
  Lanes lanes;
  ASSERT_TRUE(lanes.Create(device, kMaxSplits).ok());
  std::set<LaneIndex> in;
  std::set<LaneIndex> out;
  const auto pick = [&](CopyDirection direction) {
    const LaneIndex index = lanes.PickForCopy(direction);
    EXPECT_EQ(lanes.lane(index).lane_class, LaneClass::kCopy);
    lanes.lane(index).in_flight.fetch_add(1);
    return index;
  };
  for (int i = 0; i < 8; ++i) {
    in.insert(pick(CopyDirection::kHostToDevice));
    out.insert(pick(CopyDirection::kDeviceToHost));
  }
  EXPECT_EQ(in.size(), 2U) << "the least busy one";
  EXPECT_EQ(out.size(), 2U);
  for (const LaneIndex index : in) EXPECT_EQ(out.count(index), 0U);
  EXPECT_EQ(in.count(lanes.PickForCopy(CopyDirection::kPeer)), 1U);
  for (const LaneIndex index : in) lanes.lane(index).usable = false;
  EXPECT_EQ(out.count(lanes.PickForCopy(CopyDirection::kHostToDevice)), 1U);
  for (const LaneIndex index : out) lanes.lane(index).usable = false;
  EXPECT_EQ(lanes.PickForCopy(CopyDirection::kHostToDevice), kNoLane);
}

TEST(CopyLanesTest, AYieldingGraphHasTheSecondLaneOfADirection) {
  PlaceDevice device(Sizes(132, 15, false));
  Lanes lanes;
  ASSERT_TRUE(lanes.Create(device, kMaxSplits).ok());
  std::set<LaneIndex> copies;
  for (int i = 0; i < 4; ++i) {
    for (const CopyDirection way : {CopyDirection::kHostToDevice, CopyDirection::kDeviceToHost}) {
      const LaneIndex index = lanes.PickForCopy(way, true);
      lanes.lane(index).in_flight.fetch_add(1);
      copies.insert(index);
    }
  }
  EXPECT_EQ(copies.size(), 2U) << "the first lane of each";
  std::set<LaneIndex> graphs;
  for (int i = 0; i < 2; ++i) {
    const LaneIndex index = lanes.PickForYielding();
    ASSERT_NE(index, kNoLane);
    lanes.lane(index).in_flight.fetch_add(1);
    lanes.lane(index).holds_segments = true;
    graphs.insert(index);
  }
  EXPECT_EQ(graphs.size(), 2U);
  for (const LaneIndex index : graphs) EXPECT_EQ(copies.count(index), 0U);
  EXPECT_EQ(lanes.PickForYielding(), kNoLane) << "each has its lane to itself";
  for (const LaneIndex index : copies) lanes.lane(index).usable = false;
  EXPECT_EQ(lanes.PickForCopy(CopyDirection::kHostToDevice, true), kNoLane);
  for (const LaneIndex index : copies) {
    lanes.lane(index).usable = true;
    lanes.lane(index).in_flight = 0;
  }
  for (const LaneIndex index : graphs) lanes.lane(index).usable = false;
  EXPECT_EQ(copies.count(lanes.PickForYielding()), 1U);
}

class LanesTest : public ::testing::Test {
 protected:
  // Makes the splits and collects their sizes; every split must use every SM exactly once.
  void MakeSplits(const DeviceProfile& profile, int splits_max = kMaxSplits) {
    PlaceDevice device(profile);
    Lanes lanes;
    const absl::Status status = lanes.Create(device, splits_max);
    ASSERT_TRUE(status.ok()) << status;
    lc_sms_.clear();
    be_sms_.clear();
    for (const SplitView& split : lanes.splits()) {
      SCOPED_TRACE(split.lc_sms);
      lc_sms_.push_back(split.lc_sms);
      be_sms_.push_back(split.be_sms);
      const std::vector<bool> lc =
          SmsOf(device.places()[static_cast<size_t>(split.lc_place)], profile);
      const std::vector<bool> be =
          SmsOf(device.places()[static_cast<size_t>(split.be_place)], profile);
      for (size_t sm = 0; sm < lc.size(); ++sm) EXPECT_NE(lc[sm], be[sm]) << "SM " << sm;
      ExpectSizes(lanes, split.lc_place, split.lc_sms, lc);
      ExpectSizes(lanes, split.be_place, split.be_sms, be);
      ExpectApart(lanes, split);
    }
  }

  static void ExpectSizes(const Lanes& lanes, PlaceIndex place, int32_t expected,
                          const std::vector<bool>& sms) {
    int32_t count = 0;
    for (const bool has : sms) count += has ? 1 : 0;
    EXPECT_EQ(expected, count);
    EXPECT_EQ(lanes.places()[static_cast<size_t>(place)].sms, count);
  }

  static void ExpectApart(const Lanes& lanes, const SplitView& split) {
    const uint64_t lc = lanes.places()[static_cast<size_t>(split.lc_place)].overlaps;
    const uint64_t be = lanes.places()[static_cast<size_t>(split.be_place)].overlaps;
    EXPECT_EQ(lc >> split.be_place & 1, 0u);
    EXPECT_EQ(be >> split.lc_place & 1, 0u);
    for (const uint64_t overlaps : {lc, be}) EXPECT_EQ(overlaps >> kWholeDevice & 1, 1u);
    EXPECT_EQ(lc >> split.lc_place & 1, 1u);
    EXPECT_EQ(be >> split.be_place & 1, 1u);
  }

  std::vector<int32_t> lc_sms_;
  std::vector<int32_t> be_sms_;
};

// An H200: 15 groups of 8, and 12 SMs that are left over.
TEST_F(LanesTest, WhatGroupsLeaveOverGoesToBe) {
  MakeSplits(Sizes(132, 15, false));
  EXPECT_THAT(lc_sms_, ElementsAreArray(Steps(8, 120, 8)));
  EXPECT_THAT(be_sms_, ElementsAreArray(Steps(124, 12, -8)));
}

// The second part of a fused launch is evicted by itself, so it needs an idle lane of its own.
TEST_F(LanesTest, AnIdleEvictableLaneIsNotTheOneThatIsExcepted) {
  PlaceDevice device(Sizes(132, 15, false));
  Lanes lanes;
  ASSERT_TRUE(lanes.Create(device, 0).ok());
  const LaneIndex one = lanes.PickIdleEvictable(kWholeDevice, kNoLane);
  ASSERT_NE(one, kNoLane);
  EXPECT_TRUE(lanes.lane(one).spec.evictable);
  const LaneIndex other = lanes.PickIdleEvictable(kWholeDevice, one);
  ASSERT_NE(other, kNoLane);
  EXPECT_NE(other, one);
  EXPECT_EQ(lanes.PickIdleEvictable(kWholeDevice, other), one);
  lanes.lane(one).in_flight.store(1);
  EXPECT_EQ(lanes.PickIdleEvictable(kWholeDevice, kNoLane), other);
  EXPECT_EQ(lanes.PickIdleEvictable(kWholeDevice, other), kNoLane) << "it is busy";
  lanes.lane(one).in_flight.store(0);
  lanes.lane(one).spec.evictable = false;
  EXPECT_EQ(lanes.PickIdleEvictable(kWholeDevice, other), kNoLane) << "its self-test failed";
}

// Behind another launch one within a quota would wait whatever SMs are free.
TEST_F(LanesTest, LaunchesWithinQuotasHaveALaneEachOnTheWholeDevice) {
  PlaceDevice device(Sizes(132, 15, false));
  Lanes lanes;
  ASSERT_TRUE(lanes.Create(device, kMaxSplits).ok());
  std::vector<LaneIndex> taken;
  for (int i = 0; i < kQuotaLanes; ++i) {
    const LaneIndex lane = lanes.PickForQuota(kWholeDevice, 0);
    ASSERT_NE(lane, kNoLane) << i;
    EXPECT_TRUE(lanes.lane(lane).spec.evictable);
    EXPECT_THAT(taken, Not(Contains(lane)));
    lanes.lane(lane).in_flight.store(1);
    taken.push_back(lane);
  }
  EXPECT_EQ(lanes.PickForQuota(kWholeDevice, 0), kNoLane) << "all are busy";
  lanes.lane(taken[1]).in_flight.store(0);
  EXPECT_EQ(lanes.PickForQuota(kWholeDevice, 0), taken[1]);
  lanes.lane(taken[1]).holds_fused_partner.store(true);
  EXPECT_EQ(lanes.PickForQuota(kWholeDevice, 0), kNoLane);
  // A side has one lane, which hides a launch latency.
  const PlaceIndex side = lanes.splits()[0].be_place;
  const LaneIndex one = lanes.PickForQuota(side, 0);
  ASSERT_NE(one, kNoLane);
  lanes.lane(one).in_flight.store(1);
  EXPECT_EQ(lanes.PickForQuota(side, 0), one);
}

// A launch that fills the device runs beside no third one.
TEST_F(LanesTest, OtherLaunchesUseTwoBeLanesHoweverBusyTheyAre) {
  PlaceDevice device(Sizes(132, 15, false));
  Lanes lanes;
  ASSERT_TRUE(lanes.Create(device, 0).ok());
  std::set<LaneIndex> used;
  for (uint32_t salt = 0; salt < 8; ++salt) {
    const LaneIndex lane = lanes.Pick(kWholeDevice, LaneClass::kBe, salt);
    lanes.lane(lane).in_flight.fetch_add(1);
    used.insert(lane);
  }
  EXPECT_EQ(used.size(), 2u);
  EXPECT_EQ(lanes.PickIdleEvictable(kWholeDevice, kNoLane), kNoLane);
  EXPECT_THAT(used, Not(Contains(lanes.PickForQuota(kWholeDevice, 0))));
}

TEST_F(LanesTest, WhatGroupsLeaveOverGoesToLc) {
  MakeSplits(Sizes(132, 15, true));
  EXPECT_THAT(lc_sms_, ElementsAreArray(Steps(12, 124, 8)));
  EXPECT_THAT(be_sms_, ElementsAreArray(Steps(120, 8, -8)));
}

TEST_F(LanesTest, WhereNothingIsLeftOverBothSidesHaveAGroup) {
  for (const bool for_lc : {false, true}) {
    SCOPED_TRACE(for_lc);
    MakeSplits(Sizes(128, 16, for_lc));
    EXPECT_THAT(lc_sms_, ElementsAreArray(Steps(8, 120, 8)));
    EXPECT_THAT(be_sms_, ElementsAreArray(Steps(120, 8, -8)));
  }
}

// With fewer splits than sizes, those that leave LC most.
TEST_F(LanesTest, FewSplitsAreTheOnesWithTheLargestLcSides) {
  MakeSplits(Sizes(132, 15, false), 3);
  EXPECT_THAT(lc_sms_, ElementsAre(104, 112, 120));
  MakeSplits(Sizes(132, 15, true), 3);
  EXPECT_THAT(lc_sms_, ElementsAre(108, 116, 124));
  MakeSplits(Sizes(128, 16, false), 3);
  EXPECT_THAT(lc_sms_, ElementsAre(104, 112, 120));
  MakeSplits(Sizes(132, 15, false), 0);
  EXPECT_TRUE(lc_sms_.empty());
}

// A reservation that no LC side holds, or a quota below every BE side, would be granted as packed
// and then find no split.
TEST_F(LanesTest, TheLedgerRoundsPackedAmountsToSidesThatAreThere) {
  constexpr int kLc = 0;
  constexpr int kBe = 1;
  for (const DeviceProfile& profile : {Sizes(132, 15, false), Sizes(132, 15, true),
                                       Sizes(132, 16, false), Sizes(128, 16, false)}) {
    MakeSplits(profile);
    CapSmLedger ledger(profile.sm_count, profile.sm_granularity, profile.Remainder(),
                       profile.remainder_for_lc);
    ledger.AddApp(kLc, AppClass::kLatencyCritical);
    ledger.AddApp(kBe, AppClass::kBestEffort);
    for (int32_t asked = 1; asked <= profile.sm_count; ++asked) {
      SCOPED_TRACE(asked);
      ASSERT_TRUE(ledger.Reserve(kLc, "lc", asked, true).ok());
      const int32_t reserved = ledger.ReservationOf(kLc);
      EXPECT_GE(reserved, asked);
      if (reserved < profile.sm_count) {
        EXPECT_LE(reserved, lc_sms_.back());
      }
      if (reserved < profile.sm_count && !profile.remainder_for_lc) {
        EXPECT_THAT(lc_sms_, Contains(reserved));
      }
      EXPECT_EQ(ledger.Reserve(kBe, "be", asked, true).ok(), asked >= be_sms_.back());
      const int32_t quota = ledger.ReservationOf(kBe);
      EXPECT_LE(quota, asked);
      if (quota > 0 && quota < profile.sm_count) {
        EXPECT_THAT(be_sms_, Contains(quota));
      }
    }
  }
}

// Sets of SMs that a plan of partitions names beside the sides of splits.
class NamedSetsTest : public ::testing::Test {
 protected:
  NamedSetsTest() {
    capabilities_.partitions = true;  // 132 SMs: 16 groups of 8, and 4 left over
    places_.Name(capabilities_, kMaxSplits, /*at_once=*/false);
  }
  bool Overlap(PlaceIndex a, PlaceIndex b) const {
    return (places_.view(a).overlaps >> b & 1) != 0 && (places_.view(b).overlaps >> a & 1) != 0;
  }

  DeviceCapabilities capabilities_;
  Places places_;
};

TEST_F(NamedSetsTest, ASetInTheMiddleSharesNoSmWithItsNeighbours) {
  EXPECT_EQ(places_.FindSet({2, 3, false}), kNoPlace);
  const PlaceIndex one = places_.NameSet({2, 3, false}, 24);
  EXPECT_EQ(places_.FindSet({2, 3, false}), one);
  const PlaceIndex next = places_.NameSet({5, 1, false}, 8);
  const PlaceIndex rest = places_.NameSet({6, 10, true}, 84);
  EXPECT_EQ(places_.view(one).sms, 24);
  EXPECT_TRUE(places_.TakesLc(one));
  EXPECT_FALSE(places_.view(one).ready);
  EXPECT_FALSE(Overlap(one, next));
  EXPECT_FALSE(Overlap(next, rest));
  for (const PlaceIndex set : {one, next, rest}) EXPECT_TRUE(Overlap(set, kWholeDevice));
}

TEST_F(NamedSetsTest, ASetHasOneIndexForGood) {
  const SplitView& split = places_.splits()[2];
  EXPECT_EQ(places_.NameSet({0, split.lc_sms / 8, false}, split.lc_sms), split.lc_place);
  const PlaceIndex set = places_.NameSet({1, 2, false}, 16);
  EXPECT_EQ(places_.NameSet({1, 2, false}, 16), set);
  EXPECT_EQ(places_.count(), 1 + 2 * kMaxSplits + 1);
}

TEST_F(NamedSetsTest, NoMoreAreNamedThanAMaskHolds) {
  int named = 0;
  for (int first = 1; first < 16; ++first) {
    for (int groups = 1; first + groups <= 16; ++groups) {
      if (places_.NameSet({first, groups, false}, groups * 8) != kNoPlace) ++named;
    }
  }
  EXPECT_EQ(named, kMaxPartitionPlaces);
  EXPECT_EQ(places_.count(), kMaxPlaces);
}

}  // namespace
}  // namespace gpushare::core
