// Which LC launches may wait until their SMs are empty: those of long queries that evict.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/base/tuning.h"
#include "src/core/flow/scheduler.h"
#include "tests/core/plan_with.h"
#include "tests/core/recording_device.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::core {
namespace {

class EmptySmsTest : public SimulatedSchedulerTest {
 protected:
  std::unique_ptr<Device> Wrap(std::unique_ptr<Device> device) override {
    return std::make_unique<RecordingDevice>(std::move(device), requests_);
  }

  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(
        StartScheduler(std::make_unique<PlanWith>([this](const Snapshot& snapshot, Plan& plan) {
          for (LcRoute& route : plan.routes) {
            route.fast_path = fast_path_;
            route.evict_overlapping = evicts_;
          }
          for (const HeadView& head : snapshot.heads) {
            PlannedLaunch& launch = plan.launches.Add();
            launch.task = head.task;
            launch.form = Form::kGraph;
            launch.lane_class = LaneClass::kLc;
          }
        })));
  }

  // Whether the last query of a new app may wait. The ones before it teach how long they are.
  bool MayWait(int64_t query_ns) {
    const std::string name = "query" + std::to_string(++queries_);
    const KernelId graph = *scheduler_->RegisterKernel(Graph(name, query_ns));
    const QueueId queue = AddQueue(AppClass::kLatencyCritical, name);
    const int64_t fast = scheduler_->Stats().fast_path_launches;
    for (int i = 0; i < kQueries; ++i) {
      EXPECT_TRUE(scheduler_->Wait(SubmitGraph(queue, graph, true), kNever).ok());
    }
    EXPECT_EQ(scheduler_->Stats().fast_path_launches - fast, fast_path_ ? kQueries - 1 : 0);
    return requests_.back().may_wait_for_empty_sms;
  }

  static constexpr int kQueries = 6;

  std::vector<LaunchRequest> requests_;
  bool fast_path_ = false;
  bool evicts_ = false;
  int queries_ = 0;
};

TEST_F(EmptySmsTest, OnlyLongQueriesThatEvictMayWait) {
  for (const bool fast_path : {false, true}) {
    for (const bool evicts : {false, true}) {
      SCOPED_TRACE(testing::Message() << "fast path " << fast_path << ", evicts " << evicts);
      fast_path_ = fast_path;
      evicts_ = evicts;
      EXPECT_EQ(MayWait(2 * kEmptySmsQueryNs), evicts);
      EXPECT_FALSE(MayWait(kEmptySmsQueryNs / 2));
    }
  }
}

}  // namespace
}  // namespace gpushare::core
