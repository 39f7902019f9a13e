// A BE graph whose long nodes have twins, through the whole flow: queries wait for a block task
// instead of a node, the graph loses nothing, and a plan knows it. On the simulated device.

#include <algorithm>
#include <string>

#include "gtest/gtest.h"
#include "src/core/flow/scheduler.h"
#include "src/core/policies/registry.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::core {
namespace {

constexpr int64_t kNodeNs = 900 * kUs;
constexpr int64_t kShortNs = 80 * kUs;
constexpr int64_t kBlockTaskNs = 20 * kUs;
constexpr int32_t kPairs = 12;
constexpr int64_t kQueryNs = 500 * kUs;

class EvictableNodesTest : public SimulatedSchedulerTest {
 protected:
  // A step of long and short nodes in turn. `block_task_ns` 0: the long ones have no twin.
  void Open(const std::string& policy, int64_t block_task_ns, double p99_bound = 0) {
    ASSERT_NO_FATAL_FAILURE(StartScheduler(*MakePolicy(policy)));
    KernelDesc step = Graph("step", kNodeNs);
    step.graph()->measure_nodes = true;
    step.simulation.nodes.clear();
    for (int i = 0; i < kPairs; ++i) {
      GraphNode& node = step.simulation.nodes.emplace_back();
      node.duration_ns = kNodeNs;
      node.blocks = sms_;
      node.block_task_ns = block_task_ns;
      GraphNode& brief = step.simulation.nodes.emplace_back();
      brief.duration_ns = kShortNs;
      brief.blocks = sms_;
    }
    step_ = *scheduler_->RegisterKernel(step);
    query_ = *scheduler_->RegisterKernel(Graph("query", kQueryNs));
    AppOptions service = {.name = "service", .app_class = AppClass::kLatencyCritical};
    service.promise.p99_bound = p99_bound;
    service_ = AddQueue(service);
    train_ = AddQueue(AppClass::kBestEffort, "train");
  }
  CompletionRecord Finish(TicketId ticket) {
    EXPECT_TRUE(scheduler_->Wait(ticket, scheduler_->NowNs() + 10'000 * kMs).ok());
    const CompletionRecord record = *scheduler_->Record(ticket);
    EXPECT_TRUE(scheduler_->ReleaseTicket(ticket).ok());
    EXPECT_EQ(record.verdict, Verdict::kOk);
    return record;
  }
  // Queries with a gap between them that ends in a node which begins with the gap; the slowest
  // one's latency.
  int64_t SlowestQuery(int queries) {
    int64_t slowest_ns = 0;
    for (int i = 0; i < queries; ++i) {
      EXPECT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + 337 * kUs).ok());
      const CompletionRecord query = Finish(SubmitGraph(service_, query_, true));
      slowest_ns = std::max(slowest_ns, query.complete_ns - query.submit_ns);
    }
    return slowest_ns;
  }
  const GraphCut& Cut() const { return scheduler_->FindKernel(step_)->graph()->cut; }

  KernelId step_, query_;
  QueueId service_, train_;
};

TEST_F(EvictableNodesTest, AQueryWaitsForABlockTaskOfALongNode) {
  Open("adaptive:evict", kBlockTaskNs);
  EXPECT_EQ(Cut().evictable_segments, kPairs);
  const TicketId step = SubmitGraph(train_, step_, false);
  EXPECT_LT(SlowestQuery(8), kQueryNs + kShortNs + kBlockTaskNs + 60 * kUs);
  const CompletionRecord record = Finish(step);
  EXPECT_EQ(record.evictions, 8);
  EXPECT_EQ(record.block_tasks, Cut().segments) << "none lost and none twice";
  EXPECT_LT(record.measured_ns, kPairs * (kNodeNs + kShortNs) + 9 * 100 * kUs)
      << "no node began again";
}

TEST_F(EvictableNodesTest, WithoutTwinsAQueryWaitsForTheNode) {
  Open("adaptive:evict", 0);
  EXPECT_EQ(Cut().evictable_segments, 0);
  const TicketId step = SubmitGraph(train_, step_, false);
  EXPECT_GT(SlowestQuery(8), kQueryNs + kNodeNs / 2);
  EXPECT_EQ(Finish(step).block_tasks, Cut().segments);
}

// What plans read: the cut, and what the model makes of it.
TEST_F(EvictableNodesTest, APlanCountsOnABlockTask) {
  Open("adaptive:evict", kBlockTaskNs);
  EXPECT_EQ(Cut().blocking.longest_ns(), kShortNs + kBlockTaskNs);
  const auto model = models::MakeOnlineModel(DeviceProfile());
  const Prediction eviction = model->durations().PredictEviction(*scheduler_->FindKernel(step_));
  EXPECT_LT(eviction.duration_ns + 2 * eviction.error_ns, kShortNs + kBlockTaskNs + 20 * kUs);
}

}  // namespace
}  // namespace gpushare::core
