// On a GPU: an LC grid that keeps L1 has its L1 also right after an eviction. An SM changes how it
// divides its memory between L1 and shared memory only when it is empty. With blocks of bfs on it
// before the workers of sgemm have left, the grid runs to its end with what they left of L1.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "src/core/seams/device.h"
#include "tests/cuda/gpu_fixture.h"
#include "tests/cuda/subject.h"

namespace gpushare::cuda {
namespace {

constexpr double kQueryMs = 2;
constexpr double kWorkersMs = 100;
constexpr int64_t kBeforeEvictionNs = 1'000'000;
constexpr int kQueries = 15;
// Without the L1 it needs a query takes 1.5 times as long on an H200.
constexpr double kSlowerMin = 1.2;
// A block task of sgemm, and some noise.
constexpr double kLongerMax = 1.1;
// Room for all its blocks: the carve-out costs an idle device nothing.
constexpr double kAloneMax = 1.02;

class CarveOutGpuTest : public GpuTest {
 protected:
  CarveOutGpuTest() : GpuTest(true) {}

  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    core::LaneSpec lc;
    lc.priority = core::LanePriority::kHigh;
    lc_lane_ = device_->CreateLane(lc).value();
    query_ = MakeSubject(*device_, core::KernelId{1}, "bfs", kQueryMs);
    workers_ = MakeSubject(*device_, core::KernelId{2}, "sgemm", kWorkersMs);
  }

  double RunQuery(bool waits_for_empty_sms) {
    core::LaunchRequest request = WorkersOf(query_, core::LaunchId{++launches_}, lc_lane_, -1);
    request.form = core::Form::kOriginal;
    request.parts[0].reset_counter = false;
    request.waits_for_empty_sms = waits_for_empty_sms;
    const core::TimeNs begin_ns = device_->NowNs();
    EXPECT_TRUE(device_->Launch(request).ok());
    while (NextCompletion().launch != request.parts[0].launch) {
      if (HasFailure()) break;
    }
    return static_cast<double>(device_->NowNs() - begin_ns);
  }

  // Medians, ns.
  double Alone(bool waits_for_empty_sms) {
    std::vector<double> times;
    for (int i = 0; i < kQueries && !HasFailure(); ++i) {
      times.push_back(RunQuery(waits_for_empty_sms));
    }
    return Median(times);
  }
  double AfterEviction(bool waits_for_empty_sms) {
    std::vector<double> times;
    for (int i = 0; i < kQueries && !HasFailure(); ++i) {
      const core::LaunchId launch{++launches_};
      EXPECT_TRUE(device_->Launch(WorkersOf(workers_, launch, lane_, 1)).ok());
      const core::TimeNs evict_ns = device_->NowNs() + kBeforeEvictionNs;
      while (device_->NowNs() < evict_ns) {
      }
      EXPECT_TRUE(device_->Evict(lane_, launch.value, 0).ok());
      times.push_back(RunQuery(waits_for_empty_sms));
    }
    return Median(times);
  }
  static double Median(std::vector<double>& times) {
    if (times.empty()) return 0;
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }

  Subject query_;
  Subject workers_;
  core::LaneIndex lc_lane_ = core::kNoLane;
  uint64_t launches_ = 0;
};

TEST_F(CarveOutGpuTest, AGridThatWaitsForEmptySmsHasItsL1AfterAnEviction) {
  const double alone = Alone(false);
  const double at_once = AfterEviction(false);
  const double waits_alone = Alone(true);
  const double waits = AfterEviction(true);
  std::printf(
      "bfs: alone %.0f us, after an eviction %.0f; with a carve-out of its own %.0f, %.0f\n",
      alone / 1e3, at_once / 1e3, waits_alone / 1e3, waits / 1e3);
  EXPECT_LT(waits_alone, kAloneMax * alone);
  if (at_once < kSlowerMin * alone) GTEST_SKIP() << "this GPU's L1 does not matter to bfs";
  EXPECT_LT(waits, kLongerMax * alone);
}

}  // namespace
}  // namespace gpushare::cuda
