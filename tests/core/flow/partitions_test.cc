// Periodic apps on their partitions, on the simulated device in virtual time: deadlines and bounds
// beside a flood of BE work, the same without partitions, an overrun, and refusals.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/base/random.h"
#include "src/core/flow/scheduler.h"
#include "src/core/policies/registry.h"
#include "src/models/partition/layout_planner.h"
#include "tests/core/plan_with.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::core {
namespace {

// A job is one kernel of block tasks, each on a worker of its own.
struct JobSpec {
  std::string name;
  int64_t period_ns = 0;
  int64_t deadline_ns = 0;
  int64_t block_task_ns = 0;
  int64_t block_tasks = 0;
};

const std::vector<JobSpec> kThree = {
    {"control", 1 * kMs, 500 * kUs, 10 * kUs, 1000},
    {"planning", 5 * kMs, 4 * kMs, 20 * kUs, 5000},
    {"perception", 33 * kMs, 30 * kMs, 25 * kUs, 60'000},
};
const std::vector<JobSpec> kFive = {
    {"control", 1 * kMs, 500 * kUs, 10 * kUs, 1000},
    {"balance", 2 * kMs, 2 * kMs, 10 * kUs, 1500},
    {"planning", 5 * kMs, 4 * kMs, 20 * kUs, 5000},
    {"tracking", 10 * kMs, 8 * kMs, 15 * kUs, 9000},
    {"perception", 33 * kMs, 30 * kMs, 25 * kUs, 60'000},
};

RealTimeOptions Periodic(int64_t period_ns, int64_t deadline_ns = 0) {
  RealTimeOptions options;
  options.period_ns = period_ns;
  options.deadline_ns = deadline_ns;
  return options;
}

// The longest of some runs of a job on the front SMs, with what a held launch waits for the
// scheduler.
class Measured : public SimulatedSchedulerTest {
 public:
  void TestBody() override {}
  // Block tasks a nanosecond of work that has the device to itself.
  double FloodAlone(int64_t block_task_ns) {
    StartScheduler(*MakePolicy("adaptive"));
    TaskSpec spec;
    spec.queue = AddQueue(AppClass::kBestEffort, "flood");
    spec.kernel = *scheduler_->RegisterKernel(EvictableKernel("flood", block_task_ns));
    spec.work.block_tasks = 400 * kMs / block_task_ns * sms_ * 8;
    const TicketId ticket = *scheduler_->SubmitBe(spec);
    EXPECT_TRUE(scheduler_->Wait(ticket, scheduler_->NowNs() + 10'000 * kMs).ok());
    const CompletionRecord record = *scheduler_->Record(ticket);
    return static_cast<double>(record.block_tasks) / static_cast<double>(record.measured_ns);
  }
  std::vector<WorstCase> Of(const JobSpec& job, bool workers) {
    std::vector<WorstCase> out;
    for (const int32_t sms : {8, 16, 24, 40, 64}) out.push_back({sms, At(job, sms, workers)});
    return out;
  }

 private:
  int64_t At(const JobSpec& job, int32_t sms, bool workers) {
    auto policy = std::make_unique<PlanWith>([=](const Snapshot& snapshot, Plan& plan) {
      PlaceIndex place = kWholeDevice;
      for (const SplitView& split : snapshot.splits) {
        if (split.lc_sms == sms) place = split.lc_place;
      }
      plan.routes[0] = {.place = place, .fast_path = false};
      for (const HeadView& head : snapshot.heads) {
        PlannedLaunch launch;
        launch.task = head.task;
        launch.form = workers ? Form::kWorkers : Form::kOriginal;
        launch.place = place;
        launch.lane_class = workers ? LaneClass::kBe : LaneClass::kLc;
        plan.launches.TryAdd(launch);
      }
    });
    StartScheduler(std::move(policy));
    const KernelId kernel = *scheduler_->RegisterKernel(EvictableKernel("job", job.block_task_ns));
    TaskSpec spec;
    spec.queue = AddQueue(AppClass::kLatencyCritical, "job");
    spec.kernel = kernel;
    spec.work.block_tasks = job.block_tasks;
    int64_t longest_ns = 0;
    for (int run = 0; run < 5; ++run) {
      const TicketId ticket = *scheduler_->SubmitLc(spec);
      EXPECT_TRUE(scheduler_->Wait(ticket, scheduler_->NowNs() + 1000 * kMs).ok());
      const CompletionRecord record = *scheduler_->Record(ticket);
      longest_ns = std::max(longest_ns, record.complete_ns - record.submit_ns);
    }
    return longest_ns + 5 * kUs;
  }
};

class PartitionsTest : public SimulatedSchedulerTest {
 protected:
  struct App {
    JobSpec job;
    AppId app;
    QueueId queue;
    KernelId kernel;
    TimeNs next_ns = 0;
    int64_t jobs = 0;
    int64_t overrun_every = 0;  // each such job is four times as long
  };

  // Apps with worst cases that were measured: as workers, with this eviction, or as grids.
  void Open(const std::string& policy, const std::vector<JobSpec>& jobs, int64_t eviction_ns = 0) {
    SchedulerOptions options;
    options.report = [this](const std::string& text) { reports_.push_back(text); };
    ASSERT_NO_FATAL_FAILURE(StartScheduler(*MakePolicy(policy), options));
    Measured measured;
    for (const JobSpec& job : jobs) {
      App& app = apps_.emplace_back();
      app.job = job;
      AppOptions own = {.name = job.name, .app_class = AppClass::kLatencyCritical};
      own.real_time = {.period_ns = job.period_ns,
                       .deadline_ns = job.deadline_ns,
                       .worst_cases = measured.Of(job, eviction_ns > 0),
                       .eviction_ns = eviction_ns};
      app.app = *scheduler_->CreateApp(own);
      app.queue = *scheduler_->CreateQueue(app.app);
      app.kernel = *scheduler_->RegisterKernel(EvictableKernel(job.name, job.block_task_ns));
    }
  }
  void AddFlood(int apps, int64_t block_task_ns) {
    flood_kernel_ = *scheduler_->RegisterKernel(EvictableKernel("flood", block_task_ns));
    flood_block_tasks_ = 20 * kMs / block_task_ns * sms_ * 8;
    for (int i = 0; i < apps; ++i) {
      AppOptions options = {.name = "flood" + std::to_string(i)};
      flood_apps_.push_back(*scheduler_->CreateApp(options));
      flood_queues_.push_back(*scheduler_->CreateQueue(flood_apps_.back()));
    }
  }
  absl::StatusOr<PartitionSummary> PlanPartitions(const PartitionOptions& options = {}) {
    return scheduler_->PlanPartitions(models::partition::LayoutPlanner(), options);
  }

  void SubmitFlood() {
    for (size_t i = 0; i < flood_apps_.size(); ++i) {
      const AppStats stats = *scheduler_->StatsOf(flood_apps_[i]);
      if (stats.submitted - stats.completed > 3) continue;
      TaskSpec spec;
      spec.queue = flood_queues_[i];
      spec.kernel = flood_kernel_;
      spec.work.block_tasks = flood_block_tasks_;
      spec.detached = true;
      ASSERT_TRUE(scheduler_->SubmitBe(spec).ok());
    }
  }
  // All apps release a job at once, then each a period later, or up to a fifth of it more.
  void Run(int64_t ns, bool jitter = false) {
    Random random(7);
    const TimeNs end_ns = scheduler_->NowNs() + ns;
    for (App& app : apps_) app.next_ns = scheduler_->NowNs() + kMs;
    for (;;) {
      App& next = *std::min_element(apps_.begin(), apps_.end(), [](const App& a, const App& b) {
        return a.next_ns < b.next_ns;
      });
      if (next.next_ns >= end_ns) break;
      ASSERT_TRUE(scheduler_->PollUntil(next.next_ns).ok());
      SubmitFlood();
      TaskSpec spec;
      spec.queue = next.queue;
      spec.kernel = next.kernel;
      spec.arrival_ns = next.next_ns;
      spec.detached = true;
      spec.work.block_tasks = next.job.block_tasks;
      ++next.jobs;
      if (next.overrun_every > 0 && next.jobs % next.overrun_every == 0) {
        spec.work.block_tasks *= 4;
      }
      ASSERT_TRUE(scheduler_->SubmitLc(spec).ok());
      next.next_ns += next.job.period_ns;
      if (jitter)
        next.next_ns +=
            static_cast<int64_t>(random.Uniform(0, static_cast<double>(next.job.period_ns) / 5));
    }
    ASSERT_TRUE(scheduler_->PollUntil(end_ns + 200 * kMs).ok());
    ASSERT_TRUE(scheduler_->CheckInvariants().ok()) << scheduler_->CheckInvariants();
  }

  AppGuarantee Of(size_t app) { return *scheduler_->GuaranteeOf(apps_[app].app); }
  // Every app but `guilty`: all jobs ended, by their deadline and their bound. The largest share of
  // a bound that a response took.
  double ExpectKept(size_t guilty = ~size_t{0}) {
    double most = 0;
    for (size_t a = 0; a < apps_.size(); ++a) {
      if (a == guilty) continue;
      const AppGuarantee got = Of(a);
      EXPECT_GE(got.partition, 0) << apps_[a].job.name;
      EXPECT_EQ(got.jobs, apps_[a].jobs) << apps_[a].job.name;
      EXPECT_EQ(got.deadlines_missed, 0) << apps_[a].job.name;
      EXPECT_EQ(got.overruns, 0) << apps_[a].job.name;
      EXPECT_LE(got.response_bound_ns, apps_[a].job.deadline_ns);
      EXPECT_LE(got.response_ns_max, got.response_bound_ns) << apps_[a].job.name;
      most = std::max(most, static_cast<double>(got.response_ns_max) /
                                static_cast<double>(got.response_bound_ns));
    }
    return most;
  }
  // Of the flood, over its rate alone.
  double FloodRate(int64_t ns, int64_t block_task_ns) {
    double block_tasks = 0;
    for (const AppId app : flood_apps_) {
      block_tasks += static_cast<double>(scheduler_->StatsOf(app)->block_tasks);
    }
    return block_tasks / static_cast<double>(ns) / Measured().FloodAlone(block_task_ns);
  }

  std::vector<App> apps_;
  std::vector<std::string> reports_;
  KernelId flood_kernel_;
  int64_t flood_block_tasks_ = 0;
  std::vector<AppId> flood_apps_;
  std::vector<QueueId> flood_queues_;
};

TEST_F(PartitionsTest, ThreeAppsKeepTheirDeadlinesBesideAFlood) {
  ASSERT_NO_FATAL_FAILURE(Open("partitioned", kThree));
  AddFlood(2, 2 * kMs);
  const PartitionSummary plan = *PlanPartitions();
  EXPECT_EQ(plan.partitions, 3);
  EXPECT_EQ(plan.partition_sms + plan.rest_sms, sms_);
  ASSERT_NO_FATAL_FAILURE(Run(2000 * kMs));
  const double tightness = ExpectKept();
  EXPECT_LT(tightness, 1);
  const double rate = FloodRate(2200 * kMs, 2 * kMs);
  RecordProperty("tightness", std::to_string(tightness));
  RecordProperty("be_rate", std::to_string(rate));
  RecordProperty("rest_sms", plan.rest_sms);
  RecordProperty("partitions", plan.partitions);
  // BE work has its SMs all the time.
  EXPECT_GT(rate, 0.8 * plan.rest_sms / sms_);
  EXPECT_TRUE(reports_.empty());
}

TEST_F(PartitionsTest, FiveAppsKeepTheirDeadlinesBesideAFloodThatUsesTheirSlack) {
  ASSERT_NO_FATAL_FAILURE(Open("partitioned", kFive));
  AddFlood(3, 20 * kUs);
  const PartitionSummary plan = *PlanPartitions({.slack_eviction_ns = 60 * kUs});
  EXPECT_EQ(plan.partitions, 5);
  ASSERT_NO_FATAL_FAILURE(Run(1000 * kMs, /*jitter=*/true));
  const double tightness = ExpectKept();
  EXPECT_LT(tightness, 1);
  const double rate = FloodRate(1200 * kMs, 20 * kUs);
  RecordProperty("tightness", std::to_string(tightness));
  RecordProperty("be_rate", std::to_string(rate));
  RecordProperty("rest_sms", plan.rest_sms);
  RecordProperty("partitions", plan.partitions);
  EXPECT_GT(rate, 1.05 * plan.rest_sms / sms_) << "nothing ran on idle partitions";
}

TEST_F(PartitionsTest, SharedPartitionsKeepDeadlinesByTheirOrder) {
  ASSERT_NO_FATAL_FAILURE(Open("partitioned", kFive));
  AddFlood(2, 2 * kMs);
  const PartitionSummary plan = *PlanPartitions({.shares = true});
  EXPECT_LT(plan.partitions, 5);
  ASSERT_NO_FATAL_FAILURE(Run(1000 * kMs, /*jitter=*/true));
  const double tightness = ExpectKept();
  EXPECT_LT(tightness, 1);
  RecordProperty("tightness", std::to_string(tightness));
  RecordProperty("be_rate", std::to_string(FloodRate(1200 * kMs, 2 * kMs)));
  RecordProperty("rest_sms", plan.rest_sms);
  RecordProperty("partitions", plan.partitions);
}

TEST_F(PartitionsTest, WithoutPartitionsTheSameAppsMiss) {
  ASSERT_NO_FATAL_FAILURE(Open("priority", kThree));
  AddFlood(2, 2 * kMs);
  ASSERT_NO_FATAL_FAILURE(Run(200 * kMs));
  // The guarantee of the deadline as a target.
  EXPECT_GT(Of(0).late_share.value_or(0), 0.1);
}

TEST_F(PartitionsTest, AnOverrunCostsItsOwnAppOnly) {
  ASSERT_NO_FATAL_FAILURE(Open("partitioned", kThree));
  AddFlood(2, 2 * kMs);
  apps_[1].overrun_every = 10;
  ASSERT_TRUE(PlanPartitions().ok());
  ASSERT_NO_FATAL_FAILURE(Run(500 * kMs));
  ExpectKept(/*guilty=*/1);
  EXPECT_EQ(Of(1).overruns, apps_[1].jobs / 10);
  EXPECT_GT(Of(1).deadlines_missed, 0);
  ASSERT_EQ(reports_.size(), 1u);
  EXPECT_NE(reports_[0].find("'planning'"), std::string::npos);
}

TEST_F(PartitionsTest, AnOverrunInASharedPartitionIsEvicted) {
  ASSERT_NO_FATAL_FAILURE(Open("partitioned", kFive, /*eviction_ns=*/60 * kUs));
  AddFlood(1, 2 * kMs);
  apps_[2].overrun_every = 10;
  const PartitionSummary plan = *PlanPartitions({.shares = true});
  EXPECT_LT(plan.partitions, 5);
  ASSERT_NO_FATAL_FAILURE(Run(500 * kMs));
  ExpectKept(/*guilty=*/2);
  EXPECT_EQ(Of(2).jobs, apps_[2].jobs) << "what was evicted ends later";
  EXPECT_GT(Of(2).overruns, 0);
}

TEST_F(PartitionsTest, APlanIsRefusedWithItsReasonAndTheOldOneStays) {
  ASSERT_NO_FATAL_FAILURE(Open("partitioned", kThree));
  ASSERT_TRUE(PlanPartitions().ok());
  const int32_t sms = Of(0).partition_sms;
  AppOptions heavy = {.name = "heavy", .app_class = AppClass::kLatencyCritical};
  heavy.real_time = Periodic(kMs);
  heavy.real_time.worst_cases = {{8, 2 * kMs}};
  const AppId app = *scheduler_->CreateApp(heavy);
  const auto refused = PlanPartitions();
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status())) << refused.status();
  EXPECT_NE(refused.status().message().find("'heavy'"), std::string::npos) << refused.status();
  EXPECT_EQ(Of(0).partition_sms, sms);
  EXPECT_EQ(scheduler_->GuaranteeOf(app)->partition, -1);
  ASSERT_TRUE(scheduler_->ReleaseApp(app).ok());
  EXPECT_TRUE(PlanPartitions().ok());
}

TEST_F(PartitionsTest, AnotherPolicyKnowsNothingOfThePlan) {
  ASSERT_NO_FATAL_FAILURE(Open("partitioned", kThree));
  AddFlood(1, 20 * kUs);
  ASSERT_TRUE(PlanPartitions().ok());
  const auto place_of_be = [&] {
    TaskSpec spec;
    spec.queue = flood_queues_[0];
    spec.kernel = flood_kernel_;
    spec.work.block_tasks = 1000;
    const TicketId ticket = *scheduler_->SubmitBe(spec);
    EXPECT_TRUE(scheduler_->Wait(ticket, scheduler_->NowNs() + 100 * kMs).ok());
    return scheduler_->Record(ticket)->place;
  };
  EXPECT_NE(place_of_be(), kWholeDevice);
  ASSERT_TRUE(scheduler_->SetPolicy(*MakePolicy("adaptive")).ok());
  EXPECT_EQ(place_of_be(), kWholeDevice);
  EXPECT_GT(*scheduler_->RegionRoomNs(), 0);
  EXPECT_EQ(Of(0).partition, -1) << "the bound of a plan that nobody carries out";
  EXPECT_EQ(Of(0).response_bound_ns, 0);
  ASSERT_TRUE(scheduler_->SetPolicy(*MakePolicy("partitioned")).ok());
  EXPECT_NE(place_of_be(), kWholeDevice);
  EXPECT_EQ(*scheduler_->RegionRoomNs(), 0) << "a region is on all SMs";
  EXPECT_GE(Of(0).partition, 0);
  EXPECT_GT(Of(0).response_bound_ns, 0);
}

TEST_F(PartitionsTest, AnLcRegionNeedsAPartitionOfItsOwn) {
  ASSERT_NO_FATAL_FAILURE(Open("partitioned", kThree));
  const QueueId service = AddQueue(AppClass::kLatencyCritical, "service");
  // OK, or why a region of the queue may not begin.
  const auto begin = [&](QueueId queue) {
    scheduler_->Tick();
    const auto region = scheduler_->RegionBegin(queue, kMs, nullptr);
    if (!region.ok()) return region.status();
    EXPECT_TRUE(scheduler_->RegionEnd(*region).ok());
    EXPECT_TRUE(scheduler_->Wait(*region, kNever).ok());
    return absl::OkStatus();
  };
  EXPECT_TRUE(begin(service).ok());
  ASSERT_TRUE(PlanPartitions().ok());
  EXPECT_TRUE(begin(apps_[0].queue).ok()) << begin(apps_[0].queue);
  EXPECT_TRUE(absl::IsUnavailable(begin(service))) << begin(service);
  ASSERT_TRUE(PlanPartitions({.slack_eviction_ns = 60 * kUs}).ok());
  EXPECT_TRUE(absl::IsUnavailable(begin(apps_[0].queue))) << "it would evict no BE work";
  ASSERT_TRUE(scheduler_->SetPolicy(*MakePolicy("adaptive")).ok());
  EXPECT_TRUE(begin(service).ok());
}

TEST_F(PartitionsTest, AJobFromBeforeAPlanCountsForNone) {
  ASSERT_NO_FATAL_FAILURE(Open("partitioned", kThree));
  ASSERT_TRUE(PlanPartitions().ok());
  TaskSpec spec;
  spec.queue = apps_[2].queue;
  spec.kernel = apps_[2].kernel;
  spec.work.block_tasks = apps_[2].job.block_tasks * 4;
  const TicketId ticket = *scheduler_->SubmitLc(spec);
  ASSERT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + kMs).ok());
  ASSERT_TRUE(PlanPartitions().ok());
  ASSERT_TRUE(scheduler_->Wait(ticket, scheduler_->NowNs() + 1000 * kMs).ok());
  EXPECT_EQ(Of(2).jobs, 0);
  EXPECT_EQ(Of(2).overruns, 0);
  EXPECT_EQ(Of(2).deadlines_missed, 0);
}

TEST_F(PartitionsTest, WorkThatNoPartitionHoldsBreaksTheBoundsOrWaits) {
  ASSERT_NO_FATAL_FAILURE(Open("partitioned", kThree));
  const QueueId service = AddQueue(AppClass::kLatencyCritical, "service");
  ASSERT_TRUE(PlanPartitions().ok());
  KernelDesc kernel = EvictableKernel("everywhere", 10 * kUs);
  kernel.confinable = false;
  TaskSpec spec;
  spec.kernel = *scheduler_->RegisterKernel(kernel);
  spec.work.block_tasks = 100;
  spec.queue = apps_[0].queue;
  const TicketId job = *scheduler_->SubmitLc(spec);
  ASSERT_TRUE(scheduler_->Wait(job, scheduler_->NowNs() + 100 * kMs).ok());
  EXPECT_EQ(Of(0).jobs, 1);
  EXPECT_EQ(Of(0).overruns, 1);
  ASSERT_EQ(reports_.size(), 1u);
  EXPECT_NE(reports_[0].find("confinable"), std::string::npos) << reports_[0];
  spec.queue = service;
  const TicketId query = *scheduler_->SubmitLc(spec);
  ASSERT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + 10 * kMs).ok());
  EXPECT_FALSE(*scheduler_->IsComplete(query));
  ASSERT_TRUE(scheduler_->SetPolicy(*MakePolicy("adaptive")).ok());
  EXPECT_TRUE(scheduler_->Wait(query, scheduler_->NowNs() + 100 * kMs).ok());
}

TEST_F(PartitionsTest, WithoutPeriodicAppsNoPlanIsInForce) {
  ASSERT_NO_FATAL_FAILURE(Open("partitioned", kThree));
  ASSERT_TRUE(PlanPartitions().ok());
  for (const App& app : apps_) {
    ASSERT_TRUE(scheduler_->ReleaseQueue(app.queue).ok());
    ASSERT_TRUE(scheduler_->ReleaseApp(app.app).ok());
  }
  EXPECT_EQ(PlanPartitions()->partitions, 0);
}

TEST_F(PartitionsTest, RefusesWhatNoPlanCanKeep) {
  ASSERT_NO_FATAL_FAILURE(Open("adaptive", kThree));
  EXPECT_TRUE(absl::IsFailedPrecondition(PlanPartitions().status()));
  ASSERT_TRUE(scheduler_->SetPolicy(*MakePolicy("partitioned")).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(PlanPartitions({.reserved_sms = 130}).status()));
  for (const int32_t reserved :
       {-1, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()}) {
    const absl::Status status = PlanPartitions({.reserved_sms = reserved}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_NE(status.message().find(std::to_string(reserved)), std::string::npos) << status;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(PlanPartitions({.slack_eviction_ns = -1}).status()));
  AppOptions app = {.name = "bad", .app_class = AppClass::kLatencyCritical};
  const auto create = [&](const RealTimeOptions& real_time) {
    app.real_time = real_time;
    return scheduler_->CreateApp(app).status();
  };
  EXPECT_TRUE(absl::IsInvalidArgument(create(Periodic(0, 5))));
  EXPECT_TRUE(absl::IsInvalidArgument(create(Periodic(5, 6))));
  EXPECT_TRUE(absl::IsInvalidArgument(create(Periodic(-5))));
  RealTimeOptions factor_alone;
  factor_alone.neighbour_factor = 1.5;
  EXPECT_TRUE(absl::IsInvalidArgument(create(factor_alone)));
  app.promise.target_ns = 3;
  EXPECT_TRUE(absl::IsInvalidArgument(create(Periodic(5))));
  app.promise.target_ns = 0;
  EXPECT_TRUE(create(Periodic(5 * kMs)).ok());
  const absl::Status bare = PlanPartitions().status();
  EXPECT_TRUE(absl::IsInvalidArgument(bare)) << "an app without a worst case: " << bare;
}

}  // namespace
}  // namespace gpushare::core
