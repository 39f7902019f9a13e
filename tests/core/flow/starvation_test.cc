// No BE task waits for ever where the policy could let it run. Each case is a way in which a task
// once waited too long. The whole flow on the simulated device, virtual time, one thread.

#include "gtest/gtest.h"
#include "src/core/flow/scheduler.h"
#include "src/core/policies/registry.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::core {
namespace {

constexpr int64_t kBlockNs = 25 * kUs;
constexpr int64_t kWorkersPerSm = 8;

class StarvationTest : public SimulatedSchedulerTest {
 protected:
  void Start(const char* policy) {
    ASSERT_NO_FATAL_FAILURE(StartScheduler(*MakePolicy(policy)));
    short_ = Register("short", kBlockNs, true);
    long_ = Register("long", 20 * kMs, false);
  }

  KernelId Register(const char* name, int64_t block_ns, bool evictable) {
    KernelDesc kernel = EvictableKernel(name, block_ns);
    kernel.evictable = evictable;
    kernel.resources.workers_per_sm_max = kWorkersPerSm;
    return *scheduler_->RegisterKernel(kernel);
  }

  QueueId AddQueue(AppClass app_class, const char* name, AppId* app, double p99_bound = 0) {
    AppOptions options;
    options.name = name;
    options.app_class = app_class;
    options.promise.p99_bound = p99_bound;
    options.promise.p99_alone_ns = 2 * kMs;
    options.solo_ns = kMs;
    *app = *scheduler_->CreateApp(options);
    return *scheduler_->CreateQueue(*app);
  }
  QueueId AddBe(const char* name, AppId* app) { return AddQueue(AppClass::kBestEffort, name, app); }

  // About `ms` milliseconds alone on the device.
  TaskSpec Kernels(QueueId queue, int64_t ms) const {
    TaskSpec spec;
    spec.queue = queue;
    spec.kernel = short_;
    spec.work.block_tasks = ms * kMs / kBlockNs * kWorkersPerSm * sms_;
    return spec;
  }
  TaskSpec Opaque(QueueId queue) const {
    TaskSpec spec;
    spec.queue = queue;
    spec.work.kind = TaskKind::kOpaque;
    spec.work.host_function = [](void*, void*) {};
    spec.work.declared_ns = 100 * kUs;
    return spec;
  }

  // Task upon task, so that something of the app always waits.
  void Flood(const TaskSpec& spec, int tasks) {
    TaskSpec detached = spec;
    detached.detached = true;
    detached.callback = [](void*, const CompletionRecord&) {};
    for (int i = 0; i < tasks; ++i) ASSERT_TRUE(scheduler_->SubmitBe(detached).ok());
  }

  bool CompletesWithin(TicketId ticket, int64_t ns) {
    return scheduler_->Wait(ticket, scheduler_->NowNs() + ns).ok();
  }

  KernelId short_, long_;
};

// Time that an app had while the others were not there is no debt.
TEST_F(StarvationTest, AnAppThatRanAloneDoesNotWaitUntilNewcomersHaveHadAsMuch) {
  Start("adaptive");
  AppId old_app, new_app;
  const QueueId old_queue = AddBe("old", &old_app);
  Flood(Kernels(old_queue, 5), 400);
  ASSERT_TRUE(scheduler_->Drain(scheduler_->NowNs() + 5000 * kMs).ok());
  // More queues than a place takes launches at once.
  const QueueId first = AddBe("new", &new_app);
  for (const QueueId queue :
       {first, *scheduler_->CreateQueue(new_app), *scheduler_->CreateQueue(new_app)}) {
    Flood(Kernels(queue, 5), 150);
  }
  const TicketId ticket = *scheduler_->SubmitBe(Kernels(old_queue, 5));
  EXPECT_TRUE(CompletesWithin(ticket, 300 * kMs));
}

// Nor is time in which an app asked for nothing a credit.
TEST_F(StarvationTest, AnAppThatRestedDoesNotTakeTheDeviceForAsLong) {
  Start("adaptive");
  AppId busy_app, resting_app;
  const QueueId busy = AddBe("busy", &busy_app);
  const QueueId resting = AddBe("resting", &resting_app);
  Flood(Kernels(resting, 1), 1);
  Flood(Kernels(busy, 5), 400);
  ASSERT_TRUE(scheduler_->Drain(scheduler_->NowNs() + 5000 * kMs).ok());
  for (const QueueId queue :
       {resting, *scheduler_->CreateQueue(resting_app), *scheduler_->CreateQueue(resting_app)}) {
    Flood(Kernels(queue, 5), 150);
  }
  const TicketId ticket = *scheduler_->SubmitBe(Kernels(busy, 5));
  EXPECT_TRUE(CompletesWithin(ticket, 300 * kMs));
}

// Nobody can bound opaque work: it runs in a place within its quota. Where no place is within the
// quota, a submit is refused, and what was accepted before takes its turn.
TEST_F(StarvationTest, WorkWithoutWorkersRunsUnderAQuotaThatAPlaceIsWithin) {
  for (const char* policy : {"smguard", "smguard:packed", "adaptive"}) {
    Start(policy);
    AppId app, other_app;
    const QueueId queue = AddBe("opaque", &app);
    const TicketId earlier = *scheduler_->SubmitBe(Opaque(queue));
    ASSERT_TRUE(scheduler_->ReserveCapSm({app, 1, false}).ok());
    EXPECT_TRUE(CompletesWithin(earlier, 50 * kMs)) << policy;
    const absl::Status refused = scheduler_->SubmitBe(Opaque(queue)).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << policy;
    EXPECT_EQ(refused.message(),
              "Opaque work needs 4 SMs, the least that it can be held to, and the quota of BE app "
              "'opaque' is 1.");
    ASSERT_TRUE(scheduler_->ReserveCapSm({app, 16, false}).ok());
    // Also while others always hold CapSMs.
    const QueueId other = AddBe("other", &other_app);
    Flood(Kernels(other, 5), 100);
    Flood(Kernels(*scheduler_->CreateQueue(other_app), 5), 100);
    EXPECT_TRUE(CompletesWithin(*scheduler_->SubmitBe(Opaque(queue)), 100 * kMs)) << policy;
    EXPECT_TRUE(scheduler_->CheckInvariants().ok());
  }
}

TEST_F(StarvationTest, WorkWithoutWorkersRunsBesideAReservationUnlessItLeavesNoPlace) {
  Start("smguard");
  AppId lc_app, be_app;
  const QueueId lc = AddQueue(AppClass::kLatencyCritical, "server", &lc_app);
  const QueueId be = AddBe("opaque", &be_app);
  const QueryId query = *scheduler_->BeginQuery(lc, scheduler_->NowNs());
  TaskSpec spec = Kernels(lc, 1);
  spec.query = query;
  ASSERT_TRUE(scheduler_->SubmitLc(spec).ok());
  const TicketId ticket = *scheduler_->SubmitBe(Opaque(be));
  ASSERT_TRUE(scheduler_->ReserveCapSm({lc_app, sms_ - 1, false}).ok());
  EXPECT_FALSE(CompletesWithin(ticket, 50 * kMs)) << "no place has one SM";
  EXPECT_EQ(scheduler_->SubmitBe(Opaque(be)).status().message(),
            "Opaque work needs 4 SMs, the least that it can be held to, and the reservations leave "
            "BE app 'opaque' 1.");
  ASSERT_TRUE(scheduler_->ReserveCapSm({lc_app, 32, false}).ok());
  EXPECT_TRUE(CompletesWithin(ticket, 50 * kMs)) << "beside the active query";
  ASSERT_TRUE(scheduler_->EndQuery(query).ok());
}

// The least quota is one CapSM, which is a worker of every kernel.
TEST_F(StarvationTest, AQuotaOfOneCapSmStillMakesProgress) {
  Start("smguard");
  AppId app;
  const QueueId queue = AddBe("small", &app);
  ASSERT_TRUE(scheduler_->ReserveCapSm({app, 1, false}).ok());
  TaskSpec spec = Kernels(queue, 1);
  spec.work.block_tasks = 100;
  EXPECT_TRUE(CompletesWithin(*scheduler_->SubmitBe(spec), 100 * kMs));
}

// A reservation or a quota that changes while work is held wakes the planner.
TEST_F(StarvationTest, HeldWorkGoesOnWhenTheReservationIsRemoved) {
  Start("smguard");
  AppId lc_app, be_app;
  AddQueue(AppClass::kLatencyCritical, "server", &lc_app);
  ASSERT_TRUE(scheduler_->ReserveCapSm({lc_app, sms_, false}).ok());
  const QueueId queue = AddBe("train", &be_app);
  const TicketId ticket = *scheduler_->SubmitBe(Kernels(queue, 1));
  EXPECT_FALSE(CompletesWithin(ticket, 50 * kMs)) << "the whole device is reserved";
  ASSERT_TRUE(scheduler_->ReserveCapSm({lc_app, 0, false}).ok());
  EXPECT_TRUE(CompletesWithin(ticket, 50 * kMs));
}

// The load of an LC app that has gone quiet fades without an event; what it kept out comes in.
TEST_F(StarvationTest, WorkThatALoadKeepsOutIsLaunchedOnceTheLoadHasFaded) {
  Start("adaptive");
  AppId lc_app, be_app;
  const QueueId lc = AddQueue(AppClass::kLatencyCritical, "server", &lc_app, 1.1);
  const QueueId be = AddBe("train", &be_app);
  for (int i = 0; i < 300; ++i) {
    const TicketId query = *scheduler_->SubmitLc(Kernels(lc, 2));
    ASSERT_TRUE(CompletesWithin(query, 10 * kMs));
    ASSERT_TRUE(scheduler_->ReleaseTicket(query).ok());
  }
  // Its block tasks are too long to share SMs with the LC app; a few SMs of its own will do.
  TaskSpec spec = Kernels(be, 1);
  spec.kernel = long_;
  spec.work.block_tasks = 64;
  const TicketId ticket = *scheduler_->SubmitBe(spec);
  EXPECT_FALSE(CompletesWithin(ticket, 50 * kMs)) << "the load is too high";
  EXPECT_TRUE(CompletesWithin(ticket, 5000 * kMs));
}

}  // namespace
}  // namespace gpushare::core
