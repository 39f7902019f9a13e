// Weights: BE apps with a backlog share the device by weight, with one queue an app, under every
// policy that shares by weight. On the simulated device.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/faults/tenants.h"

namespace gpushare_test {
namespace {

// Of each share.
constexpr double kTolerance = 0.05;

class Weights : public testing::TestWithParam<const char*> {};

TEST_P(Weights, HoldWithOneQueueAnApp) {
  Tenants tenants(GetParam());
  tenants.AddBe("one", 1, "sincos_27us", 52'800);
  const int nine = tenants.AddBe("nine", 9, "sincos_27us", 52'800);
  tenants.RunUntil(600 * kMs);
  EXPECT_NEAR(tenants.Share(nine), 0.9, kTolerance * 0.9);
}

TEST_P(Weights, HoldBetweenKernelsOfDifferentDuration) {
  Tenants tenants(GetParam());
  tenants.AddBe("one", 1, "sincos_27us", 52'800);
  const int two = tenants.AddBe("two", 2, "ffma", 52'800);
  const int seven = tenants.AddBe("seven", 7, "streaming_59us", 52'800);
  tenants.RunUntil(800 * kMs);
  EXPECT_NEAR(tenants.Share(two), 0.2, kTolerance * 0.2);
  EXPECT_NEAR(tenants.Share(seven), 0.7, kTolerance * 0.7);
}

// The share is of time, not of tasks: one app's tasks are a hundred times as long.
TEST_P(Weights, HoldBetweenLongAndShortTasks) {
  Tenants tenants(GetParam());
  tenants.AddBe("long", 1, "sincos_27us", 264'000);
  const int quick = tenants.AddBe("short", 9, "sincos_27us", 5'280);
  tenants.RunUntil(1'000 * kMs);
  EXPECT_NEAR(tenants.Share(quick), 0.9, kTolerance * 0.9);
}

TEST_P(Weights, HoldBesideAnLcApp) {
  Tenants tenants(GetParam());
  tenants.AddBe("one", 1, "sincos_27us", 52'800);
  const int nine = tenants.AddBe("nine", 9, "sincos_27us", 52'800);
  tenants.AddService({.p99_alone_ns = 1'880 * kUs, .p99_bound = 1.05});
  tenants.RunUntil(800 * kMs);
  EXPECT_NEAR(tenants.Share(nine), 0.9, kTolerance * 0.9);
}

constexpr int64_t kBytes = 16 << 20;

// Copies take no time of the SMs, so they change nothing of how those are shared.
TEST_P(Weights, HoldBesideAnAppThatCopies) {
  for (const bool with_service : {false, true}) {
    Tenants tenants(GetParam());
    const int one = tenants.AddBe("one", 1, "ffma", 52'800);
    const int two = tenants.AddBe("two", 2, "sincos_27us", 52'800);
    tenants.AddCopies("copies", 1, GPUSHARE_COPY_DEVICE_TO_HOST, kBytes);
    if (with_service) tenants.AddService({.p99_alone_ns = 1'880 * kUs, .p99_bound = 1.1});
    tenants.RunUntil(800 * kMs);
    EXPECT_NEAR(tenants.ShareAmong(two, {one, two}), 2 / 3.0, kTolerance * 2 / 3) << with_service;
  }
}

// Each direction of the link is shared by itself.
TEST_P(Weights, HoldBetweenAppsThatCopy) {
  for (const bool with_service : {false, true}) {
    Tenants tenants(GetParam());
    const int kernels = tenants.AddBe("kernels", 3, "sincos_27us", 52'800);
    const int more = tenants.AddBe("more", 1, "ffma", 52'800);
    const int one = tenants.AddCopies("one", 1, GPUSHARE_COPY_DEVICE_TO_HOST, kBytes);
    const int two = tenants.AddCopies("two", 2, GPUSHARE_COPY_DEVICE_TO_HOST, kBytes / 2);
    const int in = tenants.AddCopies("in", 1, GPUSHARE_COPY_HOST_TO_DEVICE, kBytes);
    if (with_service) tenants.AddService({.p99_alone_ns = 1'880 * kUs, .p99_bound = 1.1});
    tenants.RunUntil(800 * kMs);
    EXPECT_NEAR(tenants.ShareAmong(two, {one, two}), 2 / 3.0, kTolerance * 2 / 3) << with_service;
    EXPECT_NEAR(tenants.ShareAmong(kernels, {kernels, more}), 0.75, kTolerance * 0.75);
    if (!with_service) {
      EXPECT_GE(tenants.Work(one) + tenants.Work(two), 0.85 * 800e6);
      EXPECT_GE(tenants.Work(in), 0.85 * 800e6);
    }
  }
}

// Beside queries opaque work is held most of the time, so both apps lag behind the kernels.
TEST(HeldWeights, OfTwoAppsThatAreKeptOutTheHeavierStaysFirst) {
  Tenants tenants("adaptive");
  tenants.AddBe("kernels", 1, "sincos_27us", 52'800);
  const int one = tenants.AddOpaque("one", 1, 2 * kMs);
  const int two = tenants.AddOpaque("two", 2, 2 * kMs);
  tenants.AddService({.p99_alone_ns = 1'880 * kUs, .p99_bound = 1.2});
  tenants.RunUntil(8'000 * kMs);
  EXPECT_NEAR(tenants.ShareAmong(two, {one, two}), 2 / 3.0, 0.1);
}

// Time in which an app asked for nothing is no credit.
TEST_P(Weights, GiveALatecomerItsShareAndNoMore) {
  Tenants tenants(GetParam());
  tenants.AddBe("first", 1, "sincos_27us", 52'800);
  const int late = tenants.AddBe("late", 1, "sincos_27us", 52'800, 500 * kMs);
  tenants.RunUntil(500 * kMs);
  const std::vector<double> before = tenants.AllWork();
  tenants.RunUntil(600 * kMs);
  EXPECT_NEAR(tenants.Share(late, before), 0.5, kTolerance * 0.5);
}

// By weight the light app would wait for hours. It runs every ten seconds (kBeWaitMaxNs).
TEST_P(Weights, NeverKeepAnAppWaitingLongerThanTheBound) {
  Tenants tenants(GetParam());
  const int light = tenants.AddBe("light", 0.001, "sincos_27us", 528'000);
  const int heavy = tenants.AddBe("heavy", 1'000, "sincos_27us", 528'000);
  tenants.RunUntil(25'000 * kMs);
  EXPECT_GE(tenants.Completed(light), 2);
  EXPECT_LE(tenants.Completed(light), 5);
  EXPECT_GE(tenants.Share(heavy), 0.99);
}

INSTANTIATE_TEST_SUITE_P(Policies, Weights, testing::Values("adaptive", "smguard", "baymax"),
                         [](const auto& instance) { return std::string(instance.param); });

}  // namespace
}  // namespace gpushare_test
