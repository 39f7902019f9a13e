// Which pairs share a launch, and what happens to the others: a query is launched alone at once, BE
// work after a bounded wait. Order inside a queue holds, and a partner's fault stays its own.
// Simulated device, virtual time.

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "src/core/flow/scheduler.h"
#include "tests/core/forwarding_device.h"
#include "tests/core/plan_with.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::core {
namespace {

constexpr int64_t kBlockTaskNs = 20 * kUs;

// The simulated device, which refuses what a test wants refused.
class PickyDevice final : public ForwardingDevice {
 public:
  using Refusal = std::function<absl::Status(const LaunchRequest&)>;
  PickyDevice(std::unique_ptr<Device> inner, const Refusal& refusal)
      : ForwardingDevice(std::move(inner)), refusal_(refusal) {}

  absl::Status Launch(const LaunchRequest& request) override {
    if (refusal_) {
      if (absl::Status status = refusal_(request); !status.ok()) return status;
    }
    return inner().Launch(request);
  }

 private:
  const Refusal& refusal_;
};

// Heads of the two queues of a pair go together while both are there and alone while one is; other
// heads go alone.
struct Pairing {
  QueueId first;
  QueueId second;
  bool keeps_singles = false;  // a head whose partner is not there waits
  bool on_split = false;       // on the BE side of a split, not on the whole device
};

class PairingPolicy final : public Policy {
 public:
  explicit PairingPolicy(const Pairing& pairing) : pairing_(pairing) {}
  absl::string_view name() const override { return "pairing"; }
  void MakePlan(const Snapshot& snapshot, Plan& plan) override {
    for (LcRoute& route : plan.routes) route.fast_path = false;
    const HeadView* first = nullptr;
    const HeadView* second = nullptr;
    for (const HeadView& head : snapshot.heads) {
      if (head.queue == pairing_.first) {
        first = &head;
      } else if (head.queue == pairing_.second) {
        second = &head;
      } else {
        plan.launches.TryAdd(Alone(head));
      }
    }
    if (first != nullptr && second != nullptr) {
      PlannedLaunch launch = Alone(*first);
      if (pairing_.on_split) launch.place = snapshot.splits[0].be_place;
      launch.form = Form::kFused;
      launch.fused_with = second->task;
      plan.launches.TryAdd(launch);
      return;
    }
    for (const HeadView* head : {first, second}) {
      if (head != nullptr && !pairing_.keeps_singles) plan.launches.TryAdd(Alone(*head));
    }
  }

 private:
  static PlannedLaunch Alone(const HeadView& head) {
    PlannedLaunch launch;
    launch.task = head.task;
    launch.lane_class = LaneClass::kLc;
    if (head.app_class == AppClass::kLatencyCritical) return launch;
    launch.lane_class = LaneClass::kBe;
    launch.form = head.evictable ? Form::kWorkers : Form::kOriginal;
    return launch;
  }

  const Pairing& pairing_;
};

class FusedPairsTest : public SimulatedSchedulerTest {
 protected:
  using SimulatedSchedulerTest::Wrap;
  std::unique_ptr<Device> Wrap(std::unique_ptr<Device> device) override {
    return std::make_unique<PickyDevice>(std::move(device), refusal_);
  }

  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StartScheduler(std::make_unique<PairingPolicy>(pairing_)));
    tensor_ = Register("tensor", true);
    cuda_ = Register("cuda", true);
    rigid_ = Register("rigid", false);
    slow_ = Register("slow", true, 2 * kMs);
    Fuse("pair", tensor_, cuda_);
    Fuse("rigid_pair", tensor_, rigid_);
  }

  KernelId Register(const char* name, bool evictable, int64_t block_task_ns = kBlockTaskNs) {
    KernelDesc kernel = EvictableKernel(name, block_task_ns);
    kernel.evictable = evictable;
    return *scheduler_->RegisterKernel(kernel);
  }
  void Fuse(const char* name, KernelId tensor, KernelId cuda) {
    FusedKernelDesc fused;
    fused.name = name;
    fused.tensor_part = tensor;
    fused.cuda_part = cuda;
    fused.opportune_load_ratio = 0.6;
    fused.opportune_duration_ratio = 1.1;
    ASSERT_TRUE(scheduler_->RegisterFusedKernel(fused).ok());
  }
  QueueId AddQueue(AppClass app_class) {
    return SimulatedSchedulerTest::AddQueue(app_class, "app" + std::to_string(++apps_));
  }

  // `rounds` of block tasks on every worker of the device alone. The record is found by `name`.
  TaskSpec Spec(QueueId queue, KernelId kernel, int64_t rounds, const std::string& name) {
    TaskSpec spec;
    spec.queue = queue;
    spec.kernel = kernel;
    spec.work.block_tasks = rounds * 8 * sms_;
    spec.callback = [](void* user, const CompletionRecord& record) {
      auto& entry = *static_cast<std::pair<bool, CompletionRecord>*>(user);
      entry = {true, record};
    };
    spec.callback_user = &done_[name];
    return spec;
  }
  void SubmitLc(const TaskSpec& spec) { ASSERT_TRUE(scheduler_->SubmitLc(spec).ok()); }
  void SubmitBe(const TaskSpec& spec) { ASSERT_TRUE(scheduler_->SubmitBe(spec).ok()); }
  // Work without an end on both BE lanes, never a moment in which one of them is idle.
  void FloodBe() {
    for (int i = 0; i < 4; ++i) {
      const QueueId queue = AddQueue(AppClass::kBestEffort);
      for (int task = 0; task < 60; ++task) {
        SubmitBe(Spec(queue, cuda_, 13 + 4 * i, "flood" + std::to_string(i)));
      }
    }
  }

  // In small steps, with the flow's invariants checked after each.
  void Pass(int64_t ns) {
    for (const TimeNs end = scheduler_->NowNs() + ns; scheduler_->NowNs() < end;) {
      const bool idle = scheduler_->Drain(scheduler_->NowNs() + 20 * kUs).ok();
      const absl::Status status = scheduler_->CheckInvariants();
      ASSERT_TRUE(status.ok()) << status;
      if (idle) return;
    }
  }
  bool IsDone(const std::string& name) { return done_[name].first; }
  const CompletionRecord& Of(const std::string& name) {
    EXPECT_TRUE(IsDone(name)) << name;
    return done_[name].second;
  }
  void ExpectDone(const std::string& name, Form form) {
    EXPECT_EQ(Of(name).verdict, Verdict::kOk) << name;
    EXPECT_EQ(Of(name).form, form) << name;
  }

  Pairing pairing_;
  PickyDevice::Refusal refusal_;
  std::map<std::string, std::pair<bool, CompletionRecord>> done_;
  int apps_ = 0;
  KernelId tensor_, cuda_, rigid_, slow_;
};

// The first one's lane depends on its app; the other one takes the lane that is left.
TEST_F(FusedPairsTest, TwoBeTasksGoTogetherWhicheverLaneTheFirstTakes) {
  std::array<QueueId, 3> queues;
  refusal_ = [](const LaunchRequest& request) {
    // An eviction of one would be one of both.
    EXPECT_TRUE(request.form != Form::kFused || request.parts[0].lane != request.parts[1].lane);
    return absl::OkStatus();
  };
  for (QueueId& queue : queues) queue = AddQueue(AppClass::kBestEffort);
  for (size_t i = 0; i < 2; ++i) {
    SCOPED_TRACE(i);
    pairing_ = {queues[i], queues[i + 1], true};
    SubmitBe(Spec(queues[i], tensor_, 5, "first"));
    SubmitBe(Spec(queues[i + 1], cuda_, 5, "second"));
    Pass(kMs);
    ExpectDone("first", Form::kFused);
    ExpectDone("second", Form::kFused);
    done_.clear();
  }
}

TEST_F(FusedPairsTest, ABePairWithoutTwoLanesGoesOneByOneAfterABoundedWait) {
  const QueueId first = AddQueue(AppClass::kBestEffort);
  const QueueId second = AddQueue(AppClass::kBestEffort);
  pairing_ = {first, second, true};
  FloodBe();
  Pass(kMs);
  SubmitBe(Spec(first, tensor_, 5, "first"));
  SubmitBe(Spec(second, cuda_, 5, "second"));
  // The wait, then what is on the lanes before them.
  Pass(8 * kMs);
  EXPECT_FALSE(scheduler_->Drain(scheduler_->NowNs()).ok()) << "the flood lasts";
  ExpectDone("first", Form::kWorkers);
  ExpectDone("second", Form::kWorkers);
}

// No plan comes by itself: nothing ends within the wait.
TEST_F(FusedPairsTest, TheWaitEndsAlthoughNothingElseHappens) {
  const QueueId first = AddQueue(AppClass::kBestEffort);
  const QueueId second = AddQueue(AppClass::kBestEffort);
  pairing_ = {first, second, true};
  for (const char* name : {"long", "longer"}) {
    SubmitBe(Spec(AddQueue(AppClass::kBestEffort), slow_, 10, name));
  }
  Pass(100 * kUs);
  SubmitBe(Spec(first, tensor_, 5, "first"));
  SubmitBe(Spec(second, cuda_, 5, "second"));
  Pass(200 * kMs);
  for (const char* name : {"first", "second"}) {
    ExpectDone(name, Form::kWorkers);
    EXPECT_GE(Of(name).launch_ns - Of(name).submit_ns, kMs);
    EXPECT_LT(Of(name).launch_ns - Of(name).submit_ns, kMs + 100 * kUs);
  }
}

TEST_F(FusedPairsTest, ABePairWaitsForALaneThatIsAboutToBeEmpty) {
  const QueueId first = AddQueue(AppClass::kBestEffort);
  const QueueId second = AddQueue(AppClass::kBestEffort);
  pairing_ = {first, second, true};
  for (const char* name : {"short", "shorter"}) {
    SubmitBe(Spec(AddQueue(AppClass::kBestEffort), cuda_, 5, name));
  }
  Pass(20 * kUs);
  SubmitBe(Spec(first, tensor_, 5, "first"));
  SubmitBe(Spec(second, cuda_, 5, "second"));
  Pass(2 * kMs);
  ExpectDone("first", Form::kFused);
  ExpectDone("second", Form::kFused);
}

// Nothing is in flight whose end could help, so that waiting would last forever.
TEST_F(FusedPairsTest, ABePairThatDoesNotExistGoesOneByOneAtOnce) {
  const QueueId first = AddQueue(AppClass::kBestEffort);
  const QueueId second = AddQueue(AppClass::kBestEffort);
  pairing_ = {first, second, true};
  SubmitBe(Spec(first, cuda_, 5, "first"));
  SubmitBe(Spec(second, cuda_, 5, "second"));
  Pass(kMs);
  ExpectDone("first", Form::kWorkers);
  ExpectDone("second", Form::kWorkers);
}

// A side has one BE lane: no end of anything gives a pair a second one.
TEST_F(FusedPairsTest, ABePairWhosePlaceHasOneLaneGoesOneByOneAtOnce) {
  const QueueId first = AddQueue(AppClass::kBestEffort);
  const QueueId second = AddQueue(AppClass::kBestEffort);
  pairing_ = {first, second, true, true};
  SubmitBe(Spec(first, tensor_, 5, "first"));
  SubmitBe(Spec(second, cuda_, 5, "second"));
  Pass(20 * kMs);
  for (const char* name : {"first", "second"}) {
    ExpectDone(name, Form::kWorkers);
    EXPECT_LT(Of(name).launch_ns - Of(name).submit_ns, 100 * kUs) << name;
  }
}

// An evictable lane never holds a part that cannot be evicted, so such a task leads the pair.
TEST_F(FusedPairsTest, ABeTaskThatCannotBeEvictedLeadsOneThatCan) {
  const QueueId first = AddQueue(AppClass::kBestEffort);
  const QueueId second = AddQueue(AppClass::kBestEffort);
  pairing_ = {first, second, true};
  SubmitBe(Spec(first, tensor_, 5, "first"));
  SubmitBe(Spec(second, rigid_, 5, "second"));
  Pass(kMs);
  ExpectDone("first", Form::kFused);
  ExpectDone("second", Form::kFused);
}

// Beside a query on its lane it would have no word, and nothing could send it away.
TEST_F(FusedPairsTest, APartnerThatGetsNoLaneToBeEvictedOnIsLeftBehind) {
  const QueueId lc = AddQueue(AppClass::kLatencyCritical);
  const QueueId be = AddQueue(AppClass::kBestEffort);
  pairing_ = {lc, be, true};
  FloodBe();
  Pass(kMs);
  SubmitBe(Spec(be, cuda_, 200, "partner"));
  SubmitLc(Spec(lc, tensor_, 2, "query"));
  Pass(6 * kMs);
  ExpectDone("query", Form::kOriginal);
  EXPECT_FALSE(IsDone("partner"));
  pairing_.keeps_singles = false;
  Pass(400 * kMs);
  ExpectDone("partner", Form::kWorkers);
}

// --- faults --------------------------------------------------------------------------------------

absl::Status RefuseFused(const LaunchRequest& request) {
  if (request.form != Form::kFused) return absl::OkStatus();
  return absl::InvalidArgumentError("The partner comes with too few bytes of arguments.");
}

TEST_F(FusedPairsTest, AQueryWhosePartnerIsRefusedGoesAloneAndThePartnerKeepsItsTurn) {
  refusal_ = RefuseFused;
  const QueueId lc = AddQueue(AppClass::kLatencyCritical);
  const QueueId be = AddQueue(AppClass::kBestEffort);
  for (const bool be_first : {false, true}) {
    SCOPED_TRACE(be_first);
    pairing_ = {be_first ? be : lc, be_first ? lc : be, false};
    SubmitBe(Spec(be, cuda_, 5, "partner"));
    SubmitLc(Spec(lc, tensor_, 5, "query"));
    Pass(kMs);
    ExpectDone("query", Form::kOriginal);
    ExpectDone("partner", Form::kWorkers);
    done_.clear();
  }
}

TEST_F(FusedPairsTest, APartnersFaultIsItsOwn) {
  refusal_ = [this](const LaunchRequest& request) {
    const bool faulty =
        request.parts[0].work.kernel != nullptr && request.parts[0].work.kernel->id == cuda_;
    if (!faulty && request.form != Form::kFused) return absl::OkStatus();
    return absl::InvalidArgumentError("The kernel comes with too few bytes of arguments.");
  };
  const QueueId lc = AddQueue(AppClass::kLatencyCritical);
  const QueueId be = AddQueue(AppClass::kBestEffort);
  pairing_ = {lc, be, false};
  SubmitBe(Spec(be, cuda_, 5, "partner"));
  SubmitLc(Spec(lc, tensor_, 5, "query"));
  Pass(kMs);
  ExpectDone("query", Form::kOriginal);
  EXPECT_EQ(Of("partner").verdict, Verdict::kFailed);
  EXPECT_EQ(Of("partner").error_code, 0);  // no native call failed
}

TEST_F(FusedPairsTest, TwoTasksOfOneClassThatAreRefusedTogetherGoOneByOne) {
  refusal_ = RefuseFused;
  for (const AppClass app_class : {AppClass::kLatencyCritical, AppClass::kBestEffort}) {
    const bool lc = app_class == AppClass::kLatencyCritical;
    SCOPED_TRACE(lc);
    pairing_ = {AddQueue(app_class), AddQueue(app_class), true};
    for (const auto& [queue, kernel, name] : {std::tuple{pairing_.first, tensor_, "first"},
                                              std::tuple{pairing_.second, cuda_, "second"}}) {
      const TaskSpec spec = Spec(queue, kernel, 5, name);
      lc ? SubmitLc(spec) : SubmitBe(spec);
    }
    Pass(kMs);
    ExpectDone("first", lc ? Form::kOriginal : Form::kWorkers);
    ExpectDone("second", lc ? Form::kOriginal : Form::kWorkers);
    done_.clear();
  }
}

// --- events and order ----------------------------------------------------------------------------

// It would be recorded behind both parts.
TEST_F(FusedPairsTest, ATaskThatSignalsAnEventIsInNoPair) {
  int event = 0;  // the simulated device records none
  for (const AppClass app_class : {AppClass::kLatencyCritical, AppClass::kBestEffort}) {
    const bool lc = app_class == AppClass::kLatencyCritical;
    for (const bool first_signals : {true, false}) {
      SCOPED_TRACE(lc);
      SCOPED_TRACE(first_signals);
      pairing_ = {AddQueue(app_class), AddQueue(AppClass::kBestEffort), false};
      TaskSpec first = Spec(pairing_.first, tensor_, 5, "first");
      TaskSpec second = Spec(pairing_.second, cuda_, 5, "second");
      (first_signals ? first : second).signal_event = &event;
      SubmitBe(second);
      lc ? SubmitLc(first) : SubmitBe(first);
      Pass(kMs);
      ExpectDone("first", lc ? Form::kOriginal : Form::kWorkers);
      ExpectDone("second", Form::kWorkers);
      done_.clear();
    }
  }
}

// Neither part of a pair of queries can be evicted, so both are on one lane, and it stays in use.
TEST_F(FusedPairsTest, AQueryMayQueueBehindAPairOfQueriesOnTheOnlyLane) {
  const QueueId first = AddQueue(AppClass::kLatencyCritical);
  const QueueId second = AddQueue(AppClass::kLatencyCritical);
  const QueueId third = AddQueue(AppClass::kLatencyCritical);
  ASSERT_TRUE(scheduler_
                  ->SetPolicy(std::make_unique<PlanWith>([&](const Snapshot& snapshot, Plan& plan) {
                    for (LcRoute& route : plan.routes) route.fast_path = false;
                    PlannedLaunch launch;
                    launch.place = snapshot.splits[0].lc_place;  // it has one LC lane
                    launch.lane_class = LaneClass::kLc;
                    for (const HeadView& head : snapshot.heads) {
                      if (head.queue == second) continue;
                      launch.task = head.task;
                      launch.form = head.queue == first ? Form::kFused : Form::kOriginal;
                      if (head.queue == first) launch.fused_with = snapshot.heads[1].task;
                      plan.launches.TryAdd(launch);
                    }
                  }))
                  .ok());
  SubmitLc(Spec(first, tensor_, 5, "first"));
  SubmitLc(Spec(second, cuda_, 5, "second"));
  Pass(20 * kUs);
  SubmitLc(Spec(third, tensor_, 1, "third"));
  Pass(100 * kMs);
  ExpectDone("first", Form::kFused);
  ExpectDone("second", Form::kFused);
  ExpectDone("third", Form::kOriginal);
  EXPECT_LT(Of("third").launch_ns, Of("first").end_ns);
  EXPECT_LT(Of("third").launch_ns, Of("second").end_ns);
}

// The other query's queue has a task in flight on another lane, which stream order does not order.
TEST_F(FusedPairsTest, AnLcPartnerDoesNotOvertakeItsQueue) {
  const QueueId first = AddQueue(AppClass::kLatencyCritical);
  const QueueId second = AddQueue(AppClass::kLatencyCritical);
  pairing_ = {first, second, false};
  TaskSpec before = Spec(second, slow_, 1, "before");
  before.work.block_tasks = 10;  // which leave room beside them
  SubmitLc(before);
  Pass(100 * kUs);
  SubmitLc(Spec(second, cuda_, 5, "partner"));
  SubmitLc(Spec(first, tensor_, 5, "head"));
  Pass(5 * kMs);
  EXPECT_EQ(Of("head").verdict, Verdict::kOk);
  EXPECT_EQ(Of("partner").verdict, Verdict::kOk);
  EXPECT_GE(Of("partner").start_ns, Of("before").end_ns);
  // With nothing before it the pair goes together.
  SubmitLc(Spec(second, cuda_, 5, "partner"));
  SubmitLc(Spec(first, tensor_, 5, "head"));
  Pass(kMs);
  ExpectDone("partner", Form::kFused);
  ExpectDone("head", Form::kFused);
}

}  // namespace
}  // namespace gpushare::core
