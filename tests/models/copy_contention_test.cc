// What copies and kernels keep of their speed beside each other.

#include "src/models/durations/copy_contention.h"

#include <gtest/gtest.h>

#include <limits>

namespace gpushare::models {
namespace {

constexpr ContendedCopy kToDevice = {true, true, 64e6};
constexpr ContendedCopy kToHost = {false, true, 64e6};

TEST(CopyContentionTest, EverythingIsKeptUntilMeasured) {
  const CopyContention model;
  EXPECT_EQ(model.OpposedKept(kToDevice), 1);
  EXPECT_EQ(model.CopyBesideKernelNs(kToDevice, 0.9, 5000), 5000);
  EXPECT_EQ(model.KernelBesideCopyKept(kToDevice, 0.9), 1);
}

// On an H200 a kernel delays a copy of 64 KB and one of 32 MB by about as much.
TEST(CopyContentionTest, AKernelDelaysACopyWhateverItsSize) {
  CopyContention model;
  for (const double dram : {0.0, 0.3, 0.5, 0.9}) {
    for (const double alone_ns : {9e3, 600e3}) {
      model.ObserveCopyBesideKernel(kToDevice, dram, alone_ns, alone_ns + 1000 + 5000 * dram);
    }
  }
  EXPECT_NEAR(model.CopyBesideKernelNs(kToDevice, 0.7, 50e3), 50e3 + 4500, 1);
  EXPECT_NEAR(model.CopyBesideKernelNs(kToDevice, 0, 9e3), 10e3, 1);
  EXPECT_EQ(model.CopyBesideKernelNs(kToHost, 0.7, 9e3), 9e3);  // a direction of its own
}

TEST(CopyContentionTest, KernelsOfOneKindTellNoSlope) {
  CopyContention model;
  model.ObserveCopyBesideKernel(kToDevice, 0.9, 10e3, 15e3);
  model.ObserveCopyBesideKernel(kToDevice, 0.9, 20e3, 25e3);
  EXPECT_NEAR(model.CopyBesideKernelNs(kToDevice, 0.1, 10e3), 15e3, 1);
}

TEST(CopyContentionTest, AKernelLosesWithItsUseOfDram) {
  CopyContention model;
  for (const double dram : {0.1, 0.3, 0.5, 0.9}) {
    model.ObserveKernelBesideCopy(kToDevice, dram, 1 / (1 + 0.1 * dram));
  }
  EXPECT_NEAR(model.KernelBesideCopyKept(kToDevice, 0.7), 1 / 1.07, 1e-9);
  EXPECT_EQ(model.KernelBesideCopyKept(kToDevice, 0), 1);
}

TEST(CopyContentionTest, ACopyTheOtherWayCostsWhatItCostAtTheNearestSizes) {
  CopyContention model;
  model.ObserveOpposed({true, true, 1e6}, 0.9);
  model.ObserveOpposed({true, true, 64e6}, 0.7);
  EXPECT_NEAR(model.OpposedKept({true, true, 1e6}), 0.9, 1e-9);
  EXPECT_NEAR(model.OpposedKept(kToDevice), 0.7, 1e-9);
  EXPECT_GT(model.OpposedKept({true, true, 8e6}), 0.75);
  EXPECT_LT(model.OpposedKept({true, true, 8e6}), 0.85);
  EXPECT_EQ(model.OpposedKept({true, false, 8e6}), 1);
}

// A neighbour that makes something faster is noise, and what is no number is nothing.
TEST(CopyContentionTest, PredictionsStayBetweenNothingAndAll) {
  CopyContention model;
  model.ObserveCopyBesideKernel(kToDevice, 0.5, 1000, 900);
  model.ObserveKernelBesideCopy(kToDevice, 0.5, 1.2);
  EXPECT_EQ(model.CopyBesideKernelNs(kToDevice, 0.5, 1000), 1000);
  EXPECT_EQ(model.KernelBesideCopyKept(kToDevice, 0.5), 1);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double bad : {0.0, -1.0, nan, std::numeric_limits<double>::infinity()}) {
    model.ObserveOpposed(kToHost, bad);
    model.ObserveCopyBesideKernel(kToHost, 0.5, bad, 1000);
    model.ObserveCopyBesideKernel(kToHost, 0.5, 1000, bad);
    model.ObserveKernelBesideCopy(kToHost, 0.5, bad);
  }
  model.ObserveCopyBesideKernel(kToHost, nan, 1000, 2000);
  EXPECT_EQ(model.OpposedKept(kToHost), 1);
  EXPECT_EQ(model.CopyBesideKernelNs(kToHost, 0.5, 1000), 1000);
  EXPECT_EQ(model.KernelBesideCopyKept(kToHost, 0.5), 1);
  EXPECT_EQ(model.KernelBesideCopyKept(kToHost, nan), 1);
}

}  // namespace
}  // namespace gpushare::models
