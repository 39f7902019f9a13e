// Factors beside neighbours that a kernel never met.

#include "src/models/pairs/neighbour_model.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace gpushare::models {
namespace {

// A neighbour whose speed is in proportion to its SMs.
NeighbourPlace On(double share) { return {share, share}; }

// A kernel that only DRAM slows: by 60 % beside a neighbour that fills DRAM from all SMs.
double Truth(const UseOfDevice& use, double share) { return 1 - 0.6 * use.dram * share; }

std::vector<NeighbourSample> Samples() {
  std::vector<NeighbourSample> samples;
  for (const double dram : {0.0, 0.2, 0.5, 0.9}) {
    for (const double issue : {0.1, 0.8}) {
      for (const double share : {0.2, 0.5, 0.7}) {
        const UseOfDevice use = {dram, dram / 2, 1 - issue, 0};
        samples.push_back({use, On(share), Truth(use, share)});
      }
    }
  }
  return samples;
}

TEST(NeighbourModel, PredictsANeighbourThatItNeverMet) {
  NeighbourModel model;
  model.Fit(Samples());
  ASSERT_TRUE(model.known());
  const UseOfDevice unknown = {0.7, 0.35, 0.5, 0};
  const FactorPrediction prediction = model.Predict(unknown, On(0.6));
  EXPECT_NEAR(prediction.factor, Truth(unknown, 0.6), 0.02);
  EXPECT_LT(prediction.error, 0.05);
}

// What lbm does to a query and a kernel that only reads does not.
TEST(NeighbourModel, WritesCostMoreThanReads) {
  std::vector<NeighbourSample> samples;
  for (const double dram : {0.1, 0.4, 0.6, 0.9}) {
    for (const double written : {0.0, 0.5, 1.0}) {
      for (const double share : {0.2, 0.5, 0.7}) {
        const UseOfDevice use = {dram, dram, 0, dram * written};
        samples.push_back({use, On(share), 1 - (0.3 + 0.5 * written) * dram * share});
      }
    }
  }
  NeighbourModel model;
  model.Fit(samples);
  EXPECT_NEAR(model.Predict({0.8, 0.8, 0, 0}, On(0.6)).factor, 1 - 0.3 * 0.8 * 0.6, 0.03);
  EXPECT_NEAR(model.Predict({0.8, 0.8, 0, 0.8}, On(0.6)).factor, 1 - 0.8 * 0.8 * 0.6, 0.03);
}

// vector_add on 12 SMs reaches a third of its speed, fft an eighth: it moves more there and costs
// a query more.
TEST(NeighbourModel, TheSpeedOfTheNeighbourCountsBesideItsSms) {
  std::vector<NeighbourSample> samples;
  for (const double dram : {0.1, 0.3, 0.6, 0.9}) {
    for (const double share : {0.1, 0.3, 0.5}) {
      for (const double knee : {1.0, 1.5, 2.0}) {
        const double moved = dram * share * knee;
        samples.push_back({{dram, dram, 0, 0}, {share, share * knee}, 1 - 0.8 * moved * moved});
      }
    }
  }
  NeighbourModel model;
  model.Fit(samples);
  EXPECT_NEAR(model.Predict({0.8, 0.8, 0, 0}, {0.4, 0.4}).factor, 1 - 0.8 * 0.1024, 0.02);
  EXPECT_NEAR(model.Predict({0.8, 0.8, 0, 0}, {0.4, 0.8}).factor, 1 - 0.8 * 0.4096, 0.02);
}

// cutcp uses 2 % of DRAM, replaces what decode16 would find in L2, and takes 5 % of its speed.
TEST(NeighbourModel, LittleTrafficCostsMoreThanItsShare) {
  std::vector<NeighbourSample> samples;
  for (int repeat = 0; repeat < 3; ++repeat) {
    for (const double share : {0.3, 0.5, 0.7}) {
      for (const double dram : {0.0, 0.01, 0.02, 0.04, 0.1, 0.3, 0.5, 0.9}) {
        const double lost = dram > 0 ? 0.1 + 0.1 * dram : 0;
        samples.push_back({{dram, dram, 0, dram}, On(share), 1 - lost * share});
      }
    }
  }
  NeighbourModel model;
  model.Fit(samples);
  // In proportion to the traffic, the fit would give 0.957.
  EXPECT_NEAR(model.Predict({0.03, 0.03, 0, 0.03}, On(0.6)).factor, 0.938, 0.01);
}

TEST(NeighbourModel, OneThatUsesNothingCostsNothing) {
  NeighbourModel model;
  std::vector<NeighbourSample> samples = Samples();
  for (NeighbourSample& sample : samples) sample.factor *= 0.9;
  model.Fit(samples);
  const UseOfDevice little = {kNoUse / 2, kNoUse / 2, 0, 0};
  EXPECT_EQ(model.Predict(little, On(0.6)).factor, 1);
  EXPECT_EQ(model.Predict(little, On(0.6)).error, 0);
  EXPECT_LT(model.Predict({kNoUse / 2, kNoUse, 0, 0}, On(0.6)).factor, 0.95);
  EXPECT_LT(model.Predict({kNoUse, kNoUse / 2, 0, 0}, On(0.6)).factor, 0.95);
}

TEST(NeighbourModel, FewSamplesTellNothing) {
  NeighbourModel model;
  std::vector<NeighbourSample> samples = Samples();
  samples.resize(kNeighbourSamplesMin - 1);
  model.Fit(samples);
  EXPECT_FALSE(model.known());
  EXPECT_EQ(model.Predict({}, On(0.5)).error, 1);
}

TEST(NeighbourModel, StaysWithinItsRangeAndIgnoresWhatIsNoNumber) {
  NeighbourModel model;
  std::vector<NeighbourSample> samples = Samples();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  samples.push_back({{nan, 0, 0, 0}, On(0.5), 0.5});
  samples.push_back({{}, On(0.5), nan});
  samples.push_back({{}, {nan, 0.5}, 0.5});
  samples.push_back({{}, {0.5, nan}, 0.5});
  model.Fit(samples);
  ASSERT_TRUE(model.known());
  EXPECT_EQ(model.Predict({50, 0, 0, 0}, On(1)).factor, kNeighbourFactorMin);
  EXPECT_LE(model.Predict({0.02, 0, 0, 0}, On(0)).factor, 1);
}

}  // namespace
}  // namespace gpushare::models
