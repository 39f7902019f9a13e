// On a GPU: an LC grid that keeps L1 has its L1 also right after an eviction. An SM changes its
// split between L1 and shared memory only when it is empty. With blocks of bfs on it before the
// workers of sgemm have left, the grid runs to its end with what their split leaves of L1.

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
// A block task of sgemm and some noise. Without the L1 it needs a query takes 1.5 times as long.
constexpr double kLongerMax = 1.2;

class OwnSplitTest : public GpuTest {
 protected:
  OwnSplitTest() : GpuTest(true) {}

  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    core::LaneSpec lc;
    lc.priority = core::LanePriority::kHigh;
    const auto lane = device_->CreateLane(lc);
    ASSERT_TRUE(lane.ok()) << lane.status();
    lc_lane_ = *lane;
    query_ = MakeSubject(*device_, core::KernelId{1}, "bfs", kQueryMs);
    workers_ = MakeSubject(*device_, core::KernelId{2}, "sgemm", kWorkersMs);
  }

  core::TimeNs RunQuery(bool may_wait_for_empty_sms) {
    core::LaunchRequest request = WorkersOf(query_, core::LaunchId{++launches_}, lc_lane_, -1);
    request.form = core::Form::kOriginal;
    request.parts[0].reset_counter = false;
    request.may_wait_for_empty_sms = may_wait_for_empty_sms;
    const core::TimeNs begin_ns = device_->NowNs();
    EXPECT_TRUE(device_->Launch(request).ok());
    while (NextCompletion().launch != request.parts[0].launch) {
      if (HasFailure()) break;
    }
    return device_->NowNs() - begin_ns;
  }

  // The median of queries that begin with an eviction of the workers.
  core::TimeNs QueryAfterEviction(bool may_wait_for_empty_sms) {
    std::vector<core::TimeNs> times_ns;
    for (int i = 0; i < kQueries && !HasFailure(); ++i) {
      const core::LaunchId launch{++launches_};
      EXPECT_TRUE(device_->Launch(WorkersOf(workers_, launch, lane_, 1)).ok());
      const core::TimeNs evict_ns = device_->NowNs() + kBeforeEvictionNs;
      while (device_->NowNs() < evict_ns) {
      }
      EXPECT_TRUE(device_->Evict(lane_, launch.value, 0).ok());
      times_ns.push_back(RunQuery(may_wait_for_empty_sms));
    }
    return Median(times_ns);
  }

  static core::TimeNs Median(std::vector<core::TimeNs>& times_ns) {
    if (times_ns.empty()) return 0;
    std::sort(times_ns.begin(), times_ns.end());
    return times_ns[times_ns.size() / 2];
  }

  Subject query_;
  Subject workers_;
  core::LaneIndex lc_lane_ = core::kNoLane;
  uint64_t launches_ = 0;
};

TEST_F(OwnSplitTest, AGridThatKeepsL1HasItRightAfterAnEviction) {
  std::vector<core::TimeNs> alone_ns;
  for (int i = 0; i < kQueries && !HasFailure(); ++i) alone_ns.push_back(RunQuery(true));
  const core::TimeNs alone = Median(alone_ns);
  const core::TimeNs after = QueryAfterEviction(true);
  const core::TimeNs at_once = QueryAfterEviction(false);
  std::printf("bfs alone %.0f us; after an eviction %.0f us in its own split, %.0f us at once\n",
              static_cast<double>(alone) / 1e3, static_cast<double>(after) / 1e3,
              static_cast<double>(at_once) / 1e3);
  EXPECT_LT(static_cast<double>(after), kLongerMax * static_cast<double>(alone));
}

}  // namespace
}  // namespace gpushare::cuda
