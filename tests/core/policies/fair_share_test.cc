// Which BE app is next: start tags, the place that is left to an app, the bound on waiting.

#include "src/core/policies/parts/fair_share.h"

#include <gtest/gtest.h>

#include <vector>

#include "src/core/base/tuning.h"
#include "tests/core/policies/snapshot_builder.h"

namespace gpushare::core::testing {
namespace {

class FairShareTest : public ::testing::Test {
 protected:
  FairShareTest() { builder.snapshot.now_ns = 60 * kBeWaitNsMax; }
  HeadView& AddHead(int32_t app, int64_t duration_ns) {
    HeadView& head = builder.AddBeHead(app, kernel, duration_ns);
    head.ready_ns = builder.snapshot.now_ns;
    return head;
  }
  std::vector<int32_t> AppsInOrder() {
    BeOrder order;
    FairShare(builder.Get()).Order(order);
    std::vector<int32_t> apps;
    for (const HeadView* head : order) apps.push_back(head->app);
    return apps;
  }
  // A running task's app may have the place that `head` asks for.
  bool Leaves(const HeadView& head, int32_t app) {
    return FairShare(builder.Get()).LeavesTo(head, app);
  }
  SnapshotBuilder builder;
  int32_t kernel = builder.AddKernel(40 * kUs);
};

TEST_F(FairShareTest, HeadsTakeTurnsByWeightAndDuration) {
  const int32_t one = builder.AddBeApp(0, 1);
  const int32_t three = builder.AddBeApp(0, 3);
  for (int i = 0; i < 2; ++i) AddHead(one, 3 * kMs);
  for (int i = 0; i < 4; ++i) AddHead(three, 3 * kMs);
  EXPECT_EQ(AppsInOrder(), (std::vector<int32_t>{one, three, three, three, one, three}));
}

// Of the app's weight its quota lets a third count.
TEST_F(FairShareTest, AQuotaLowersTheWeightThatCounts) {
  const int32_t bound = builder.AddBeApp(0, 3);
  const int32_t three = builder.AddBeApp(0, 3);
  builder.be_apps[static_cast<size_t>(bound)].fair_weight = 1;
  for (int i = 0; i < 2; ++i) AddHead(bound, 3 * kMs);
  for (int i = 0; i < 4; ++i) AddHead(three, 3 * kMs);
  EXPECT_EQ(AppsInOrder(), (std::vector<int32_t>{bound, three, three, three, bound, three}));
}

TEST_F(FairShareTest, TheAppThatGotLeastOverItsWeightIsFirst) {
  const int32_t rich = builder.AddBeApp(5 * kMs);
  const int32_t poor = builder.AddBeApp(4 * kMs);
  AddHead(rich, kMs);
  AddHead(poor, 500 * kUs);
  EXPECT_EQ(AppsInOrder(), (std::vector<int32_t>{poor, rich}));
}

TEST_F(FairShareTest, AWeightNearZeroStillHasATag) {
  const int32_t none = builder.AddBeApp(0, 1e-300);
  const int32_t other = builder.AddBeApp(0, 1);
  AddHead(none, kMs);
  AddHead(none, kMs);
  AddHead(other, kMs);
  EXPECT_EQ(AppsInOrder(), (std::vector<int32_t>{none, other, none}));
}

TEST_F(FairShareTest, AHeadThatWaitedForTheBoundGoesFirstAndLeavesNoPlace) {
  const int32_t rich = builder.AddBeApp(900 * kMs);
  const int32_t poor = builder.AddBeApp(0);
  AddHead(poor, kMs);
  HeadView& head = AddHead(rich, kMs);
  head.ready_ns -= kBeWaitNsMax;
  EXPECT_EQ(AppsInOrder(), (std::vector<int32_t>{poor, rich}));
  EXPECT_TRUE(Leaves(head, poor));
  --head.ready_ns;
  EXPECT_EQ(AppsInOrder(), (std::vector<int32_t>{rich, poor}));
  EXPECT_FALSE(Leaves(head, poor));
}

// With many queues each head waits long, while the app has its share.
TEST_F(FairShareTest, CopiesAndKernelsOfAnAppHaveTurnsOfTheirOwn) {
  const int32_t both = builder.AddBeApp(90 * kMs);
  const int32_t kernels = builder.AddBeApp(91 * kMs);
  const int32_t copies = builder.AddBeApp();
  const auto out = static_cast<size_t>(CopyDirection::kDeviceToHost);
  builder.be_apps[static_cast<size_t>(both)].attained_ns[out] = 3 * kMs;
  builder.be_apps[static_cast<size_t>(copies)].attained_ns[out] = 2 * kMs;
  AddHead(kernels, kMs);
  AddHead(both, kMs);
  for (const int32_t app : {both, copies}) {
    builder.AddBeCopy(app, CopyDirection::kDeviceToHost, 1 << 20, kMs).ready_ns =
        builder.snapshot.now_ns;
  }
  // Each resource's first is level with the other's, whatever was had of each.
  EXPECT_EQ(AppsInOrder(), (std::vector<int32_t>{both, copies, kernels, both}));
  EXPECT_TRUE(Leaves(builder.head(0), both));
  EXPECT_FALSE(Leaves(builder.head(1), kernels));
  EXPECT_TRUE(Leaves(builder.head(2), copies));
}

TEST_F(FairShareTest, AnAppThatIsServedIsNotOverdueHoweverLongAHeadWaits) {
  const int32_t rich = builder.AddBeApp(900 * kMs);
  const int32_t poor = builder.AddBeApp(0);
  AddHead(rich, kMs).ready_ns -= 2 * kBeWaitNsMax;
  AddHead(poor, kMs);
  EXPECT_EQ(AppsInOrder(), (std::vector<int32_t>{rich, poor}));
  builder.be_apps[0].served_ns[kSmTime] = builder.snapshot.now_ns - kMs;
  EXPECT_EQ(AppsInOrder(), (std::vector<int32_t>{poor, rich}));
}

TEST_F(FairShareTest, OneAppsHeadsStayInOrderOfSubmission) {
  const int32_t only = builder.AddBeApp(0);
  const HeadView& first = AddHead(only, 9 * kMs);
  HeadView& second = AddHead(only, kMs);
  second.ready_ns -= 2 * kBeWaitNsMax;
  BeOrder order;
  const FairShare shares(builder.Get());
  shares.Order(order);
  EXPECT_EQ(order[0]->task, first.task);
  EXPECT_FALSE(shares.GoesBefore(second, first));
  EXPECT_FALSE(shares.LeavesTo(second, only));
}

// Errors of predictions must not empty the window between apps that are alike.
TEST_F(FairShareTest, APlaceIsLeftOnlyToAnAppThatIsBehindByMoreThanTheSlack) {
  const int32_t running = builder.AddBeApp(10 * kMs);
  const int32_t other = builder.AddBeApp(10 * kMs + kMs / 8);
  const HeadView& head = AddHead(other, kMs);
  EXPECT_FALSE(Leaves(head, running));
  builder.be_apps[1].attained_ns[kSmTime] += 1;
  EXPECT_TRUE(Leaves(head, running));
  EXPECT_FALSE(Leaves(head, -1)) << "nothing follows the running task";
}

}  // namespace
}  // namespace gpushare::core::testing
