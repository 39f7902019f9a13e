// Threads that submit one graph while its app's route changes between whole and in pieces, on the
// null device: whatever the threads meet, nothing comes between the pieces of a query.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "src/core/base/mutex.h"
#include "src/core/flow/scheduler.h"
#include "src/core/log/events.h"
#include "src/core/seams/ordinary_form.h"
#include "src/models/online/online_model.h"
#include "src/null/null_device.h"
#include "tests/core/flow/cut_network.h"
#include "tests/core/forwarding_device.h"
#include "tests/core/plan_with.h"

namespace gpushare::core {
namespace {

constexpr int kThreads = 2;
constexpr int kQueriesOfThread = 2000;

// The kernels in the order of their launches, from whichever thread.
class ListingDevice final : public ForwardingDevice {
 public:
  ListingDevice(std::unique_ptr<Device> inner, std::vector<KernelId>& launched)
      : ForwardingDevice(std::move(inner)), launched_(launched) {}
  absl::Status Launch(const LaunchRequest& request) override {
    {
      const MutexLock lock(&mutex_);
      launched_.push_back(request.parts[0].work.kernel->id);
    }
    return ForwardingDevice::Launch(request);
  }

 private:
  Mutex mutex_;
  std::vector<KernelId>& launched_;
};

class CountingSink final : public EventSink {
 public:
  void Append(const EventRecord& record) override {
    const bool is_it = static_cast<EventType>(record.type) == EventType::kFastPathLaunched;
    fast_path.fetch_add(is_it ? 1 : 0);
  }
  std::atomic<int64_t> fast_path{0};
};

class GraphPiecesThreadsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto device = std::make_unique<ListingDevice>(null::MakeNullDevice(), launched_);
    auto model = models::MakeOnlineModel(device->capabilities().profile);
    SchedulerOptions options;
    options.places = PlacesMode::kEager;
    options.events = &events_;
    auto policy = std::make_unique<PlanWith>([this](const Snapshot& snapshot, Plan& plan) {
      for (LcRoute& route : plan.routes) route.cuts_graphs = cuts_.load();
      for (const HeadView& head : snapshot.heads) {
        PlannedLaunch launch;
        launch.task = head.task;
        launch.form = OrdinaryForm(head.kind);
        launch.lane_class = LaneClass::kLc;
        plan.launches.TryAdd(launch);
      }
    });
    scheduler_ =
        Scheduler::Create(options, std::move(device), std::move(model), std::move(policy)).value();
    const KernelId gemm = AddKernel("gemm");
    ASSERT_TRUE(scheduler_->RegisterFusedKernel(FusedPair(gemm, AddKernel("stream"))).ok());
    network_ = scheduler_->RegisterKernel(CutNetwork({"", "gemm", "", "gemm", ""})).value();
    ASSERT_EQ(Pieces().size(), 5);
  }
  void TearDown() override { scheduler_ = nullptr; }

  KernelId AddKernel(const char* name) {
    KernelDesc kernel;
    kernel.name = name;
    kernel.evictable = true;
    kernel.solo_hint_ns = 100'000;
    return scheduler_->RegisterKernel(kernel).value();
  }
  const std::vector<GraphPiece>& Pieces() const {
    return scheduler_->FindKernel(network_)->graph()->pieces;
  }
  QueueId AddQueue(const char* name) {
    const AppOptions options = {
        .name = name, .app_class = AppClass::kLatencyCritical, .tasks_max = 1024};
    return scheduler_->CreateQueue(scheduler_->CreateApp(options).value()).value();
  }
  void SubmitAll(QueueId queue) {
    TaskSpec spec;
    spec.queue = queue;
    spec.kernel = network_;
    spec.work.kind = TaskKind::kGraph;
    for (int i = 0; i < kQueriesOfThread; ++i) {
      // Now and then the queue runs empty, and the fast path is open.
      spec.detached = i % 16 != 0;
      absl::StatusOr<TicketId> ticket = scheduler_->SubmitLc(spec);
      for (; absl::IsResourceExhausted(ticket.status()); ticket = scheduler_->SubmitLc(spec)) {
        std::this_thread::yield();
      }
      ASSERT_TRUE(ticket.ok()) << ticket.status();
      ++queries_;
      if (!spec.detached) WaitFor(*ticket);
    }
  }
  void WaitFor(TicketId ticket) {
    EXPECT_TRUE(scheduler_->Wait(ticket, Soon()).ok());
    EXPECT_TRUE(scheduler_->ReleaseTicket(ticket).ok());
  }
  TimeNs Soon() const { return scheduler_->NowNs() + int64_t{60} * 1'000'000'000; }
  // Until one is launched by its submitter, if none was.
  void SubmitWhole(QueueId queue) {
    cuts_.store(false);
    scheduler_->ChangeModel([] {});
    TaskSpec spec;
    spec.queue = queue;
    spec.kernel = network_;
    spec.work.kind = TaskKind::kGraph;
    for (int i = 0; i < 1000 && events_.fast_path.load() == 0; ++i) {
      const absl::StatusOr<TicketId> ticket = scheduler_->SubmitLc(spec);
      ASSERT_TRUE(ticket.ok()) << ticket.status();
      ++queries_;
      WaitFor(*ticket);
    }
  }
  void Run(const std::array<QueueId, kThreads>& queues) {
    ASSERT_TRUE(scheduler_->StartThread().ok());
    std::atomic<bool> submitting{true};
    std::thread toggles([&] {
      while (submitting.load()) {
        cuts_.store(!cuts_.load());
        scheduler_->ChangeModel([] {});  // asks for a plan
        std::this_thread::yield();
      }
    });
    std::vector<std::thread> threads;
    threads.reserve(kThreads);
    for (const QueueId queue : queues) threads.emplace_back([this, queue] { SubmitAll(queue); });
    for (std::thread& thread : threads) thread.join();
    submitting.store(false);
    toggles.join();
    ASSERT_TRUE(scheduler_->Drain(Soon()).ok());
    SubmitWhole(queues[0]);
    ASSERT_TRUE(scheduler_->Drain(Soon()).ok());
    scheduler_->StopThread();
    const absl::Status status = scheduler_->CheckInvariants();
    ASSERT_TRUE(status.ok()) << status;
    ExpectPiecesTogether();
  }
  // And all queries are there.
  void ExpectPiecesTogether() const {
    int64_t whole = 0;
    int64_t cut = 0;
    for (size_t i = 0; i < launched_.size();) {
      if (launched_[i] == network_) {
        ++whole;
        ++i;
        continue;
      }
      ++cut;
      for (const GraphPiece& piece : Pieces()) {
        ASSERT_LT(i, launched_.size());
        ASSERT_EQ(launched_[i].value, piece.kernel.value) << "launch " << i;
        ++i;
      }
    }
    EXPECT_EQ(whole + cut, queries_.load());
    EXPECT_GT(cut, 0);
    EXPECT_LE(events_.fast_path.load(), whole) << "no piece is launched by its submitter";
    EXPECT_GT(events_.fast_path.load(), 0);
    EXPECT_EQ(events_.fast_path.load(), scheduler_->Stats().fast_path_launches);
  }

  std::atomic<bool> cuts_{false};
  std::atomic<int64_t> queries_{0};
  CountingSink events_;
  std::vector<KernelId> launched_;
  KernelId network_;
  std::unique_ptr<Scheduler> scheduler_;
};

TEST_F(GraphPiecesThreadsTest, TwoThreadsSubmitToOneQueue) {
  const QueueId queue = AddQueue("service");
  Run({queue, queue});
}

// One graph has one set of buffers, whoever submits it.
TEST_F(GraphPiecesThreadsTest, TwoThreadsSubmitToQueuesOfTwoApps) {
  Run({AddQueue("service"), AddQueue("another service")});
}

}  // namespace
}  // namespace gpushare::core
