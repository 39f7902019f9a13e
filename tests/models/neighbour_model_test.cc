// Factors beside neighbours that a kernel never met.

#include "src/models/pairs/neighbour_model.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace gpushare::models {
namespace {

// A kernel that only DRAM slows: by 60 % beside a neighbour that fills DRAM from all SMs.
double Truth(const UseOfDevice& use, double share) { return 1 - 0.6 * use.dram * share; }

std::vector<NeighbourSample> Samples() {
  std::vector<NeighbourSample> samples;
  for (const double dram : {0.0, 0.2, 0.5, 0.9}) {
    for (const double issue : {0.1, 0.8}) {
      for (const double share : {0.2, 0.5, 0.7}) {
        const UseOfDevice use = {dram, dram / 2, 1 - issue, issue};
        samples.push_back({use, share, Truth(use, share)});
      }
    }
  }
  return samples;
}

TEST(NeighbourModel, PredictsANeighbourThatItNeverMet) {
  NeighbourModel model;
  model.Fit(Samples());
  ASSERT_TRUE(model.known());
  const UseOfDevice unknown = {0.7, 0.35, 0.5, 0.5};
  const FactorPrediction prediction = model.Predict(unknown, 0.6);
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
        samples.push_back({use, share, 1 - (0.3 + 0.5 * written) * dram * share});
      }
    }
  }
  NeighbourModel model;
  model.Fit(samples);
  EXPECT_NEAR(model.Predict({0.8, 0.8, 0, 0}, 0.6).factor, 1 - 0.3 * 0.8 * 0.6, 0.02);
  EXPECT_NEAR(model.Predict({0.8, 0.8, 0, 0.8}, 0.6).factor, 1 - 0.8 * 0.8 * 0.6, 0.02);
}

TEST(NeighbourModel, FewSamplesTellNothing) {
  NeighbourModel model;
  std::vector<NeighbourSample> samples = Samples();
  samples.resize(kNeighbourSamplesMin - 1);
  model.Fit(samples);
  EXPECT_FALSE(model.known());
  EXPECT_EQ(model.Predict({}, 0.5).error, 1);
}

TEST(NeighbourModel, StaysWithinItsRangeAndIgnoresWhatIsNoNumber) {
  NeighbourModel model;
  std::vector<NeighbourSample> samples = Samples();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  samples.push_back({{nan, 0, 0, 0}, 0.5, 0.5});
  samples.push_back({{}, 0.5, nan});
  samples.push_back({{}, nan, 0.5});
  model.Fit(samples);
  ASSERT_TRUE(model.known());
  EXPECT_EQ(model.Predict({50, 0, 0, 0}, 1).factor, kNeighbourFactorMin);
  EXPECT_LE(model.Predict({0, 0, 0, 0}, 0).factor, 1);
}

}  // namespace
}  // namespace gpushare::models
