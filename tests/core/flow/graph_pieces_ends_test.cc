// How a query in pieces begins and ends: all of it or nothing is accepted, the pieces complete in
// their order whichever ends first, and its one ticket is that of the whole graph. On the simulated
// device, under a policy that cuts every graph and launches all that is ready.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/base/limits.h"
#include "src/core/flow/scheduler.h"
#include "src/core/log/events.h"
#include "src/core/seams/ordinary_form.h"
#include "tests/core/forwarding_device.h"
#include "tests/core/plan_with.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::core {
namespace {

constexpr int64_t kGemmNs = 500 * kUs;
constexpr int64_t kOtherNs = 100 * kUs;
constexpr int kGemms = 4;
constexpr int kPieces = 2 * kGemms + 1;  // each GEMM, and what is before, between and behind them

class CollectingSink final : public EventSink {
 public:
  void Append(const EventRecord& record) override { records.push_back(record); }
  std::vector<EventRecord> records;
};

// A device that hangs, fails and is lost as the test says.
class OrderedDevice final : public ForwardingDevice {
 public:
  struct Orders {
    KernelId refused;  // its launches are
    KernelId hangs;    // the end of its launches is never reported
    bool lose = false;
    absl::Status cut;  // what CutAtNodes answers, unless it is OK
    int throw_at = 0;  // this call of capabilities() finds no memory; 0: none does
    int busy_at = 0;   // this call of PrepareKernel cannot wait for other work; 0: each can
    std::vector<KernelId> released;
  };
  OrderedDevice(std::unique_ptr<Device> inner, Orders& orders)
      : ForwardingDevice(std::move(inner)), orders_(orders) {}

  const DeviceCapabilities& capabilities() const override {
    if (orders_.throw_at > 0 && --orders_.throw_at == 0) throw std::bad_alloc();
    return ForwardingDevice::capabilities();
  }
  absl::Status PrepareKernel(const KernelDesc& kernel) override {
    if (orders_.busy_at > 0 && --orders_.busy_at == 0) {
      return absl::DeadlineExceededError("other work holds it");
    }
    return ForwardingDevice::PrepareKernel(kernel);
  }
  void ReleaseKernel(KernelId kernel) override {
    orders_.released.push_back(kernel);
    ForwardingDevice::ReleaseKernel(kernel);
  }
  absl::StatusOr<std::vector<NodePiece>> CutAtNodes(const KernelDesc& graph,
                                                    absl::Span<const NodeKernel> kernels) override {
    if (!orders_.cut.ok()) return orders_.cut;
    return ForwardingDevice::CutAtNodes(graph, kernels);
  }
  absl::Status Launch(const LaunchRequest& request) override {
    const KernelId kernel = request.parts[0].work.kernel->id;
    if (kernel == orders_.refused) return absl::InvalidArgumentError("refused");
    if (kernel == orders_.hangs) hanging_.push_back(request.parts[0].launch);
    return ForwardingDevice::Launch(request);
  }
  size_t PollCompletions(absl::Span<DeviceCompletion> out) override {
    const size_t count = ForwardingDevice::PollCompletions(out);
    if (orders_.lose && count > 0) {
      out[0].outcome = Outcome::kDeviceLost;
      return 1;
    }
    const auto begin = out.begin();
    const auto end = std::remove_if(
        begin, begin + static_cast<ptrdiff_t>(count), [this](const DeviceCompletion& completion) {
          return std::find(hanging_.begin(), hanging_.end(), completion.launch) != hanging_.end();
        });
    return static_cast<size_t>(end - begin);
  }

 private:
  Orders& orders_;
  std::vector<LaunchId> hanging_;
};

class GraphPiecesEndsTest : public SimulatedSchedulerTest {
 protected:
  using SimulatedSchedulerTest::Wrap;
  std::unique_ptr<Device> Wrap(std::unique_ptr<Device> device) override {
    return std::make_unique<OrderedDevice>(std::move(device), orders_);
  }

  // `name`: of the graph.
  void Open(int32_t tasks_max = 256, const std::string& name = "network") {
    SchedulerOptions options;
    options.events = &events_;
    options.hang_floor_ns = 10 * kMs;
    auto policy = std::make_unique<PlanWith>([this](const Snapshot& snapshot, Plan& plan) {
      for (LcRoute& route : plan.routes) {
        route.fast_path = fast_path_;
        route.cuts_graphs = cuts_;
      }
      for (const HeadView& head : snapshot.heads) {
        if (!launches_) return;
        PlannedLaunch launch;
        launch.task = head.task;
        launch.count = std::min(head.ready_count, pieces_at_once_);
        launch.form = OrdinaryForm(head.kind);
        launch.lane_class = LaneClass::kLc;
        plan.launches.TryAdd(launch);
      }
    });
    ASSERT_NO_FATAL_FAILURE(StartScheduler(std::move(policy), options));
    gemm_ = *scheduler_->RegisterKernel(EvictableKernel("gemm", 20 * kUs));
    const KernelId stream = *scheduler_->RegisterKernel(EvictableKernel("stream", 20 * kUs));
    FusedKernelDesc fused;
    fused.name = "pair";
    fused.tensor_part = gemm_;
    fused.cuda_part = stream;
    fused.opportune_load_ratio = 0.8;
    fused.opportune_duration_ratio = 1.1;
    ASSERT_TRUE(scheduler_->RegisterFusedKernel(fused).ok());
    network_ = *scheduler_->RegisterKernel(Network(name));
    lc_app_ = *scheduler_->CreateApp(
        {.name = "service", .app_class = AppClass::kLatencyCritical, .tasks_max = tasks_max});
    lc_ = *scheduler_->CreateQueue(lc_app_);
    scheduler_->Tick();  // publishes the route
  }
  KernelDesc Network(const std::string& name) const {
    KernelDesc network;
    network.name = name;
    network.code = GraphCode{.segment_ns = -1, .measure_nodes = true};
    network.simulation.present = true;
    std::vector<GraphNode>& nodes = network.simulation.nodes;
    const GraphNode other = {.duration_ns = kOtherNs, .blocks = sms_, .demand = {}};
    nodes.push_back(other);
    for (int i = 0; i < kGemms; ++i) {
      nodes.push_back(
          {.duration_ns = kGemmNs, .blocks = 25 * 8 * sms_, .demand = {}, .kernel = "gemm"});
      nodes.push_back(other);
    }
    return network;
  }
  const std::vector<GraphPiece>& Pieces() const {
    return scheduler_->FindKernel(network_)->graph()->pieces;
  }
  absl::StatusOr<TicketId> TrySubmit(absl::Span<const TicketId> waits = {}, QueueId queue = {}) {
    TaskSpec spec;
    spec.queue = queue ? queue : lc_;
    spec.kernel = network_;
    spec.work.kind = TaskKind::kGraph;
    spec.wait_tickets = waits;
    spec.callback = [](void* user, const CompletionRecord& record) {
      static_cast<std::vector<CompletionRecord>*>(user)->push_back(record);
    };
    spec.callback_user = &done_;
    return scheduler_->SubmitLc(spec);
  }
  TicketId Submit(absl::Span<const TicketId> waits = {}) {
    const absl::StatusOr<TicketId> ticket = TrySubmit(waits);
    EXPECT_TRUE(ticket.ok()) << ticket.status();
    return ticket.value_or(TicketId{});
  }
  TicketId SubmitTo(QueueId queue) {
    const absl::StatusOr<TicketId> ticket = TrySubmit({}, queue);
    EXPECT_TRUE(ticket.ok()) << ticket.status();
    return ticket.value_or(TicketId{});
  }
  // A queue of the app, or of another one, that submits the same graph.
  QueueId AnotherQueue(bool of_the_app) {
    if (of_the_app) return *scheduler_->CreateQueue(lc_app_);
    return AddQueue({.name = "another service", .app_class = AppClass::kLatencyCritical});
  }
  // No piece of a query was on the device, or was to come, while the whole graph was.
  void ExpectNoPieceBeside(TicketId whole) const {
    const CompletionRecord alone = *scheduler_->Record(whole);
    ASSERT_EQ(alone.launches, 1);
    for (const CompletionRecord& record : done_) {
      if (record.launches < 2) continue;
      EXPECT_TRUE(record.end_ns <= alone.start_ns || alone.end_ns <= record.start_ns)
          << "pieces from " << record.start_ns << " to " << record.end_ns
          << ", the whole graph from " << alone.start_ns << " to " << alone.end_ns;
    }
  }
  void Pass(int64_t ns) {
    const TimeNs end = scheduler_->NowNs() + ns;
    do {
      ASSERT_TRUE(scheduler_->PollUntil(std::min(end, scheduler_->NowNs() + 20 * kUs)).ok());
      const absl::Status status = scheduler_->CheckInvariants();
      ASSERT_TRUE(status.ok()) << status;
    } while (scheduler_->NowNs() < end);
  }
  // From the next query on.
  void SetCuts(bool cuts) {
    cuts_ = cuts;
    scheduler_->ChangeModel([] {});  // asks for a plan
    scheduler_->Tick();
  }
  // Everything of the app is complete, and nothing of it is held any more.
  void ExpectNothingLeft() {
    EXPECT_EQ(scheduler_->Stats().tasks_pending, 0);
    EXPECT_EQ(scheduler_->StatsOf(lc_app_)->queue_depth, 0);
    EXPECT_EQ(scheduler_->StatsOf(lc_app_)->queries_open, 0);
    for (const CompletionRecord& record : done_) {
      EXPECT_TRUE(scheduler_->ReleaseTicket(record.ticket).ok());
    }
    EXPECT_TRUE(scheduler_->ReleaseQueue(lc_).ok());
    const absl::Status released = scheduler_->ReleaseApp(lc_app_);
    EXPECT_TRUE(released.ok()) << released;
    const std::vector<GraphPiece> pieces = Pieces();
    orders_.released.clear();
    ReleaseNetwork();
    EXPECT_EQ(TimesReleased(network_), 1);
    for (const GraphPiece& piece : pieces) {
      if (piece.is_node) continue;
      EXPECT_EQ(TimesReleased(piece.kernel), 1);
    }
  }
  // And what is idle of it is gone: the next registration does that.
  void ReleaseNetwork() {
    scheduler_->RetireKernel(network_);
    ASSERT_TRUE(scheduler_->RegisterKernel(EvictableKernel("another", 20 * kUs)).ok());
  }
  int64_t TimesReleased(KernelId kernel) const {
    return std::count(orders_.released.begin(), orders_.released.end(), kernel);
  }
  // A query that is cut and ends as it should.
  void ExpectAnotherIsCut() {
    const size_t before = done_.size();
    Submit();
    Pass(10 * kMs);
    ASSERT_EQ(done_.size(), before + 1);
    EXPECT_EQ(done_.back().verdict, Verdict::kOk);
    EXPECT_EQ(done_.back().launches, kPieces);
  }
  // Launches of the app that were on the device when the ticket was complete.
  int LaunchesLeft(TicketId ticket) const {
    int left = 0;
    for (const EventRecord& record : events_.records) {
      if (record.app != lc_app_.value) continue;
      const auto type = static_cast<EventType>(record.type);
      left += type == EventType::kLaunched ? 1 : type == EventType::kPartDone ? -1 : 0;
      if (type == EventType::kCompleted && record.id == ticket.value) return left;
    }
    return -1;
  }
  std::optional<Completed> CompletedEvent(TicketId ticket) const {
    for (const EventRecord& record : events_.records) {
      const bool is_it =
          static_cast<EventType>(record.type) == EventType::kCompleted && record.id == ticket.value;
      if (is_it) return Decode<Completed>(record);
    }
    return std::nullopt;
  }
  // Tickets of the app in the order of these events.
  std::vector<uint64_t> Order(EventType of) const {
    std::vector<uint64_t> tickets;
    for (const EventRecord& record : events_.records) {
      if (record.app == lc_app_.value && static_cast<EventType>(record.type) == of) {
        tickets.push_back(record.id);
      }
    }
    return tickets;
  }
  void ExpectPiecesInOrder() const {
    const std::vector<uint64_t> submitted = Order(EventType::kSubmitted);
    const std::vector<uint64_t> completed = Order(EventType::kCompleted);
    ASSERT_EQ(completed.size(), submitted.size());
    const auto place = [&](size_t piece) {
      return std::find(completed.begin(), completed.end(), submitted[piece]) - completed.begin();
    };
    for (size_t i = 0; i + 1 < submitted.size(); ++i) {
      if ((i + 1) % kPieces == 0) continue;  // the next one is another query's
      EXPECT_LT(place(i), place(i + 1)) << "query " << i / kPieces << ", piece " << i % kPieces;
    }
  }

  CollectingSink events_;
  OrderedDevice::Orders orders_;
  bool cuts_ = true;
  bool fast_path_ = false;
  bool launches_ = true;
  int32_t pieces_at_once_ = kMaxPieces;
  KernelId gemm_, network_;
  AppId lc_app_;
  QueueId lc_;
  std::vector<CompletionRecord> done_;
};

// --- all of it or nothing is accepted ---

// Tickets that are not released hold all slots but a few, so that some pieces find one.
TEST_F(GraphPiecesEndsTest, WithoutSlotsForAllPiecesTheGraphRunsWhole) {
  constexpr int32_t kSlots = 64;
  ASSERT_NO_FATAL_FAILURE(Open(kSlots));
  std::vector<TicketId> held;
  SetCuts(false);
  for (int i = 0; i < kSlots - 4; ++i) {
    held.push_back(Submit());
    Pass(kMs * 4);
  }
  ASSERT_EQ(done_.size(), held.size());
  SetCuts(true);
  const std::vector<TicketId> waits = {held[0], held[1]};
  for (int i = 0; i < 3; ++i) {
    done_.clear();
    const TicketId ticket = Submit(waits);
    Pass(10 * kMs);
    ASSERT_EQ(done_.size(), 1);
    EXPECT_EQ(done_[0].launches, 1) << "whole";
    EXPECT_EQ(done_[0].verdict, Verdict::kOk);
    EXPECT_TRUE(scheduler_->ReleaseTicket(ticket).ok());
  }
  for (const TicketId ticket : held) EXPECT_TRUE(scheduler_->ReleaseTicket(ticket).ok());
  done_.clear();
  ASSERT_NO_FATAL_FAILURE(ExpectAnotherIsCut());
  ExpectNothingLeft();
}

TEST_F(GraphPiecesEndsTest, WithoutAnySlotTheSubmitIsRefusedAndLeavesNothing) {
  constexpr int32_t kSlots = 32;
  ASSERT_NO_FATAL_FAILURE(Open(kSlots));
  std::vector<TicketId> held;
  SetCuts(false);
  for (int i = 0; i < kSlots; ++i) {
    held.push_back(Submit());
    Pass(kMs * 4);
  }
  SetCuts(true);
  EXPECT_EQ(TrySubmit({held.data(), 2}).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(scheduler_->StatsOf(lc_app_)->rejected, 1);
  for (const TicketId ticket : held) EXPECT_TRUE(scheduler_->ReleaseTicket(ticket).ok());
  done_.clear();
  ASSERT_NO_FATAL_FAILURE(ExpectAnotherIsCut());
  ExpectNothingLeft();
}

TEST_F(GraphPiecesEndsTest, AnAppWithManyOpenQueriesIsNotCut) {
  constexpr int32_t kSlots = 32;
  ASSERT_NO_FATAL_FAILURE(Open(kSlots));
  std::vector<QueryId> open;
  open.reserve(kSlots);
  for (int i = 0; i < kSlots; ++i) open.push_back(*scheduler_->BeginQuery(lc_, 0));
  Submit();
  Pass(10 * kMs);
  ASSERT_EQ(done_.size(), 1);
  EXPECT_EQ(done_[0].launches, 1);
  for (const QueryId query : open) EXPECT_TRUE(scheduler_->EndQuery(query).ok());
  Pass(kMs);
  ASSERT_NO_FATAL_FAILURE(ExpectAnotherIsCut());
  ExpectNothingLeft();
}

// One word of the ring brings all pieces, and a Tick takes hundreds of words.
TEST_F(GraphPiecesEndsTest, ABurstOfQueriesBringsMoreTasksThanWords) {
  ASSERT_NO_FATAL_FAILURE(Open(8192));
  constexpr int kBurst = 200;
  for (int i = 0; i < kBurst; ++i) Submit();
  Pass(kBurst * 3 * kMs);
  ASSERT_EQ(done_.size(), kBurst);
  for (const CompletionRecord& record : done_) {
    EXPECT_EQ(record.verdict, Verdict::kOk);
    EXPECT_EQ(record.launches, kPieces);
  }
  ExpectNothingLeft();
}

// --- two queues submit one graph, which has one set of buffers ---

TEST_F(GraphPiecesEndsTest, AQueryOfAnotherQueueWaitsForThePiecesInFrontOfIt) {
  for (const bool of_the_app : {true, false}) {
    for (const bool fast_path : {false, true}) {
      for (const int32_t at_once : {1, kMaxPieces}) {
        SCOPED_TRACE(testing::Message() << of_the_app << fast_path << at_once);
        scheduler_ = nullptr;
        done_.clear();
        fast_path_ = fast_path;
        ASSERT_NO_FATAL_FAILURE(Open());
        pieces_at_once_ = at_once;
        const QueueId other = AnotherQueue(of_the_app);
        SetCuts(true);  // publishes the routes of both apps
        for (const int64_t after_ns : {int64_t{0}, 300 * kUs, 1900 * kUs}) {
          done_.clear();
          const TicketId cut = Submit();
          Pass(after_ns);
          const TicketId whole = SubmitTo(other);
          const TicketId behind = Submit();
          Pass(20 * kMs);
          ASSERT_EQ(done_.size(), 3) << after_ns;
          EXPECT_EQ(scheduler_->Record(cut)->launches, kPieces);
          EXPECT_EQ(scheduler_->Record(behind)->launches, 1) << "the other query is open";
          ExpectNoPieceBeside(whole);
          for (const CompletionRecord& record : done_) EXPECT_EQ(record.verdict, Verdict::kOk);
        }
        done_.clear();
        ASSERT_NO_FATAL_FAILURE(ExpectAnotherIsCut());
      }
    }
  }
}

TEST_F(GraphPiecesEndsTest, WhileAnotherQueueRunsTheGraphNoQueryIsCut) {
  ASSERT_NO_FATAL_FAILURE(Open());
  const QueueId other = AnotherQueue(false);
  SetCuts(false);
  const TicketId whole = SubmitTo(other);
  Pass(100 * kUs);
  SetCuts(true);
  const TicketId beside = Submit();
  Pass(10 * kMs);
  ASSERT_EQ(done_.size(), 2);
  EXPECT_EQ(scheduler_->Record(whole)->launches, 1);
  EXPECT_EQ(scheduler_->Record(beside)->launches, 1);
  done_.clear();
  SubmitTo(other);
  Pass(10 * kMs);
  ASSERT_EQ(done_.size(), 1);
  EXPECT_EQ(done_[0].launches, kPieces) << "either queue may be cut";
}

// Whatever ends the pieces, the other queue's query goes on.
TEST_F(GraphPiecesEndsTest, AQueryOfAnotherQueueGoesOnAfterPiecesThatFail) {
  for (const bool hangs : {false, true}) {
    SCOPED_TRACE(hangs);
    scheduler_ = nullptr;
    done_.clear();
    orders_ = {};
    ASSERT_NO_FATAL_FAILURE(Open());
    const QueueId other = AnotherQueue(false);
    SetCuts(true);
    (hangs ? orders_.hangs : orders_.refused) = Pieces()[hangs ? 3 : 2].kernel;
    const TicketId cut = Submit();
    const TicketId whole = SubmitTo(other);
    Pass(200 * kMs);
    ASSERT_EQ(done_.size(), 2);
    EXPECT_EQ(scheduler_->Record(cut)->verdict, hangs ? Verdict::kTimedOut : Verdict::kFailed);
    EXPECT_EQ(scheduler_->Record(whole)->verdict, Verdict::kOk);
    EXPECT_EQ(scheduler_->Record(whole)->launches, 1);
    if (!hangs) continue;
    // The hung node may still use the graph's buffers, and nothing orders it with pieces.
    orders_.hangs = KernelId();
    done_.clear();
    Submit();
    Pass(20 * kMs);
    ASSERT_EQ(done_.size(), 1);
    EXPECT_EQ(done_[0].launches, 1);
  }
}

// Nothing orders the pieces with a launch that was given up, even of their own queue.
TEST_F(GraphPiecesEndsTest, AfterAHungLaunchOfTheGraphNothingIsCut) {
  ASSERT_NO_FATAL_FAILURE(Open());
  SetCuts(false);
  orders_.hangs = network_;
  Submit();
  Pass(200 * kMs);
  ASSERT_EQ(done_.size(), 1);
  EXPECT_EQ(done_[0].verdict, Verdict::kTimedOut);
  orders_.hangs = KernelId();
  SetCuts(true);
  Submit();
  Pass(20 * kMs);
  ASSERT_EQ(done_.size(), 2);
  EXPECT_EQ(done_[1].launches, 1);
}

// --- quiesce ---

// A query is one submitted graph: quiesce must not leave its buffers half done.
TEST_F(GraphPiecesEndsTest, QuiesceWaitsForAQueryThatHasBegun) {
  ASSERT_NO_FATAL_FAILURE(Open());
  pieces_at_once_ = 1;
  const TicketId begun = Submit();
  const TicketId waits = Submit();
  Pass(300 * kUs);
  ASSERT_TRUE(done_.empty());
  const absl::Status quiet = scheduler_->Quiesce(scheduler_->NowNs() + 10 * kMs);
  ASSERT_TRUE(quiet.ok()) << quiet;
  ASSERT_EQ(done_.size(), 1);
  EXPECT_EQ(done_[0].ticket.value, begun.value);
  EXPECT_EQ(done_[0].verdict, Verdict::kOk);
  EXPECT_EQ(done_[0].launches, kPieces);
  Pass(10 * kMs);
  EXPECT_FALSE(*scheduler_->IsComplete(waits)) << "nothing of it has begun";
  ASSERT_TRUE(scheduler_->Resume().ok());
  Pass(10 * kMs);
  EXPECT_EQ(scheduler_->Record(waits)->verdict, Verdict::kOk);
  EXPECT_EQ(scheduler_->Record(waits)->launches, kPieces);
  ExpectNothingLeft();
}

// --- the record and the event tell of the whole graph ---

TEST_F(GraphPiecesEndsTest, TheEventSaysWhatTheRecordSays) {
  ASSERT_NO_FATAL_FAILURE(Open());
  const TicketId ticket = Submit();
  Pass(10 * kMs);
  ASSERT_EQ(done_.size(), 1);
  const CompletionRecord& record = done_[0];
  const std::optional<Completed> event = CompletedEvent(ticket);
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->task.kernel.value, network_.value);
  EXPECT_EQ(event->predicted_ns, record.predicted_ns);
  EXPECT_EQ(event->measured_ns, record.measured_ns);
  EXPECT_EQ(event->verdict, record.verdict);
  EXPECT_GT(record.measured_ns, kGemms * kGemmNs);
  EXPECT_GE(record.end_ns - record.start_ns, kGemms * kGemmNs);
}

// --- failures ---

TEST_F(GraphPiecesEndsTest, BehindAPieceThatFailsNothingIsLaunched) {
  ASSERT_NO_FATAL_FAILURE(Open());
  pieces_at_once_ = 1;
  orders_.refused = Pieces()[2].kernel;
  const TicketId ticket = Submit();
  Pass(10 * kMs);
  ASSERT_EQ(done_.size(), 1);
  EXPECT_EQ(done_[0].verdict, Verdict::kFailed);
  EXPECT_EQ(CompletedEvent(ticket)->verdict, Verdict::kFailed);
  EXPECT_EQ(done_[0].launches, 2) << "those before it";
  orders_.refused = KernelId();
  ASSERT_NO_FATAL_FAILURE(ExpectAnotherIsCut());
  ExpectNothingLeft();
}

TEST_F(GraphPiecesEndsTest, AfterAFailedDependencyNoPieceRuns) {
  ASSERT_NO_FATAL_FAILURE(Open());
  orders_.refused = Pieces()[0].kernel;
  const TicketId fails = Submit();
  const TicketId waits = Submit({&fails, 1});
  Pass(kMs);
  ASSERT_EQ(done_.size(), 2);
  EXPECT_EQ(done_[1].ticket.value, waits.value);
  EXPECT_EQ(done_[1].verdict, Verdict::kFailed);
  EXPECT_EQ(done_[1].failed_dependency.value, fails.value);
  EXPECT_EQ(done_[1].failed_dependency_verdict, Verdict::kFailed);
  EXPECT_EQ(done_[1].launches, 0);
  orders_.refused = KernelId();
  ASSERT_NO_FATAL_FAILURE(ExpectAnotherIsCut());
  ExpectNothingLeft();
}

// --- cancel ---

TEST_F(GraphPiecesEndsTest, ACancelledQueryThatWaitsDoesNotRun) {
  ASSERT_NO_FATAL_FAILURE(Open());
  launches_ = false;
  const TicketId submitted = Submit();
  ASSERT_TRUE(scheduler_->Cancel(submitted).ok());  // not even admitted
  const TicketId first = Submit();
  const TicketId second = Submit();
  Pass(100 * kUs);
  ASSERT_TRUE(scheduler_->Cancel(second).ok());
  EXPECT_TRUE(scheduler_->CheckInvariants().ok());
  launches_ = true;
  Pass(10 * kMs);
  ASSERT_EQ(done_.size(), 3);
  for (const TicketId ticket : {submitted, second}) {
    const CompletionRecord record = *scheduler_->Record(ticket);
    EXPECT_EQ(record.verdict, Verdict::kCancelled);
    EXPECT_EQ(record.launches, 0);
  }
  EXPECT_EQ(scheduler_->Record(first)->verdict, Verdict::kOk);
  ExpectNothingLeft();
}

// The ticket stands for buffers that the pieces on the device still use.
TEST_F(GraphPiecesEndsTest, ACancelledTicketIsCompleteWhenNoPieceIsOnTheDevice) {
  int cancelled = 0;
  int refused = 0;
  ASSERT_NO_FATAL_FAILURE(Open());
  for (int64_t after_ns = 0; after_ns < 3 * kMs; after_ns += 70 * kUs) {
    pieces_at_once_ = after_ns % (140 * kUs) == 0 ? 1 : kMaxPieces;
    done_.clear();
    const TicketId ticket = Submit();
    Pass(after_ns);
    const bool was_complete = scheduler_->IsComplete(ticket).value();
    const absl::Status status = scheduler_->Cancel(ticket);
    EXPECT_TRUE(scheduler_->CheckInvariants().ok());
    if (status.ok()) {
      EXPECT_EQ(scheduler_->Cancel(ticket).code(), absl::StatusCode::kFailedPrecondition);
    }
    Pass(10 * kMs);
    ASSERT_EQ(done_.size(), 1) << after_ns;
    EXPECT_EQ(LaunchesLeft(ticket), 0) << after_ns;
    if (!status.ok()) {
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_EQ(done_[0].verdict, Verdict::kOk) << after_ns;
      ++refused;
    } else {
      EXPECT_FALSE(was_complete);
      EXPECT_EQ(done_[0].verdict, Verdict::kCancelled) << after_ns;
      EXPECT_LT(done_[0].launches, kPieces) << after_ns;
      ++cancelled;
    }
    EXPECT_TRUE(scheduler_->ReleaseTicket(ticket).ok());
  }
  EXPECT_GT(cancelled, 5);
  EXPECT_GT(refused, 5);
  done_.clear();
  ExpectNothingLeft();
}

// --- a lost device, a hung lane, a shutdown ---

TEST_F(GraphPiecesEndsTest, PiecesOfALostDeviceCompleteInTheirOrder) {
  ASSERT_NO_FATAL_FAILURE(Open());
  for (int i = 0; i < 3; ++i) Submit();
  Pass(kMs);  // all of them are on the device
  orders_.lose = true;
  Pass(10 * kMs);
  EXPECT_TRUE(scheduler_->Stats().device_lost);
  ASSERT_EQ(done_.size(), 3);
  for (const CompletionRecord& record : done_) EXPECT_EQ(record.verdict, Verdict::kDeviceLost);
  ExpectPiecesInOrder();
  EXPECT_EQ(scheduler_->Stats().tasks_pending, 0);
}

TEST_F(GraphPiecesEndsTest, PiecesThatAShutdownGivesUpCompleteInTheirOrder) {
  ASSERT_NO_FATAL_FAILURE(Open());
  orders_.hangs = Pieces()[0].kernel;
  Submit();
  Pass(kMs);
  EXPECT_TRUE(done_.empty());
  EXPECT_FALSE(scheduler_->Shutdown(scheduler_->NowNs() + 5 * kMs).ok());
  ASSERT_EQ(done_.size(), 1);
  EXPECT_EQ(done_[0].verdict, Verdict::kTimedOut);
  ExpectPiecesInOrder();
}

// Of a hung launch only what it may still use stays: its part, and the graph, which may own the
// memory of the piece. The pieces behind it are on the device too, or wait.
TEST_F(GraphPiecesEndsTest, AHungPieceKeepsItselfAndNoOther) {
  for (const int32_t at_once : {1, kMaxPieces}) {
    for (const size_t hung : {size_t{2}, size_t{3}, size_t{kPieces - 1}}) {
      SCOPED_TRACE(testing::Message() << "piece " << hung << ", " << at_once << " at once");
      scheduler_ = nullptr;
      events_.records.clear();
      done_.clear();
      orders_ = {};
      ASSERT_NO_FATAL_FAILURE(Open());
      pieces_at_once_ = at_once;
      const std::vector<GraphPiece> pieces = Pieces();
      orders_.hangs = pieces[hung].kernel;
      const TicketId ticket = Submit();
      Pass(200 * kMs);
      ASSERT_EQ(done_.size(), 1);
      EXPECT_EQ(done_[0].verdict, Verdict::kTimedOut);
      EXPECT_TRUE(scheduler_->ReleaseTicket(ticket).ok());
      ReleaseNetwork();
      EXPECT_EQ(TimesReleased(network_), 0);
      for (size_t i = 0; i < pieces.size(); i += 2) {
        EXPECT_EQ(TimesReleased(pieces[i].kernel), i == hung ? 0 : 1) << i;
      }
    }
  }
}

// --- registration ---

TEST_F(GraphPiecesEndsTest, AGraphWithTheLongestNameIsCut) {
  ASSERT_NO_FATAL_FAILURE(Open(256, std::string(kMaxNameBytes - 1, 'n')));
  EXPECT_EQ(Pieces().size(), kPieces);
}

// The cut is optional: without memory for it the graph runs whole.
TEST_F(GraphPiecesEndsTest, WithoutMemoryARegistrationLeavesNoPart) {
  ASSERT_NO_FATAL_FAILURE(Open());
  const KernelId last = Pieces().back().kernel;
  int failed = 0;
  int whole = 0;
  for (int call = 1; call < 40; ++call) {
    orders_.throw_at = call;
    const absl::StatusOr<KernelId> graph = scheduler_->RegisterKernel(Network("another"));
    orders_.throw_at = 0;
    if (graph.ok()) {
      whole += scheduler_->FindKernel(*graph)->graph()->pieces.empty() ? 1 : 0;
      scheduler_->RetireKernel(*graph);
      continue;
    }
    EXPECT_EQ(graph.status().code(), absl::StatusCode::kResourceExhausted);
    ++failed;
  }
  EXPECT_GT(failed + whole, 2);
  EXPECT_GT(whole, 0);
  // Every one of them is gone: the graph and its parts are where the first ones were.
  const KernelId graph = *scheduler_->RegisterKernel(Network("another"));
  const std::vector<GraphPiece>& pieces = scheduler_->FindKernel(graph)->graph()->pieces;
  ASSERT_EQ(pieces.size(), kPieces);
  EXPECT_EQ(graph.value, last.value + 1);
  EXPECT_EQ(pieces.back().kernel.value, last.value + 1 + (kGemms + 1));
}

TEST_F(GraphPiecesEndsTest, AGraphThatCannotBeCutRunsWhole) {
  ASSERT_NO_FATAL_FAILURE(Open());
  for (const absl::Status& error :
       {absl::InternalError("no cut"), absl::FailedPreconditionError("no cut"),
        absl::ResourceExhaustedError("no cut")}) {
    orders_.cut = error;
    const absl::StatusOr<KernelId> graph = scheduler_->RegisterKernel(Network("another"));
    ASSERT_TRUE(graph.ok()) << graph.status();
    EXPECT_TRUE(scheduler_->FindKernel(*graph)->graph()->pieces.empty());
    scheduler_->RetireKernel(*graph);
  }
  orders_.cut = absl::OkStatus();
  for (const int part : {2, 3, 4}) {  // behind the graph itself
    orders_.busy_at = part;
    const absl::StatusOr<KernelId> graph = scheduler_->RegisterKernel(Network("another"));
    ASSERT_TRUE(graph.ok()) << graph.status();
    EXPECT_EQ(orders_.busy_at, 0);
    EXPECT_TRUE(scheduler_->FindKernel(*graph)->graph()->pieces.empty());
    scheduler_->RetireKernel(*graph);
  }
  // Its nodes still run.
  orders_.cut = absl::DeadlineExceededError("a node does not end");
  EXPECT_EQ(scheduler_->RegisterKernel(Network("another")).status(), orders_.cut);
}

TEST_F(GraphPiecesEndsTest, PartsLeaveSlotsForOtherKernels) {
  ASSERT_NO_FATAL_FAILURE(Open());
  size_t cut = 0;
  for (int i = 0; i < kMaxKernels / kPieces; ++i) {
    const KernelId graph = *scheduler_->RegisterKernel(Network("network " + std::to_string(i)));
    const bool has_pieces = !scheduler_->FindKernel(graph)->graph()->pieces.empty();
    if (has_pieces) {
      EXPECT_EQ(cut, i) << "none is cut behind one that is not";
      EXPECT_LE(graph.value + kGemms + 1, kMaxKernels - kKernelSlotsKept);
      ++cut;
    }
  }
  EXPECT_GT(cut, 50);
  EXPECT_LT(cut, kMaxKernels / kPieces);
}

}  // namespace
}  // namespace gpushare::core
