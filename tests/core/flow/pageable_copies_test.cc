// Copies of pageable memory on a device whose launch returns when the copy has ended: none may keep
// the scheduler's thread for long, whatever the policy.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/base/tuning.h"
#include "src/core/flow/scheduler.h"
#include "src/core/policies/registry.h"
#include "tests/core/forwarding_device.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::core {
namespace {

constexpr int64_t kBytes = 10 * kPageablePieceBytesMax + 1;

class BlockingCopies final : public ForwardingDevice {
 public:
  BlockingCopies(std::unique_ptr<Device> inner, std::vector<CopyRequest>& copies)
      : ForwardingDevice(std::move(inner)),
        capabilities_(ForwardingDevice::capabilities()),
        copies_(copies) {
    capabilities_.pageable_copies_block = true;
  }
  const DeviceCapabilities& capabilities() const override { return capabilities_; }
  absl::Status Launch(const LaunchRequest& request) override {
    if (request.form == Form::kMemcpy) copies_.push_back(request.parts[0].work.copy);
    return ForwardingDevice::Launch(request);
  }

 private:
  DeviceCapabilities capabilities_;
  std::vector<CopyRequest>& copies_;
};

class PageableCopiesTest : public SimulatedSchedulerTest,
                           public testing::WithParamInterface<const char*> {
 protected:
  std::unique_ptr<Device> Wrap(std::unique_ptr<Device> device) override {
    return std::make_unique<BlockingCopies>(std::move(device), copies_);
  }
  using SimulatedSchedulerTest::Wrap;

  void SetUp() override { StartScheduler(*MakePolicy(GetParam())); }

  void RunCopy(AppClass app_class, bool pinned) {
    TaskSpec spec;
    spec.queue = AddQueue(app_class, "app");
    spec.work.kind = TaskKind::kMemcpy;
    spec.work.copy.bytes = kBytes;
    spec.work.copy.direction = CopyDirection::kDeviceToHost;
    spec.work.copy.pinned = pinned;
    const auto ticket = app_class == AppClass::kLatencyCritical ? scheduler_->SubmitLc(spec)
                                                                : scheduler_->SubmitBe(spec);
    ASSERT_TRUE(ticket.ok()) << ticket.status();
    ASSERT_TRUE(scheduler_->Wait(*ticket, scheduler_->NowNs() + 1000 * kMs).ok());
    EXPECT_EQ(scheduler_->Record(*ticket)->verdict, Verdict::kOk);
    int64_t next = 0;
    for (const CopyRequest& copy : copies_) {
      EXPECT_EQ(copy.offset, next);
      next += copy.bytes;
    }
    EXPECT_EQ(next, kBytes);
  }
  int64_t Longest() const {
    int64_t longest = 0;
    for (const CopyRequest& copy : copies_) longest = std::max(longest, copy.bytes);
    return longest;
  }

  std::vector<CopyRequest> copies_;
};

TEST_P(PageableCopiesTest, ABeCopyOfPageableMemoryRunsInShortPieces) {
  ASSERT_NO_FATAL_FAILURE(RunCopy(AppClass::kBestEffort, false));
  EXPECT_LE(Longest(), kPageablePieceBytesMax);
}

TEST_P(PageableCopiesTest, AnLcCopyStaysWhole) {
  ASSERT_NO_FATAL_FAILURE(RunCopy(AppClass::kLatencyCritical, false));
  EXPECT_EQ(Longest(), kBytes);
}

TEST_P(PageableCopiesTest, ABeCopyOfPinnedMemoryIsThePolicysToCut) {
  ASSERT_NO_FATAL_FAILURE(RunCopy(AppClass::kBestEffort, true));
  EXPECT_GT(Longest(), kPageablePieceBytesMax);
}

INSTANTIATE_TEST_SUITE_P(EachPolicy, PageableCopiesTest,
                         testing::Values("adaptive", "bare", "fifo", "priority", "kernelet",
                                         "baymax", "smguard", "tacker"));

}  // namespace
}  // namespace gpushare::core
