// Measured pairs: when they are trusted, how they follow, what they announce, and how many are
// kept.

#include "src/models/pairs/pair_model.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace gpushare::models {
namespace {

constexpr PairKey kPair = {.kernel = 1, .neighbour = 2, .sms = 84};

TEST(PairModelTest, FourSamplesMakeAPairKnownAndAnnounceIt) {
  PairModel pairs;
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(pairs.ObserveSpeed(kPair, 0.8));
    EXPECT_EQ(pairs.SpeedOf(kPair), 0);
  }
  EXPECT_TRUE(pairs.ObserveSpeed(kPair, 0.4));
  EXPECT_DOUBLE_EQ(pairs.SpeedOf(kPair), 0.7) << "the mean of the four";
  for (const PairKey& other : {PairKey{2, 1, 84}, PairKey{1, 2, 92}, PairKey{1, 3, 84}}) {
    EXPECT_EQ(pairs.SpeedOf(other), 0);
  }
}

TEST(PairModelTest, AChangeOfHalfAPerCentIsAnnounced) {
  PairModel pairs;
  for (int i = 0; i < 64; ++i) pairs.ObserveSpeed(kPair, 0.5);
  // 1 / 64 of each step reaches the mean.
  EXPECT_FALSE(pairs.ObserveSpeed(kPair, 0.5 + 64 * 0.0049));
  EXPECT_TRUE(pairs.ObserveSpeed(kPair, 0.5049 + 64 * 0.0002));
  EXPECT_FALSE(pairs.ObserveSpeed(kPair, 0.5051)) << "announced already";
}

TEST(PairModelTest, TheMeanFollowsTheLast64Samples) {
  PairModel pairs;
  for (int i = 0; i < 1000; ++i) pairs.ObserveSpeed(kPair, 0.5);
  pairs.ObserveSpeed(kPair, 0.9);
  EXPECT_NEAR(pairs.SpeedOf(kPair), 0.5 + 0.4 / 64, 1e-9);
}

TEST(PairModelTest, ThreeSamplesFarOffInARowBeginAPairAnew) {
  PairModel pairs;
  pairs.Restore(kPair, {.samples = 16, .mean = 0.98, .announced = 0.98});
  pairs.ObserveSpeed(kPair, 0.7);
  pairs.ObserveSpeed(kPair, 0.72);
  EXPECT_GT(pairs.SpeedOf(kPair), 0.9) << "two may have met something else";
  EXPECT_TRUE(pairs.ObserveSpeed(kPair, 0.71));
  EXPECT_NEAR(pairs.SpeedOf(kPair), 0.71, 1e-9);
  pairs.ObserveSpeed(kPair, 0.75);
  EXPECT_NEAR(pairs.SpeedOf(kPair), 0.71 + 0.04 / 5, 1e-9) << "and is followed as a new one";
}

TEST(PairModelTest, AProfileThatIsWrongOnOneSplitIsForgottenOnTheOthers) {
  PairModel pairs;
  constexpr PairKey kWider = {.kernel = 1, .neighbour = 2, .sms = 100};
  constexpr PairKey kMet = {.kernel = 1, .neighbour = 2, .sms = 116};
  constexpr PairKey kStranger = {.kernel = 1, .neighbour = 3, .sms = 100};
  for (const PairKey& key : {kPair, kWider, kMet, kStranger}) {
    pairs.Restore(key, {.samples = 16, .mean = 0.98, .announced = 0.98});
  }
  pairs.ObserveSpeed(kMet, 0.98);
  for (int i = 0; i < 3; ++i) pairs.ObserveSpeed(kPair, 0.7);
  EXPECT_EQ(pairs.SpeedOf(kWider), 0);
  EXPECT_DOUBLE_EQ(pairs.SpeedOf(kMet), 0.98) << "it was measured by this run";
  EXPECT_DOUBLE_EQ(pairs.SpeedOf(kStranger), 0.98);
}

TEST(PairModelTest, WhatATrialGaveUpStaysGivenUp) {
  PairModel pairs;
  constexpr PairKey kWider = {.kernel = 1, .neighbour = 2, .sms = 100};
  pairs.GiveUp(kWider, 0.47);
  pairs.Restore(kPair, {.samples = 16, .mean = 0.98, .announced = 0.98});
  for (int i = 0; i < 3; ++i) pairs.ObserveSpeed(kPair, 0.7);
  EXPECT_DOUBLE_EQ(pairs.SpeedOf(kWider), 0.47);
}

TEST(PairModelTest, AConfirmedPairTakesNoOutliersForAChange) {
  PairModel pairs;
  pairs.Restore(kPair, {.samples = 64, .mean = 0.98, .announced = 0.98});
  for (int i = 0; i < 6; ++i) {
    pairs.ObserveSpeed(kPair, 0.7);
    pairs.Confirm(kPair);
  }
  EXPECT_GT(pairs.SpeedOf(kPair), 0.95);
  constexpr PairKey kNew = {.kernel = 3, .neighbour = 2, .sms = 84};
  for (int i = 0; i < 6; ++i) {
    pairs.ObserveSpeed(kNew, 0.6);
    pairs.Confirm(kNew);
  }
  EXPECT_EQ(pairs.SpeedOf(kNew), 0);
}

TEST(PairModelTest, TwoHopelessSamplesMakeAPairKnown) {
  PairModel pairs;
  EXPECT_FALSE(pairs.ObserveSpeed(kPair, 0.6));
  EXPECT_EQ(pairs.SpeedOf(kPair), 0) << "one may have met something else";
  EXPECT_TRUE(pairs.ObserveSpeed(kPair, 0.7));
  EXPECT_DOUBLE_EQ(pairs.SpeedOf(kPair), 0.65);
  constexpr PairKey kOther = {.kernel = 3, .neighbour = 2, .sms = 84};
  pairs.ObserveSpeed(kOther, 0.6);
  EXPECT_FALSE(pairs.ObserveSpeed(kOther, 0.9));
  EXPECT_EQ(pairs.SpeedOf(kOther), 0);
}

TEST(PairModelTest, FarSamplesOnBothSidesOrWithOthersBetweenAreScatter) {
  PairModel pairs;
  pairs.Restore(kPair, {.samples = 64, .mean = 0.5, .announced = 0.5});
  for (const double factor : {0.9, 0.9, 0.5, 0.9, 0.1, 0.9, 0.1, 0.9}) {
    pairs.ObserveSpeed(kPair, factor);
  }
  EXPECT_NEAR(pairs.SpeedOf(kPair), 0.5, 0.05);
}

TEST(PairModelTest, AFactorIsCutToWhatANeighbourCanDo) {
  PairModel pairs;
  for (int i = 0; i < 8; ++i) pairs.ObserveSpeed(kPair, 3);
  EXPECT_DOUBLE_EQ(pairs.SpeedOf(kPair), 1);
  constexpr PairKey kOther = {.kernel = 3, .neighbour = 2, .sms = 84};
  for (int i = 0; i < 8; ++i) pairs.ObserveSpeed(kOther, 1e-9);
  EXPECT_DOUBLE_EQ(pairs.SpeedOf(kOther), 0.02);
}

TEST(PairModelTest, AFullTableKeepsItsPairsAndTakesNoOther) {
  PairModel pairs;
  const auto key = [](size_t kernel) { return PairKey{static_cast<uint32_t>(kernel + 1), 2, 84}; };
  const FollowedMean known = {.samples = 4, .mean = 0.5, .announced = 0.5};
  for (size_t i = 0; i + 1 < kMaxPairs; ++i) pairs.Restore(key(i), known);
  pairs.ObserveSpeed(key(kMaxPairs - 1), 0.5);
  ASSERT_EQ(pairs.speeds().size(), kMaxPairs);
  for (int i = 0; i < 8; ++i) EXPECT_FALSE(pairs.ObserveSpeed(key(kMaxPairs), 0.9));
  pairs.Restore(key(kMaxPairs), known);
  EXPECT_EQ(pairs.SpeedOf(key(kMaxPairs)), 0);
  EXPECT_EQ(pairs.speeds().size(), kMaxPairs);
  for (int i = 0; i < 8; ++i) pairs.ObserveSpeed(key(kMaxPairs - 1), 0.5);
  EXPECT_DOUBLE_EQ(pairs.SpeedOf(key(kMaxPairs - 1)), 0.5) << "one that is kept still learns";
  pairs.Restore(key(0), {.samples = 4, .mean = 0.25, .announced = 0.25});
  EXPECT_DOUBLE_EQ(pairs.SpeedOf(key(0)), 0.25);
}

}  // namespace
}  // namespace gpushare::models
