// Nothing allocates on submit, plan and launch: every operator new is counted while
// a task goes from submit to complete, for each policy, after a warm-up that fills what is built
// lazily.

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "src/core/flow/scheduler.h"
#include "src/core/policies/registry.h"
#include "src/core/seams/ordinary_form.h"
#include "src/models/online/online_model.h"
#include "src/null/null_device.h"
#include "tests/core/flow/cut_network.h"
#include "tests/core/plan_with.h"
#include "tests/core/policies/counting_allocator.h"

namespace gpushare::core {
namespace {

class NoAllocationTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    auto device = null::MakeNullDevice();
    auto model = models::MakeOnlineModel(device->capabilities().profile);
    auto policy = MakePolicy(GetParam()).value();
    SchedulerOptions options;
    options.places = PlacesMode::kEager;  // the device allocates where it makes a place
    scheduler_ =
        Scheduler::Create(options, std::move(device), std::move(model), std::move(policy)).value();

    lc_queue_ = MakeQueue("service", AppClass::kLatencyCritical);
    be_queue_ = MakeQueue("train", AppClass::kBestEffort);
    KernelDesc kernel;
    kernel.name = "kernel";
    kernel.evictable = true;
    kernel.solo_hint_ns = 100'000;
    kernel_ = scheduler_->RegisterKernel(kernel).value();
    for (int round = 0; round < 50; ++round) Round();
  }

  QueueId MakeQueue(const char* name, AppClass app_class) {
    AppOptions options = {.name = name, .app_class = app_class};
    if (app_class == AppClass::kLatencyCritical) {
      options.promise.p99_bound = 1.05;
      // Loose enough that no policy holds BE work back for longer than the rounds last.
      options.promise.p99_alone_ns = 2'000'000'000;
      options.promise.target_ns = 1'000'000'000;
    }
    auto app = scheduler_->CreateApp(options);
    EXPECT_TRUE(app.ok()) << app.status();
    auto queue = scheduler_->CreateQueue(*app);
    EXPECT_TRUE(queue.ok()) << queue.status();
    return *queue;
  }

  TaskSpec Spec(QueueId queue) const {
    TaskSpec spec;
    spec.queue = queue;
    spec.kernel = kernel_;
    spec.work.block_tasks = 1024;
    spec.work.arguments = arguments_;
    spec.work.arguments_bytes = sizeof(arguments_);
    spec.detached = true;
    return spec;
  }

  // LC and BE tasks, small and large arguments, from submit until nothing is left to do.
  void Round() {
    for (int i = 0; i < 8; ++i) {
      EXPECT_TRUE(scheduler_->SubmitBe(Spec(be_queue_)).ok());
      TaskSpec large = Spec(be_queue_);
      large.work.arguments = large_arguments_;
      large.work.arguments_bytes = sizeof(large_arguments_);
      EXPECT_TRUE(scheduler_->SubmitBe(large).ok());
      EXPECT_TRUE(scheduler_->SubmitLc(Spec(lc_queue_)).ok());
    }
    for (int tick = 0; tick < 100; ++tick) scheduler_->Tick();
  }

  std::unique_ptr<Scheduler> scheduler_;
  QueueId lc_queue_;
  QueueId be_queue_;
  KernelId kernel_;
  unsigned char arguments_[64] = {};
  unsigned char large_arguments_[4096] = {};
};

TEST_P(NoAllocationTest, FromSubmitToCompleteNothingIsAllocated) {
  const int64_t before = testing::AllocationCount();
  for (int round = 0; round < 20; ++round) Round();
  const int64_t count = testing::AllocationCount() - before;
  EXPECT_EQ(count, 0) << "operator new was called " << count << " times in 480 tasks.";
  const auto stats = scheduler_->Stats();
  EXPECT_EQ(stats.tasks_pending, 0) << "the rounds did not complete what they submitted";
}

INSTANTIATE_TEST_SUITE_P(EveryPolicy, NoAllocationTest, ::testing::ValuesIn(PolicyNames()),
                         [](const ::testing::TestParamInfo<std::string>& policy) {
                           std::string name = policy.param;
                           for (char& letter : name) {
                             if (letter == ':') letter = '_';
                           }
                           return name;
                         });

// A query in pieces, and one for which the slots do not suffice, so that its graph runs whole.
class NoAllocationInPiecesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto device = null::MakeNullDevice();
    auto model = models::MakeOnlineModel(device->capabilities().profile);
    SchedulerOptions options;
    options.places = PlacesMode::kEager;
    scheduler_ = Scheduler::Create(options, std::move(device), std::move(model),
                                   std::make_unique<PlanWith>(LaunchInPieces))
                     .value();
    const KernelId gemm = AddKernel("gemm");
    ASSERT_TRUE(scheduler_->RegisterFusedKernel(FusedPair(gemm, AddKernel("stream"))).ok());
    network_ = scheduler_->RegisterKernel(CutNetwork({"", "gemm", ""})).value();
    ASSERT_EQ(scheduler_->FindKernel(network_)->graph()->pieces.size(), 3);
    queue_ = AddQueue("service", 64);
    small_queue_ = AddQueue("small service", 6);
    for (int round = 0; round < 50; ++round) Round();
  }
  static void LaunchInPieces(const Snapshot& snapshot, Plan& plan) {
    for (LcRoute& route : plan.routes) {
      route.fast_path = false;
      route.cuts_graphs = true;
    }
    for (const HeadView& head : snapshot.heads) {
      PlannedLaunch launch;
      launch.task = head.task;
      launch.count = head.ready_count;
      launch.form = OrdinaryForm(head.kind);
      plan.launches.TryAdd(launch);
    }
  }
  KernelId AddKernel(const char* name) {
    KernelDesc kernel;
    kernel.name = name;
    kernel.evictable = true;
    kernel.solo_hint_ns = 100'000;
    return scheduler_->RegisterKernel(kernel).value();
  }
  QueueId AddQueue(const char* name, int32_t tasks_max) {
    const AppOptions options = {
        .name = name, .app_class = AppClass::kLatencyCritical, .tasks_max = tasks_max};
    return scheduler_->CreateQueue(scheduler_->CreateApp(options).value()).value();
  }
  void Submit(QueueId queue, bool detached) {
    TaskSpec spec;
    spec.queue = queue;
    spec.kernel = network_;
    spec.work.kind = TaskKind::kGraph;
    spec.detached = detached;
    const absl::StatusOr<TicketId> ticket = scheduler_->SubmitLc(spec);
    ASSERT_TRUE(ticket.ok());
    if (!detached) kept_[kept_count_++] = *ticket;
  }
  void Round() {
    // Four of the six slots are kept: the next query has no room for three pieces.
    kept_count_ = 0;
    for (int i = 0; i < 4; ++i) Submit(small_queue_, false);
    Tick();
    const int64_t launches = scheduler_->Stats().launches;
    Submit(small_queue_, true);
    Tick();
    whole_ += scheduler_->Stats().launches - launches == 1 ? 1 : 0;
    for (size_t i = 0; i < kept_count_; ++i) {
      ASSERT_TRUE(scheduler_->ReleaseTicket(kept_[i]).ok());
    }
    for (int i = 0; i < 8; ++i) Submit(queue_, true);
    Tick();
    // The same graph on another queue waits for the pieces.
    Submit(queue_, true);
    Submit(small_queue_, true);
    Tick();
    ++rounds_;
  }
  void Tick() {
    for (int tick = 0; tick < 50; ++tick) scheduler_->Tick();
  }

  std::unique_ptr<Scheduler> scheduler_;
  KernelId network_;
  QueueId queue_, small_queue_;
  std::array<TicketId, 4> kept_;
  size_t kept_count_ = 0;
  int whole_ = 0;
  int rounds_ = 0;
};

TEST_F(NoAllocationInPiecesTest, FromSubmitToCompleteNothingIsAllocated) {
  const int64_t launches = scheduler_->Stats().launches;
  const int64_t before = testing::AllocationCount();
  for (int round = 0; round < 20; ++round) Round();
  const int64_t count = testing::AllocationCount() - before;
  EXPECT_EQ(count, 0);
  EXPECT_GT(scheduler_->Stats().launches - launches, 20 * 8 * 3 - 1) << "in pieces";
  EXPECT_EQ(whole_, rounds_);
  EXPECT_EQ(scheduler_->Stats().tasks_pending, 0);
}

// The counter counts: else the test above would pass whatever the flow does.
TEST(AllocationCounterTest, AnAllocationIsCounted) {
  const int64_t before = testing::AllocationCount();
  const auto value = std::make_unique<int>(1);
  EXPECT_EQ(testing::AllocationCount() - before, *value);
}

}  // namespace
}  // namespace gpushare::core
