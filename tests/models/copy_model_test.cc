// Durations of copies: what the table of sizes takes for drift, and what it does not.

#include "src/models/online/copy_model.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gpushare::models {
namespace {

constexpr int kRounds = 8;

core::TaskFeatures Copy(double bytes) {
  core::TaskFeatures features;
  features.kind = core::TaskKind::kMemcpy;
  features.bytes = static_cast<int64_t>(bytes);
  features.pinned = false;
  features.direction = core::CopyDirection::kHostToDevice;
  return features;
}

// 10 GB/s and 10 us.
double Truth(double bytes) { return 1e4 + bytes / 10; }

// 64 KB to 16 MB, each size in turn.
CopyModel Learned(const core::DeviceProfile& device) {
  CopyModel model;
  for (int round = 0; round < kRounds; ++round) {
    for (double bytes = 65536; bytes <= 16 << 20; bytes *= 2) {
      model.Observe(device, Copy(bytes), Truth(bytes));
    }
  }
  return model;
}

double ErrorAt(const CopyModel& model, const core::DeviceProfile& device, double bytes) {
  const core::Prediction prediction = model.Predict(device, Copy(bytes));
  return std::abs(static_cast<double>(prediction.duration_ns) / Truth(bytes) - 1);
}

// A host that does something else for a while makes few copies late, and no other.
TEST(CopyModelTest, TwoLateCopiesOfEightShiftNoOtherSize) {
  const core::DeviceProfile device;
  CopyModel model = Learned(device);
  for (int i = 0; i < 16; ++i) {
    const double late = i == 5 || i == 6 ? 20 : 1;
    model.Observe(device, Copy(4 << 20), late * Truth(4 << 20));
  }
  EXPECT_LT(ErrorAt(model, device, 65536), 0.02);
  EXPECT_LT(ErrorAt(model, device, 16 << 20), 0.02);
}

TEST(CopyModelTest, ANewSizeIsNoDrift) {
  const core::DeviceProfile device;
  CopyModel model = Learned(device);
  // Beyond the host's caches a source moves at ever lower rates, at sizes that were never seen.
  double slower = 1;
  for (double bytes = 32 << 20; bytes <= 1e9; bytes *= 1.42) {
    slower *= 1.4;
    model.Observe(device, Copy(bytes), slower * Truth(bytes));
  }
  EXPECT_LT(ErrorAt(model, device, 65536), 0.02);
  EXPECT_LT(ErrorAt(model, device, 1 << 20), 0.02);
}

// A profile keeps the table, so that the first copy of a run is predicted as the last one was.
TEST(CopyModelTest, WhatWasSavedPredictsTheSame) {
  const core::DeviceProfile device;
  const CopyModel model = Learned(device);
  CopyModel again;
  again.Restore(model.Save());
  for (double bytes = 40000; bytes <= 32 << 20; bytes *= 1.7) {
    const core::Prediction saved = again.Predict(device, Copy(bytes));
    const core::Prediction known = model.Predict(device, Copy(bytes));
    EXPECT_NEAR(static_cast<double>(saved.duration_ns), static_cast<double>(known.duration_ns), 1);
    EXPECT_EQ(saved.error_ns, known.error_ns);
    EXPECT_TRUE(saved.trained);
  }
  EXPECT_LT(ErrorAt(again, device, 100000), 0.03);
}

TEST(CopyModelTest, ADriftOfKnownSizesShiftsThemAll) {
  const core::DeviceProfile device;
  CopyModel model = Learned(device);
  for (int i = 0; i < 20; ++i) model.Observe(device, Copy(4 << 20), 3 * Truth(4 << 20));
  EXPECT_NEAR(static_cast<double>(model.Predict(device, Copy(65536)).duration_ns), 3 * Truth(65536),
              0.3 * Truth(65536));
}

}  // namespace
}  // namespace gpushare::models
