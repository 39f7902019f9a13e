// The heads of a snapshot, of which most views are kept from one plan to the next: after random
// operations they are the same, in the same order, as those that are built from nothing.

#include "src/core/flow/planning/head_views.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/base/random.h"
#include "src/core/checks/kernel_check.h"
#include "src/core/flow/admit.h"
#include "src/core/flow/complete.h"
#include "src/core/flow/launch.h"
#include "src/core/flow/learn/learn.h"
#include "src/core/flow/plan.h"
#include "src/core/flow/predict.h"
#include "src/core/flow/submit.h"
#include "src/core/flow/verbs/finish.h"
#include "src/core/policies/registry.h"
#include "src/core/state/backlog.h"
#include "src/models/online/online_model.h"
#include "src/sim/sim_device.h"

namespace gpushare::core {
namespace {

constexpr int64_t kUs = 1000;
constexpr int kSeeds = 100;
constexpr int kSteps = 1000;

bool IsOffered(const Flow& flow, const Queue& queue) {
  const Task& head = *queue.head;
  if (head.state.load() != TaskState::kReady || queue.deferred.load() > 0) return false;
  if (flow.GraphIsTaken(head)) return false;
  return IsLc(head) ? queue.in_flight.load() < kLcWindow : queue.in_flight.load() == 0;
}

// LC heads first, each class in order of submission.
std::vector<Task*> HeadsFromNothing(const Flow& flow) {
  std::vector<Task*> heads;
  for (const Queue* const queue : flow.backlog) {
    if (IsOffered(flow, *queue)) heads.push_back(queue->head);
  }
  std::sort(heads.begin(), heads.end(), [](const Task* a, const Task* b) {
    if (IsLc(*a) != IsLc(*b)) return IsLc(*a);
    return a->progress.sequence < b->progress.sequence;
  });
  return heads;
}

class HeadViewsTest : public ::testing::TestWithParam<int> {
 protected:
  HeadViewsTest() : random_(static_cast<uint64_t>(GetParam())) {
    auto device = *sim::MakeSimDevice(sim::SimOptions());
    auto model = models::MakeOnlineModel(device->capabilities().profile);
    flow_ = std::make_unique<Flow>(SchedulerOptions(), std::move(device), std::move(model),
                                   *MakePolicy("adaptive"));
    EXPECT_TRUE(flow_->lanes.Create(*flow_->device, kMaxSplits).ok());
    for (int counter = kMaxCounters - 1; counter >= 0; --counter) flow_->free_counters.Add(counter);
    for (int i = 0; i < 4; ++i) kernels_.push_back(Register(i, TaskKind::kKernel));
    graph_ = Register(4, TaskKind::kGraph);
    for (int i = 0; i < 4; ++i) empty_.push_back(&CreateApp(AppClass::kBestEffort));
    AddApp(AppClass::kLatencyCritical);
    for (int i = 0; i < 2; ++i) AddApp(AppClass::kBestEffort);
  }

  int Draw(int below) { return static_cast<int>(random_.Uniform() * below); }

  KernelId Register(int index, TaskKind kind) {
    KernelDesc kernel;
    kernel.name = "kernel" + std::to_string(index);
    kernel.code = CodeOfKind(kind);
    kernel.evictable = kind == TaskKind::kKernel && index % 2 == 0;
    kernel.simulation.present = true;
    kernel.simulation.block_task_ns = 10 * kUs * (1 + index);
    if (kind == TaskKind::kGraph) kernel.simulation.nodes.assign(20, {10 * kUs, 132, 1, true, {}});
    EXPECT_TRUE(flow_->device->DescribeKernel(kernel).ok());
    FillUnknown(kernel);
    const KernelDesc& registered = **flow_->tables.StageKernel(kernel);
    EXPECT_TRUE(flow_->device->PrepareKernel(registered).ok());
    flow_->model->AddKernel(registered);
    flow_->tables.PublishKernel();
    return registered.id;
  }

  App& CreateApp(AppClass app_class) {
    App& app = **flow_->tables.CreateApp({.name = "app", .app_class = app_class});
    flow_->ledger.AddApp(static_cast<int>(app.slot), app_class);
    return app;
  }
  void AddApp(AppClass app_class) {
    if (flow_->tables.app_slots() >= kMaxApps / 4) return;
    App& app = CreateApp(app_class);
    for (int i = 0; i < 3; ++i) queues_.push_back(*flow_->tables.CreateQueue(app));
  }
  // As Scheduler::ReleaseApp. The rows of the apps behind it move.
  void ReleaseApp() {
    if (empty_.empty()) return;
    App& app = *empty_.back();
    empty_.pop_back();
    ASSERT_TRUE(flow_->tables.CloseApp(app).ok());
    flow_->ledger.RemoveApp(static_cast<int>(app.slot));
    flow_->tables.FreeApp(app);
    flow_->dirty = true;
  }

  void Submit() {
    const Queue& queue = *queues_[static_cast<size_t>(Draw(static_cast<int>(queues_.size())))];
    TaskSpec spec;
    spec.queue = QueueId{queue.id.load()};
    if (const int kind = Draw(10); kind == 0) {
      spec.work.kind = TaskKind::kMemcpy;
      spec.work.copy.direction = CopyDirection::kHostToDevice;
      spec.work.copy.bytes = 1 << 20;
    } else if (kind < 4) {
      spec.work.kind = TaskKind::kGraph;
      spec.kernel = graph_;
    } else {
      spec.kernel = kernels_[static_cast<size_t>(Draw(4))];
      spec.work.block_tasks = 1 + Draw(4000);
    }
    TicketId wait[1];
    if (!tickets_.empty() && Draw(4) == 0) {
      wait[0] = tickets_[static_cast<size_t>(Draw(static_cast<int>(tickets_.size())))];
      spec.wait_tickets = wait;
    }
    tickets_.push_back(SubmitTask(*flow_, spec, queue.app->options.app_class).value());
  }

  // As Scheduler::Cancel.
  void Cancel() {
    if (tickets_.empty()) return;
    Task* const task = flow_->tables.FindTicket(
        tickets_[static_cast<size_t>(Draw(static_cast<int>(tickets_.size())))]);
    const TaskState state = task->state.load();
    if (state != TaskState::kWaiting && state != TaskState::kReady) return;
    Unlink(*flow_, *task);
    FinishTask(*flow_, *task, Verdict::kCancelled);
  }

  void Tick() {
    Flow& flow = *flow_;
    flow.now_ns = flow.device->NowNs();
    Collect(flow);
    Admit(flow);
    Predict(flow);
    MakePlan(flow);
    if (flow.planned) ExpectHeadsAsFromNothing();
    Launch(flow);
    Complete(flow);
    Learn(flow);
    const absl::Status views = CheckHeadViews(flow);
    ASSERT_TRUE(views.ok()) << views;
  }

  void ExpectHeadsAsFromNothing() {
    const HeadList& heads = flow_->buffers.snapshot.heads;
    const std::vector<Task*> expected = HeadsFromNothing(*flow_);
    ASSERT_EQ(heads.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(heads[i].task, expected[i]->record.ticket) << "at " << i;
      if (IsLc(*expected[i])) continue;
      HeadView view;
      ViewBeTask(*flow_, *expected[i], 0, view);  // no LC app states a bound
      ASSERT_TRUE(heads[i] == view) << "ticket " << view.task.value;
      kept_ += expected[i]->queue->view_is_current ? 1 : 0;
      alone_ += view.runs_alone ? 1 : 0;
    }
  }

  Random random_;
  std::unique_ptr<Flow> flow_;
  std::vector<KernelId> kernels_;
  KernelId graph_;
  std::vector<App*> empty_;  // without queues
  std::vector<Queue*> queues_;
  std::vector<TicketId> tickets_;
  int kept_ = 0;
  int alone_ = 0;
};

TEST_P(HeadViewsTest, KeptHeadsAreThoseThatAreBuiltFromNothing) {
  for (int step = 0; step < kSteps && !HasFatalFailure(); ++step) {
    const int what = Draw(20);
    if (what < 11) {
      Submit();
    } else if (what < 13) {
      Cancel();
    } else if (what == 13 && Draw(10) == 0) {
      AddApp(Draw(2) == 0 ? AppClass::kLatencyCritical : AppClass::kBestEffort);
    } else if (what == 14 && Draw(10) == 0) {
      ReleaseApp();
    } else if (what < 17) {
      flow_->device->AdvanceTo(
          std::min(flow_->device->NextEventNs(), flow_->device->NowNs() + Draw(200) * kUs));
    }
    Tick();
  }
  EXPECT_GT(kept_, kSteps / 4);
  EXPECT_GT(alone_, 0);
}

INSTANTIATE_TEST_SUITE_P(Seeds, HeadViewsTest, ::testing::Range(0, kSeeds));

}  // namespace
}  // namespace gpushare::core
