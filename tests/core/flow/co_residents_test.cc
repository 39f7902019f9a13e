// The co-residents that the flow reports to the cost model for an LC launch: BE work on other SMs,
// BE work that it waited for, or none by name when there were several. Simulated device, virtual
// time.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/flow/scheduler.h"
#include "src/core/policies/registry.h"
#include "tests/core/forwarding_model.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::core {
namespace {

constexpr int64_t kQueryNs = kMs;
constexpr int64_t kBlockNs = 100 * kUs;

struct Seen {
  KernelId kernel;
  int64_t measured_ns = 0;
  bool has_co_residents = false;
  LinkUse copies = 0;
  CoResident beside;
  KernelId neighbour;
};

// The online model, what it observed of graphs, and how many evictions.
class WatchingModel final : public ForwardingModel {
 public:
  WatchingModel(std::unique_ptr<CostModel> model, std::vector<Seen>& seen, int& evictions)
      : ForwardingModel(std::move(model)), seen_(seen), evictions_(evictions) {}
  void Observe(const Observation& observation) override {
    evictions_ += observation.evicted ? 1 : 0;
    if (observation.features.kind == TaskKind::kGraph) {
      Seen seen;
      seen.kernel = observation.features.kernel->id;
      seen.measured_ns = observation.measured_ns;
      seen.copies = observation.copies;
      seen.has_co_residents = !observation.beside.empty();
      if (seen.has_co_residents) seen.beside = observation.beside.front();
      if (seen.beside.kernel != nullptr) seen.neighbour = seen.beside.kernel->id;
      seen_.push_back(seen);
    }
    ForwardingModel::Observe(observation);
  }

 private:
  std::vector<Seen>& seen_;
  int& evictions_;
};

class CoResidentsTest : public SimulatedSchedulerTest {
 protected:
  using SimulatedSchedulerTest::Wrap;
  std::unique_ptr<CostModel> Wrap(std::unique_ptr<CostModel> model) override {
    return std::make_unique<WatchingModel>(std::move(model), seen_, evictions_);
  }

  void Start(const char* policy) {
    ASSERT_NO_FATAL_FAILURE(StartScheduler(*MakePolicy(policy)));
    KernelDesc query = Graph("query", kQueryNs);
    // Half the device is enough for it.
    query.simulation.speed = {{64, 0.99}, {sms_, 1}};
    query_ = *scheduler_->RegisterKernel(query);
  }

  KernelId RegisterBe(const char* name) {
    return *scheduler_->RegisterKernel(EvictableKernel(name, kBlockNs));
  }

  QueueId AddService() {
    AppOptions options;
    options.name = "service";
    options.app_class = AppClass::kLatencyCritical;
    options.promise.p99_bound = bound_;
    options.promise.p99_alone_ns = 2 * kMs;
    options.solo_ns = kQueryNs;
    return AddQueue(options);
  }

  // Long enough to be there whatever comes.
  void SubmitBe(KernelId kernel, const std::string& app) {
    TaskSpec spec;
    spec.queue = AddQueue(AppClass::kBestEffort, app);
    spec.kernel = kernel;
    spec.work.block_tasks = int64_t{1000} * 8 * sms_;
    ASSERT_TRUE(scheduler_->SubmitBe(spec).ok());
  }
  void SubmitCopy(CopyDirection direction = CopyDirection::kHostToDevice, bool pinned = true) {
    TaskSpec spec;
    spec.queue = AddQueue(AppClass::kBestEffort, "copies");
    spec.work.kind = TaskKind::kMemcpy;
    spec.work.copy.direction = direction;
    spec.work.copy.pinned = pinned;
    spec.work.copy.bytes = int64_t{1} << 30;
    ASSERT_TRUE(scheduler_->SubmitBe(spec).ok());
  }
  void Pass(int64_t ns) {
    EXPECT_FALSE(scheduler_->Drain(scheduler_->NowNs() + ns).ok());  // BE work is still there
  }

  // One query amid what runs, and what the model heard of it.
  Seen Query() {
    if (!lc_queue_) lc_queue_ = AddService();
    Pass(5 * kMs);
    const size_t before = seen_.size();
    TaskSpec spec;
    spec.queue = lc_queue_;
    spec.work.kind = TaskKind::kGraph;
    spec.kernel = query_;
    const auto ticket = scheduler_->SubmitLc(spec);
    EXPECT_TRUE(ticket.ok()) << ticket.status();
    EXPECT_TRUE(scheduler_->Wait(*ticket, scheduler_->NowNs() + 100 * kMs).ok());
    EXPECT_EQ(seen_.size(), before + 1);
    return seen_.size() > before ? seen_.back() : Seen();
  }

  std::vector<Seen> seen_;
  int evictions_ = 0;
  KernelId query_;
  QueueId lc_queue_;
  double bound_ = 2;  // of the service, whose p99 alone is 2 ms
};

TEST_F(CoResidentsTest, BeWorkInTheWayIsReportedWithTheWait) {
  Start("adaptive:evict");
  const KernelId be = RegisterBe("be");
  SubmitBe(be, "training");
  const Seen seen = Query();
  EXPECT_TRUE(seen.beside.same_sms);
  EXPECT_EQ(seen.beside.sms, 0);
  EXPECT_EQ(seen.neighbour, be);
  // Up to a block task, which the device's own duration does not have.
  EXPECT_GT(seen.measured_ns, kQueryNs + kBlockNs / 4);
  EXPECT_LT(seen.measured_ns, kQueryNs + kBlockNs + 50 * kUs);
}

// Under priority nothing is evicted: the query shares its SMs, and waits for nothing to leave.
TEST_F(CoResidentsTest, BeWorkThatStaysIsNotBlamedForAWait) {
  Start("priority");
  SubmitBe(RegisterBe("be"), "training");
  const Seen seen = Query();
  EXPECT_TRUE(seen.has_co_residents);
  EXPECT_FALSE(seen.beside.same_sms);
  EXPECT_EQ(seen.beside.sms, 0);
}

TEST_F(CoResidentsTest, BeWorkOnOtherSmsIsReportedWithTheirNumber) {
  Start("adaptive:partition");
  const KernelId be = RegisterBe("be");
  SubmitBe(be, "training");
  Query();  // the split is in force from here on
  const Seen seen = Query();
  EXPECT_FALSE(seen.beside.same_sms);
  EXPECT_GT(seen.beside.sms, 0);
  EXPECT_LT(seen.beside.sms, sms_);
  EXPECT_EQ(seen.neighbour, be);
}

// What it adds says nothing of an eviction of all workers, by which its kernel is judged. A bound
// of 1.03 leaves 60 us, and all workers leave within 104 us.
TEST_F(CoResidentsTest, BeWorkWithFewerWorkersIsNotBlamedAndItsEvictionsAreNotLearned) {
  for (const bool fewer : {false, true}) {
    SCOPED_TRACE(fewer);
    lc_queue_ = QueueId();
    bound_ = fewer ? 1.03 : 1.2;
    ASSERT_NO_FATAL_FAILURE(StartScheduler(*MakePolicy("adaptive")));
    query_ = *scheduler_->RegisterKernel(Graph("query", kQueryNs));
    KernelDesc kernel = EvictableKernel("be", kBlockNs);
    kernel.simulation.saturating_occupancy = 0.25;
    const KernelId be = *scheduler_->RegisterKernel(kernel);
    lc_queue_ = AddService();
    SubmitBe(be, "training");
    Query();
    evictions_ = 0;
    const Seen seen = Query();
    EXPECT_TRUE(seen.has_co_residents) << "the work is there";
    EXPECT_EQ(seen.neighbour, be);
    EXPECT_EQ(seen.beside.same_sms, !fewer);
    EXPECT_EQ(evictions_ > 0, !fewer) << "of all workers";
  }
}

TEST_F(CoResidentsTest, OfTwoKernelsNeitherIsBlamed) {
  Start("adaptive:evict");
  SubmitBe(RegisterBe("one"), "first");
  SubmitBe(RegisterBe("two"), "second");
  const Seen seen = Query();
  EXPECT_TRUE(seen.has_co_residents);
  EXPECT_FALSE(seen.beside.same_sms);
  EXPECT_EQ(seen.beside.sms, 0);
}

// A copy has no kernel: a kernel that came after it must not be reported as the only co-resident.
TEST_F(CoResidentsTest, BesideACopyNoKernelIsBlamed) {
  for (const bool copy_first : {true, false}) {
    SCOPED_TRACE(copy_first);
    lc_queue_ = QueueId();
    Start("adaptive:evict");
    const KernelId be = RegisterBe("be");
    if (copy_first) SubmitCopy();
    SubmitBe(be, "training");
    if (!copy_first) SubmitCopy();
    const Seen seen = Query();
    EXPECT_TRUE(seen.has_co_residents);
    EXPECT_FALSE(seen.beside.same_sms);
    EXPECT_EQ(seen.beside.sms, 0);
    EXPECT_EQ(seen.copies, 0);
  }
}

TEST_F(CoResidentsTest, CopiesThatRanAllAlongAreReportedByTheirDirections) {
  Start("adaptive");
  SubmitCopy();
  EXPECT_EQ(Query().copies, kLinkIn);
  SubmitCopy(CopyDirection::kDeviceToHost);
  EXPECT_EQ(Query().copies, kLinkIn | kLinkOut);
}

TEST_F(CoResidentsTest, BesidePageableCopiesNothingIsMeasured) {
  Start("adaptive");
  SubmitCopy(CopyDirection::kDeviceToHost);
  SubmitCopy(CopyDirection::kHostToDevice, /*pinned=*/false);
  EXPECT_EQ(Query().copies, 0);
}

// 1 MB moves in 19 us of the query's millisecond.
TEST_F(CoResidentsTest, ACopyThatCameOrWentIsNotReported) {
  Start("adaptive");
  lc_queue_ = AddService();
  TaskSpec copy;
  copy.queue = AddQueue(AppClass::kBestEffort, "copies");
  copy.work.kind = TaskKind::kMemcpy;
  copy.work.copy.direction = CopyDirection::kHostToDevice;
  copy.work.copy.bytes = int64_t{1} << 20;
  ASSERT_TRUE(scheduler_->SubmitBe(copy).ok());
  TaskSpec query;
  query.queue = lc_queue_;
  query.work.kind = TaskKind::kGraph;
  query.kernel = query_;
  const auto ticket = scheduler_->SubmitLc(query).value();
  EXPECT_TRUE(scheduler_->Wait(ticket, scheduler_->NowNs() + 100 * kMs).ok());
  ASSERT_EQ(seen_.size(), 1U);
  EXPECT_TRUE(seen_[0].has_co_residents);
  EXPECT_EQ(seen_[0].copies, 0);
}

}  // namespace
}  // namespace gpushare::core
