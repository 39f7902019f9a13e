// Quotas: what a BE app gets of the device, alone on it under smguard, and beside other quotas. On
// the simulated device.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/faults/tenants.h"

namespace gpushare_test {
namespace {

constexpr int64_t kEnd = 400 * kMs;
constexpr double kSms = 132;

class PackedQuota : public testing::TestWithParam<const char*> {};

// A packed quota is a partition: no kernel gets more than its SMs. The built-in profile's device
// has sides of 12, 20, 28, ... SMs for BE.
TEST_P(PackedQuota, OfAnAppIsItsShareOfTheDevice) {
  for (const int32_t quota : {16, 33, 66}) {
    Tenants tenants(GetParam());
    const int train = tenants.AddBe("train", 1, "sincos_27us", 52'800);
    tenants.SetQuota(train, quota, true);
    tenants.RunUntil(kEnd);
    const double rate = tenants.Work(train) / kEnd;
    EXPECT_LE(rate, quota / kSms + 0.01) << quota;
    EXPECT_GE(rate, 0.8 * (quota - 8) / kSms) << quota;
    EXPECT_NE(tenants.LastPlace(train), 0) << quota;
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, PackedQuota, testing::Values("smguard", "smguard:packed"),
                         [](const auto& instance) {
                           return std::string(instance.param) == "smguard" ? "Smguard"
                                                                           : "SmguardPacked";
                         });

// Two packed quotas lie in each other: together they still get no more than the larger one.
TEST(PackedQuotas, OfTwoAppsBothHold) {
  Tenants tenants("smguard");
  const int small = tenants.AddBe("small", 1, "sincos_27us", 52'800);
  const int large = tenants.AddBe("large", 1, "sincos_27us", 52'800);
  tenants.SetQuota(small, 16, true);
  tenants.SetQuota(large, 48, true);
  tenants.RunUntil(2 * kEnd);
  EXPECT_LE(tenants.Work(small) / (2 * kEnd), 16 / kSms + 0.01);
  EXPECT_LE(tenants.Work(large) / (2 * kEnd), 48 / kSms + 0.01);
  EXPECT_LE((tenants.Work(small) + tenants.Work(large)) / (2 * kEnd), 48 / kSms + 0.01);
  EXPECT_GT(tenants.Work(small), 0);
  EXPECT_GT(tenants.Work(large), 0);
}

// A spread quota bounds resident workers. Where each worker has its part of an SM, that is the
// share of the device, to within one worker.
TEST(SpreadQuota, HoldsToWithinOneWorker) {
  for (const int32_t quota : {1, 16, 66}) {
    Tenants tenants("smguard");
    tenants.AddProportionalKernel("proportional");
    const int train = tenants.AddBe("train", 1, "proportional", 8 * 132 * 10);
    tenants.SetQuota(train, quota, false);
    tenants.RunUntil(2 * kEnd);
    const double rate = tenants.Work(train) / (2 * kEnd);
    EXPECT_LE(rate, (quota + 1.0 / 8) / kSms) << quota;
    EXPECT_GE(rate, 0.9 * (quota - 1.0 / 8) / kSms) << quota;
  }
}

// What the quotas of the others leave an app is its floor. Four apps have a lane each; of five, one
// waits in turn, and each gets four fifths of its quota.
class Floors : public testing::TestWithParam<const char*> {};

TEST_P(Floors, AreHeldHoweverManyAppsThereAre) {
  for (const int others : {1, 3, 4}) {
    SCOPED_TRACE(others);
    Tenants tenants(GetParam());
    tenants.AddProportionalKernel("proportional");
    const int floor = tenants.AddBe("floor", 1, "proportional", 8 * 132 * 20);
    tenants.SetQuota(floor, 24, false);
    for (int i = 0; i < others; ++i) {
      const std::string name = "other" + std::to_string(i);
      tenants.SetQuota(tenants.AddBe(name.c_str(), 1, "proportional", 8 * 132 * 20), 6, false);
    }
    tenants.RunUntil(2 * kEnd);  // until kernels are measured by themselves
    const std::vector<double> before = tenants.AllWork();
    tenants.RunUntil(6 * kEnd);
    const double lane = others < 4 ? 0.95 : 0.75;
    for (int app = 0; app <= others; ++app) {
      const double rate = (tenants.Work(app) - before[static_cast<size_t>(app)]) / (4 * kEnd);
      EXPECT_GE(rate, lane * (app == floor ? 24 : 6) / kSms) << app;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, Floors, testing::Values("smguard", "adaptive"),
                         [](const auto& instance) { return std::string(instance.param); });

}  // namespace
}  // namespace gpushare_test
