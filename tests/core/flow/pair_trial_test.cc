// Pairs that nobody measured: a service that runs as fast on half of the device, beside a kernel of
// which the library knows nothing, or a service of which it knows no demands. A trial costs the
// stated queries; a bad pair is dropped, a good one kept, and a profile has either.

#include "src/core/evidence/pair_trial.h"

#include <random>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "src/core/evidence/tuning.h"
#include "src/core/policies/registry.h"
#include "tests/core/forwarding_model.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::core {
namespace {

// Knows no demands of the kernel `hidden`, as of a kernel that no profile has.
class StrangerModel final : public ForwardingModel {
 public:
  StrangerModel(std::unique_ptr<CostModel> model, std::string hidden, const bool& deaf,
                int& gives_up)
      : ForwardingModel(std::move(model)),
        hidden_(std::move(hidden)),
        deaf_(deaf),
        gives_up_(gives_up) {}
  void GiveUpBeside(const KernelDesc& kernel, int32_t sms, const KernelDesc& neighbour,
                    double factor) override {
    ++gives_up_;
    ForwardingModel::GiveUpBeside(kernel, sms, neighbour, factor);
  }
  void Observe(const Observation& observation) override {
    if (deaf_ && !observation.beside.empty()) return;
    ForwardingModel::Observe(observation);
  }
  void AddKernel(const KernelDesc& kernel) override { ForwardingModel::AddKernel(AsSeen(kernel)); }
  double SpeedBeside(const KernelDesc& kernel, int32_t sms, const KernelDesc& neighbour,
                     int32_t neighbour_sms) const override {
    return ForwardingModel::SpeedBeside(AsSeen(kernel), sms, AsSeen(neighbour), neighbour_sms);
  }
  bool KnowsBeside(const KernelDesc& kernel, int32_t sms,
                   const KernelDesc& neighbour) const override {
    return ForwardingModel::KnowsBeside(AsSeen(kernel), sms, AsSeen(neighbour));
  }

 private:
  // Of a graph its speeds over SMs are known all the same: registering it measures them.
  KernelDesc AsSeen(KernelDesc kernel) const {
    if (kernel.name != hidden_) return kernel;
    SimulationRecord measured;
    if (kernel.kind() == TaskKind::kGraph) measured.speed = kernel.simulation.speed;
    kernel.simulation = measured;
    return kernel;
  }
  const std::string hidden_;
  const bool& deaf_;  // no query can be attributed to a neighbour
  int& gives_up_;
};

// A planner that tries a split, and launches no BE work there.
class IdleTrialPolicy final : public Policy {
 public:
  absl::string_view name() const override { return "idle_trial"; }
  void MakePlan(const Snapshot& snapshot, Plan& plan) override {
    PlannedLaunch launch;
    launch.form = Form::kGraph;
    launch.lane_class = LaneClass::kLc;
    for (const HeadView& head : snapshot.heads) {
      if (head.app_class != AppClass::kLatencyCritical) continue;
      launch.task = head.task;
      plan.launches.TryAdd(launch);
    }
    if (!snapshot.trials_open || snapshot.pairs.kernels == 0) return;
    plan.arrangement = {.split = 0, .trial_kernel = 0};
  }
};

class PairTrialTest : public SimulatedSchedulerTest {
 protected:
  static constexpr int64_t kSoloNs = 600 * kUs;
  static constexpr int64_t kP99AloneNs = 1'500 * kUs;

  std::unique_ptr<CostModel> Wrap(std::unique_ptr<CostModel> model) override {
    return std::make_unique<StrangerModel>(std::move(model), hidden_, deaf_, gives_up_);
  }

  // `dram`: of the device's bandwidth, that the stranger asks for.
  void Start(double dram, double bound, const std::string& learned = "") {
    ASSERT_NO_FATAL_FAILURE(
        StartScheduler(idle_ ? std::make_unique<IdleTrialPolicy>() : *MakePolicy("adaptive")));
    if (!learned.empty()) {
      ASSERT_TRUE(scheduler_->LoadModel(learned).ok());
    }
    on_split_ = late_on_split_ = queries_ = be_done_ = 0;
    limit_ns_ = static_cast<int64_t>(bound * static_cast<double>(kP99AloneNs));
    KernelDesc service = Graph("service", kSoloNs);
    service.simulation.nodes[0].demand.dram = 0.7;
    service.simulation.speed = {{sms_ / 2, 0.98}, {sms_ - 1, 1}};
    KernelDesc stranger = EvictableKernel("stranger", 27 * kUs);
    stranger.resources.workers_per_sm_max = 8;
    if (segments_) {  // 8 ms too, in 80 segments
      stranger = Graph("stranger", 10 * kUs);
      stranger.simulation.nodes[0].repeat = 800;
      stranger.graph()->measure_nodes = true;
    }
    stranger.simulation.demand.dram = dram;
    if (everywhere_) stranger.simulation.speed = {{1, 1}};  // it asks for as much on a few SMs
    AppOptions options;
    options.name = "service";
    options.app_class = AppClass::kLatencyCritical;
    options.promise.p99_bound = bound;
    options.promise.p99_alone_ns = kP99AloneNs;
    options.solo_ns = kSoloNs;
    lc_.queue = AddQueue(options);
    lc_.kernel = *scheduler_->RegisterKernel(service);
    lc_.work.kind = TaskKind::kGraph;
    lc_.detached = true;
    lc_.callback_user = this;
    lc_.callback = [](void* user, const CompletionRecord& record) {
      auto& test = *static_cast<PairTrialTest*>(user);
      ++test.queries_;
      if (record.place == kWholeDevice) return;
      ++test.on_split_;
      if (record.complete_ns - record.submit_ns > test.limit_ns_) ++test.late_on_split_;
    };
    options = AppOptions();
    options.name = "train";
    be_app_ = *scheduler_->CreateApp(options);
    be_.queue = *scheduler_->CreateQueue(be_app_);
    be_.kernel = *scheduler_->RegisterKernel(stranger);
    be_.work.kind = segments_ ? TaskKind::kGraph : TaskKind::kKernel;
    be_.work.block_tasks = segments_ ? 0 : int64_t{8} * sms_ * 300;  // 8 ms
    be_.detached = true;
    be_.callback_user = this;
    be_.callback = [](void* user, const CompletionRecord& record) {
      auto& test = *static_cast<PairTrialTest*>(user);
      test.predicted_ns_ = static_cast<double>(record.predicted_ns);
      if (test.ending_) return;
      ++test.be_done_;
      EXPECT_TRUE(test.scheduler_->SubmitBe(test.be_).ok()) << test.queries_;
    };
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(scheduler_->SubmitBe(be_).ok());
  }

  // A Poisson stream of load 0.3.
  void Run(int queries) {
    std::exponential_distribution<double> gap(0.3 / static_cast<double>(kSoloNs));
    for (int i = 0; i < queries; ++i) {
      const auto gap_ns = static_cast<int64_t>(gap(random_));
      ASSERT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + gap_ns).ok());
      ASSERT_TRUE(scheduler_->SubmitLc(lc_).ok());
    }
    ASSERT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + 50 * kMs).ok());
    ASSERT_TRUE(scheduler_->CheckInvariants().ok());
  }
  void Stop() {
    ending_ = true;
    ASSERT_TRUE(scheduler_->Shutdown(scheduler_->NowNs() + 1000 * kMs).ok());
    scheduler_ = nullptr;
    ending_ = false;
  }
  void Restart(double dram) {
    const std::string learned = scheduler_->SaveModel();
    ASSERT_NO_FATAL_FAILURE(Stop());
    ASSERT_NO_FATAL_FAILURE(Start(dram, 1.3, learned));
  }
  void TearDown() override {
    ending_ = true;
    SimulatedSchedulerTest::TearDown();
  }

  TaskSpec lc_, be_;
  AppId be_app_;
  int queries_ = 0;
  int be_done_ = 0;          // BE tasks of 8 ms
  double predicted_ns_ = 0;  // of the last of them
  int on_split_ = 0;         // queries on the LC side of a split
  int late_on_split_ = 0;
  int64_t limit_ns_ = 0;
  std::string hidden_ = "stranger";
  bool segments_ = false;    // the stranger is a graph
  bool everywhere_ = false;  // the stranger is as bad on any split
  bool ending_ = false;
  bool deaf_ = false;
  bool idle_ = false;  // the planner tries a split on which nothing runs
  int gives_up_ = 0;
  std::mt19937_64 random_{7};
};

// Beside it the service has at most 0.6 of its speed, on any split: two queries tell so.
TEST_F(PairTrialTest, ABadPairCostsTheStatedQueriesAndIsDropped) {
  everywhere_ = true;
  ASSERT_NO_FATAL_FAILURE(Start(1.0, 1.3));
  ASSERT_NO_FATAL_FAILURE(Run(1'500));
  EXPECT_GT(on_split_, 0) << "it was never tried";
  EXPECT_LE(on_split_, 3) << "5 where four queries tell";
  EXPECT_LE(late_on_split_, kTrialQueries + kTrialShare * queries_);
  const int tried = on_split_;
  ASSERT_NO_FATAL_FAILURE(Run(3'000));
  EXPECT_EQ(on_split_, tried) << "it was tried again";
}

// A graph that a program captured, beside a kernel of the profile. The demands of the kernel alone
// predict nothing; taken for a prediction they cost queries on each split in turn.
TEST_F(PairTrialTest, AServiceWithoutDemandsIsTriedBesideAKnownKernelToo) {
  hidden_ = "service";
  everywhere_ = true;
  ASSERT_NO_FATAL_FAILURE(Start(1.0, 1.3));
  ASSERT_NO_FATAL_FAILURE(Run(1'500));
  EXPECT_GT(on_split_, 0) << "it was never tried";
  EXPECT_LE(late_on_split_, kTrialQueries + kTrialShare * queries_);
  EXPECT_LE(on_split_, 2 * kTrialQueries) << "102 where one side's demands counted";
}

// Beside 80 SMs of it the service has 0.6 of its speed, and beside fewer all of it.
TEST_F(PairTrialTest, AKernelThatIsBadBesideManySmsIsTriedOnFewer) {
  ASSERT_NO_FATAL_FAILURE(Start(1.0, 1.3));
  ASSERT_NO_FATAL_FAILURE(Run(1'500));
  EXPECT_GT(on_split_, queries_ / 2);
}

TEST_F(PairTrialTest, AGoodPairIsKept) {
  ASSERT_NO_FATAL_FAILURE(Start(0, 1.3));
  ASSERT_NO_FATAL_FAILURE(Run(1'500));
  EXPECT_GT(on_split_, queries_ * 9 / 10);
}

// Nothing is known of an app that has never sent a query, and nothing of it speaks against a split.
TEST_F(PairTrialTest, AnAppThatNeverSendsKeepsNoPairFromBeingTried) {
  ASSERT_NO_FATAL_FAILURE(Start(0, 1.3));
  AppOptions options;
  options.name = "silent";
  options.app_class = AppClass::kLatencyCritical;
  options.promise.p99_bound = 1.05;
  AddQueue(options);
  ASSERT_NO_FATAL_FAILURE(Run(1'500));
  EXPECT_GT(on_split_, queries_ * 9 / 10);
}

// One trial for each split that is hoped for, and each no longer than it may be.
TEST_F(PairTrialTest, ATrialThatMeasuresNothingEndsAndIsNotRepeated) {
  deaf_ = true;
  ASSERT_NO_FATAL_FAILURE(Start(0, 1.3));
  ASSERT_NO_FATAL_FAILURE(Run(1'500));
  EXPECT_GE(on_split_, kTrialQueries);
  EXPECT_GT(gives_up_, 0);
  EXPECT_LE(on_split_, (kTrialQueries + 1) * gives_up_)
      << "one may be on its way when a trial ends";
}

TEST_F(PairTrialTest, TrialsAreAShareOfTheQueries) {
  PairTrial trial;
  EXPECT_TRUE(AreOpen(trial)) << "the first one at once";
  FollowPlan(trial, 3, 0, 0);
  EXPECT_TRUE(AreOpen(trial)) << "it goes on";
  for (int i = 0; i < kTrialQueries; ++i) {
    EarnTrialCredit(trial);
    NoteTrialQuery(trial, 0, 0, false);
  }
  EXPECT_FALSE(AreOpen(trial));
  FollowPlan(trial, -1, -1, 0);
  int queries = kTrialQueries;
  for (; !AreOpen(trial); ++queries) EarnTrialCredit(trial);
  EXPECT_EQ(queries, static_cast<int>(kTrialQueries / kTrialShare));
}

TEST_F(PairTrialTest, AQueryOnTimeGivesItsCreditBack) {
  PairTrial trial;
  for (const int late : {0, 1}) {
    SCOPED_TRACE(late);
    FollowPlan(trial, 3, 0, 0);
    for (int i = 0; i < kTrialQueries; ++i) NoteTrialQuery(trial, 0, 0, i >= late);
    FollowPlan(trial, -1, -1, 0);
    EXPECT_EQ(AreOpen(trial), late == 0);
  }
}

TEST_F(PairTrialTest, OnlyQueriesBesideTheKernelThatRanDecide) {
  PairTrial trial;
  FollowPlan(trial, 3, 0, 0);
  NoteTrialQuery(trial, 5, 2, false);  // the planner named another kernel
  for (int i = 0; i < kTrialQueries; ++i) NoteTrialQuery(trial, 6, 1, false);
  EXPECT_EQ(trial.kernel, 2);
  EXPECT_EQ(trial.apps, uint64_t{1} << 5) << "app 6 had no query beside kernel 2";
  EXPECT_FALSE(trial.over);
}

TEST_F(PairTrialTest, ATrialWithoutQueriesEndsByTime) {
  PairTrial trial;
  FollowPlan(trial, 3, 0, 0);
  EXPECT_FALSE(TrialTimedOut(trial, kTrialTimeNs - 1));
  EXPECT_TRUE(TrialTimedOut(trial, kTrialTimeNs));
}

// No BE work runs in the trial: its queries say nothing of the pair.
TEST_F(PairTrialTest, APairThatNeverRanIsNotGivenUp) {
  deaf_ = idle_ = true;
  ASSERT_NO_FATAL_FAILURE(Start(0, 1.3));
  ASSERT_NO_FATAL_FAILURE(Run(1'500));
  EXPECT_EQ(gives_up_, 0);
}

// The goal is 0.03.
TEST_F(PairTrialTest, ALooserBoundGivesLittleLessOfAStranger) {
  constexpr double kLoss = 0.04;
  for (const double dram : {0.0, 0.5, 1.0}) {
    double most = 0;
    for (const double bound : {1.02, 1.05, 1.1, 1.2, 1.3, 1.5, 1.75, 2.0}) {
      random_.seed(7);
      ASSERT_NO_FATAL_FAILURE(Start(dram, bound));
      ASSERT_NO_FATAL_FAILURE(Run(1'500));
      const double rate = be_done_ * 8.0 * kMs / static_cast<double>(scheduler_->NowNs());
      EXPECT_GE(rate, most - kLoss) << "bandwidth " << dram << ", bound " << bound;
      most = std::max(most, rate);
      ASSERT_NO_FATAL_FAILURE(Stop());
    }
    EXPECT_GT(most, 0.76) << "sharing time gives 0.7";
  }
}

// After each busy period it first leaves the BE side, which workers do at once.
TEST_F(PairTrialTest, AGraphInSegmentsGainsByASplitToo) {
  segments_ = true;
  double rate[2] = {};
  for (const bool loose : {false, true}) {
    random_.seed(7);
    ASSERT_NO_FATAL_FAILURE(Start(0, loose ? 1.3 : 1.1));
    ASSERT_NO_FATAL_FAILURE(Run(1'500));
    rate[loose ? 1 : 0] = be_done_ * 8.0 * kMs / static_cast<double>(scheduler_->NowNs());
    EXPECT_EQ(on_split_ > queries_ / 2, loose) << on_split_;
    ASSERT_NO_FATAL_FAILURE(Stop());
  }
  EXPECT_GT(rate[1], rate[0] + 0.05);
}

// A task of 8 ms is evicted again and again, and never gives a sample of one launch.
TEST_F(PairTrialTest, TheDurationOfAStrangerIsLearnedFromItsParts) {
  ASSERT_NO_FATAL_FAILURE(Start(0, 1.3));
  ASSERT_NO_FATAL_FAILURE(Run(1'500));
  const double predicted_ms = predicted_ns_ / static_cast<double>(kMs);
  EXPECT_NEAR(predicted_ms, 8, 1);
}

// A run that starts from the profile of an earlier one.
TEST_F(PairTrialTest, TheProfileHasThatAPairWasDropped) {
  everywhere_ = true;
  ASSERT_NO_FATAL_FAILURE(Start(1.0, 1.3));
  ASSERT_NO_FATAL_FAILURE(Run(1'500));
  EXPECT_GT(on_split_, 0);
  Restart(1.0);
  ASSERT_NO_FATAL_FAILURE(Run(300));
  EXPECT_EQ(on_split_, 0) << "it is known to be bad";
}

TEST_F(PairTrialTest, TheProfileHasThatAPairWasKept) {
  ASSERT_NO_FATAL_FAILURE(Start(0, 1.3));
  ASSERT_NO_FATAL_FAILURE(Run(1'500));
  Restart(0);
  ASSERT_NO_FATAL_FAILURE(Run(400));
  EXPECT_GT(on_split_, 200) << "a trial has 8 queries";
}

}  // namespace
}  // namespace gpushare::core
