// An LC graph that is cut at kernel nodes, through the whole flow on the simulated device: what BE
// work gains by it, when a query is cut, and that the pieces stay one task to their caller.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/base/tuning.h"
#include "src/core/flow/scheduler.h"
#include "src/core/log/events.h"
#include "src/core/policies/registry.h"
#include "tests/core/forwarding_device.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::core {
namespace {

constexpr int64_t kBlockTaskNs = 20 * kUs;
constexpr int32_t kWorkersOfSm = 8;
constexpr int kLayers = 4;
constexpr int64_t kGemmNs = 500 * kUs;
constexpr int64_t kOtherNs = 40 * kUs;  // and 4 of these behind each GEMM
// Each GEMM, and what is before, between and behind them.
constexpr int kPieces = 2 * kLayers + 1;

class CollectingSink final : public EventSink {
 public:
  void Append(const EventRecord& record) override { records.push_back(record); }
  std::vector<EventRecord> records;
};

// Refuses the launches of one kernel.
class RefusingDevice final : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  absl::Status Launch(const LaunchRequest& request) override {
    if (request.parts[0].work.kernel->id == refused) {
      return absl::InvalidArgumentError("refused");
    }
    return ForwardingDevice::Launch(request);
  }
  KernelId refused;
};

class GraphPiecesTest : public SimulatedSchedulerTest {
 protected:
  std::unique_ptr<Device> Wrap(std::unique_ptr<Device> device) override {
    auto wrapped = std::make_unique<RefusingDevice>(std::move(device));
    device_ = wrapped.get();
    return wrapped;
  }

  KernelDesc Network(const std::string& name) const {
    KernelDesc network;
    network.name = name;
    network.code = GraphCode{.segment_ns = -1, .measure_nodes = true};
    network.simulation.present = true;
    network.simulation.node_gap_ns = 1'000;
    std::vector<GraphNode>& nodes = network.simulation.nodes;
    nodes.push_back({.duration_ns = kOtherNs, .blocks = sms_, .demand = {}});
    for (int i = 0; i < kLayers; ++i) {
      nodes.push_back({.duration_ns = kGemmNs,
                       .blocks = static_cast<int32_t>(kGemmNs / kBlockTaskNs) * kWorkersOfSm * sms_,
                       .demand = {},
                       .kernel = "gemm"});
      nodes.push_back({.duration_ns = kOtherNs, .blocks = sms_, .repeat = 4, .demand = {}});
    }
    return network;
  }
  void Open(const std::string& policy, bool has_fused = true, int32_t tasks_max = 256,
            double duration_ratio = 1.1) {
    scheduler_ = nullptr;  // of an earlier call
    events_.records.clear();
    done_.clear();
    SchedulerOptions options;
    options.events = &events_;
    ASSERT_NO_FATAL_FAILURE(StartScheduler(*MakePolicy(policy), options));
    gemm_ = *scheduler_->RegisterKernel(EvictableKernel("gemm", kBlockTaskNs));
    stream_ = *scheduler_->RegisterKernel(EvictableKernel("stream", kBlockTaskNs));
    if (has_fused) RegisterPair(duration_ratio);
    network_ = *scheduler_->RegisterKernel(Network("network"));
    AppOptions service{.name = "service", .app_class = AppClass::kLatencyCritical};
    service.promise.target_ns = 40 * kMs;
    service.tasks_max = tasks_max;
    lc_app_ = *scheduler_->CreateApp(service);
    lc_ = *scheduler_->CreateQueue(lc_app_);
    be_ = *scheduler_->CreateQueue(
        *scheduler_->CreateApp({.name = "train", .app_class = AppClass::kBestEffort}));
  }
  void RegisterPair(double duration_ratio = 1.1) {
    FusedKernelDesc fused;
    fused.name = "pair";
    fused.tensor_part = gemm_;
    fused.cuda_part = stream_;
    fused.opportune_load_ratio = 0.8;
    fused.opportune_duration_ratio = duration_ratio;
    fused_ = *scheduler_->RegisterFusedKernel(fused);
  }
  const std::vector<GraphPiece>& Pieces() const {
    return scheduler_->FindKernel(network_)->graph()->pieces;
  }
  TaskSpec Spec(QueueId queue, KernelId kernel) {
    TaskSpec spec;
    spec.queue = queue;
    spec.kernel = kernel;
    spec.callback = [](void* user, const CompletionRecord& record) {
      static_cast<std::vector<CompletionRecord>*>(user)->push_back(record);
    };
    spec.callback_user = &done_;
    return spec;
  }
  void SubmitBe(int tasks) {
    for (int i = 0; i < tasks; ++i) {
      TaskSpec spec = Spec(be_, stream_);
      spec.work.block_tasks = int64_t{100} * kWorkersOfSm * sms_;
      ASSERT_TRUE(scheduler_->SubmitBe(spec).ok());
    }
  }
  TicketId SubmitQuery(bool detached = true) {
    TaskSpec spec = Spec(lc_, network_);
    spec.work.kind = TaskKind::kGraph;
    spec.detached = detached;
    const absl::StatusOr<TicketId> ticket = scheduler_->SubmitLc(spec);
    EXPECT_TRUE(ticket.ok()) << ticket.status();
    return ticket.ok() ? *ticket : TicketId{};
  }
  // A query every 6 ms, and all of them done.
  void Serve(int queries) {
    for (int i = 0; i < queries; ++i) {
      SubmitQuery();
      Pass(6 * kMs);
    }
    Pass(50 * kMs);
  }
  std::vector<CompletionRecord> Queries() const {
    std::vector<CompletionRecord> queries;
    for (const CompletionRecord& record : done_) {
      if (record.kernel != stream_) queries.push_back(record);
    }
    return queries;
  }
  int64_t CutQueries() const {
    const std::vector<CompletionRecord> queries = Queries();
    return std::count_if(queries.begin(), queries.end(),
                         [](const CompletionRecord& record) { return record.launches == kPieces; });
  }
  int64_t BeTasks() const {
    return std::count_if(done_.begin(), done_.end(),
                         [&](const CompletionRecord& record) { return record.kernel == stream_; });
  }
  // The kernels of the service's launches.
  std::vector<KernelId> LaunchedKernels() const {
    std::vector<KernelId> kernels;
    for (const EventRecord& record : events_.records) {
      if (static_cast<EventType>(record.type) != EventType::kLaunched) continue;
      if (record.app != lc_app_.value) continue;
      kernels.push_back(Decode<Launched>(record).task.kernel);
    }
    return kernels;
  }

  CollectingSink events_;
  RefusingDevice* device_ = nullptr;
  KernelId gemm_, stream_, network_, fused_;
  AppId lc_app_;
  QueueId lc_, be_;
  std::vector<CompletionRecord> done_;
};

TEST_F(GraphPiecesTest, AGraphIsCutAtTheNodesOfKernelsThatHaveAPartner) {
  ASSERT_NO_FATAL_FAILURE(Open("tacker"));
  ASSERT_EQ(Pieces().size(), kPieces);
  for (size_t i = 0; i < Pieces().size(); ++i) {
    EXPECT_EQ(Pieces()[i].is_node, i % 2 == 1) << i;
    EXPECT_EQ(Pieces()[i].kernel == gemm_, i % 2 == 1) << i;
  }
  ASSERT_NO_FATAL_FAILURE(Open("tacker", false));
  EXPECT_TRUE(Pieces().empty()) << "no fused kernel";
  // A pair that saves 2 % of a node: 10 us of 500 us, less than a cut costs.
  ASSERT_NO_FATAL_FAILURE(Open("tacker", true, 256, 1.78));
  EXPECT_TRUE(Pieces().empty());
}

// What BE work gets in the same time, and what the cuts cost the queries.
TEST_F(GraphPiecesTest, BeWorkGainsMoreThanTheCutsCost) {
  for (const char* policy : {"tacker", "adaptive"}) {
    SCOPED_TRACE(policy);
    int64_t tasks[2] = {};
    int64_t p99_ns[2] = {};
    for (const bool has_fused : {false, true}) {
      ASSERT_NO_FATAL_FAILURE(Open(policy, has_fused));
      SubmitBe(500);
      Serve(150);
      EXPECT_EQ(Queries().size(), 150);
      tasks[has_fused ? 1 : 0] = BeTasks();
      p99_ns[has_fused ? 1 : 0] = scheduler_->GuaranteeOf(lc_app_)->p99_ns;
      EXPECT_EQ(CutQueries() > 100, has_fused) << CutQueries();
    }
    std::printf("%s: BE tasks %lld whole, %lld cut; p99 %.0f us whole, %.0f us cut\n", policy,
                static_cast<long long>(tasks[0]), static_cast<long long>(tasks[1]),
                static_cast<double>(p99_ns[0]) / 1e3, static_cast<double>(p99_ns[1]) / 1e3);
    EXPECT_GT(tasks[1], tasks[0] + tasks[0] / 20);
    EXPECT_LT(p99_ns[1], 40 * kMs);
  }
}

TEST_F(GraphPiecesTest, AQueryIsCutOnlyWhileAPartnerIsThere) {
  ASSERT_NO_FATAL_FAILURE(Open("tacker"));
  Serve(20);
  EXPECT_EQ(CutQueries(), 0) << "no BE work";
  for (const CompletionRecord& record : Queries()) EXPECT_EQ(record.launches, 1);
  SubmitBe(200);
  Pass(5 * kMs);
  Serve(20);
  EXPECT_GT(CutQueries(), 10);
  ASSERT_NO_FATAL_FAILURE(Open("baymax"));
  SubmitBe(200);
  Serve(20);
  EXPECT_EQ(CutQueries(), 0) << "baymax fuses nothing";
}

// Several queries wait behind each other, so that pieces of one could run between those of another.
TEST_F(GraphPiecesTest, ThePiecesOfAQueryFollowOneAnother) {
  for (const char* policy : {"tacker", "adaptive"}) {
    SCOPED_TRACE(policy);
    ASSERT_NO_FATAL_FAILURE(Open(policy));
    SubmitBe(300);
    Serve(10);
    for (int burst = 0; burst < 10; ++burst) {
      for (int i = 0; i < 4; ++i) SubmitQuery();
      Pass(50 * kMs);
    }
    ASSERT_EQ(Queries().size(), 50);
    EXPECT_GT(CutQueries(), 5);
    const std::vector<KernelId> launched = LaunchedKernels();
    for (size_t i = 0; i < launched.size();) {
      if (launched[i] == network_) {
        ++i;
        continue;
      }
      for (const GraphPiece& piece : Pieces()) {
        ASSERT_LT(i, launched.size());
        ASSERT_EQ(launched[i].value, piece.kernel.value) << "launch " << i;
        ++i;
      }
    }
  }
}

// The caller has one ticket, one callback and one record, those of the graph.
TEST_F(GraphPiecesTest, TheRecordIsThatOfTheGraph) {
  ASSERT_NO_FATAL_FAILURE(Open("tacker"));
  SubmitBe(200);
  Serve(20);
  for (const CompletionRecord& record : Queries()) {
    if (record.launches < kPieces) continue;
    EXPECT_EQ(record.beside.value, stream_.value) << "of some node, if not of the last piece";
  }
  done_.clear();
  const TimeNs submitted_ns = scheduler_->NowNs();
  const TicketId ticket = SubmitQuery(false);
  Pass(50 * kMs);
  const std::vector<CompletionRecord> queries = Queries();
  ASSERT_EQ(queries.size(), 1);
  const CompletionRecord& record = queries[0];
  EXPECT_EQ(record.launches, kPieces);
  EXPECT_EQ(record.ticket.value, ticket.value);
  EXPECT_EQ(record.kernel.value, network_.value);
  EXPECT_EQ(record.kind, TaskKind::kGraph);
  EXPECT_EQ(record.verdict, Verdict::kOk);
  EXPECT_EQ(record.block_tasks, 1);
  const int64_t alone_ns = kLayers * (kGemmNs + 4 * kOtherNs) + kOtherNs;
  EXPECT_GT(record.measured_ns, alone_ns);
  EXPECT_GT(record.predicted_ns, alone_ns * 9 / 10);
  EXPECT_EQ(record.beside.value, stream_.value);
  EXPECT_GT(record.predicted_error_ns, 0);
  EXPECT_EQ(record.submit_ns, submitted_ns);
  EXPECT_GE(record.admit_ns, submitted_ns);
  EXPECT_LE(record.admit_ns, record.launch_ns);
  EXPECT_NE(record.launch_reason, Reason::kNone);
  EXPECT_EQ(record.place, kWholeDevice);
  EXPECT_GE(record.complete_ns - record.launch_ns, alone_ns);
  EXPECT_EQ(scheduler_->VerdictOf(ticket).value(), Verdict::kOk);
}

// The last piece succeeds by itself, and computes with what the failed one left.
TEST_F(GraphPiecesTest, AFailedPieceFailsTheGraph) {
  ASSERT_NO_FATAL_FAILURE(Open("tacker"));
  SubmitBe(200);
  Serve(20);
  for (const size_t piece : {size_t{0}, size_t{2}, size_t{kPieces - 1}}) {
    done_.clear();
    device_->refused = Pieces()[piece].kernel;
    const TicketId ticket = SubmitQuery(false);
    Pass(50 * kMs);
    ASSERT_EQ(Queries().size(), 1) << piece;
    EXPECT_EQ(Queries()[0].verdict, Verdict::kFailed) << piece;
    EXPECT_EQ(scheduler_->VerdictOf(ticket).value(), Verdict::kFailed);
    device_->refused = KernelId{};
  }
  done_.clear();
  SubmitQuery();
  Pass(50 * kMs);
  ASSERT_EQ(Queries().size(), 1);
  EXPECT_EQ(Queries()[0].verdict, Verdict::kOk) << "the next query is not concerned";
}

// Nine pieces and an app of 16 task slots: a burst of whole graphs has room, and must not be
// refused because some of them are cut.
TEST_F(GraphPiecesTest, AnAppWithFewTaskSlotsIsNotCut) {
  ASSERT_NO_FATAL_FAILURE(Open("tacker", true, 16));
  SubmitBe(200);
  Serve(20);
  EXPECT_EQ(Queries().size(), 20);
  EXPECT_EQ(CutQueries(), 0);
}

// The parts are kernels of the library's own: they go with their graph, and the kernel of its nodes
// stays as long as the graph.
TEST_F(GraphPiecesTest, AReleasedGraphTakesItsPartsAlong) {
  ASSERT_NO_FATAL_FAILURE(Open("tacker"));
  SubmitBe(200);
  Serve(20);
  const std::vector<GraphPiece> pieces = Pieces();
  scheduler_->RetireFusedKernel(fused_);
  scheduler_->RetireKernel(gemm_);
  const KernelId other = *scheduler_->RegisterKernel(EvictableKernel("gemm", kBlockTaskNs));
  EXPECT_NE(other.value, gemm_.value) << "a graph uses it";
  SubmitQuery();
  scheduler_->RetireKernel(network_);
  TaskSpec spec = Spec(lc_, network_);
  spec.work.kind = TaskKind::kGraph;
  EXPECT_EQ(scheduler_->SubmitLc(spec).status().code(), absl::StatusCode::kFailedPrecondition);
  Pass(50 * kMs);
  const std::vector<CompletionRecord> queries = Queries();
  EXPECT_EQ(queries.back().verdict, Verdict::kOk);
  // What is released is launched no more, so nothing is cut for it.
  const KernelId whole = *scheduler_->RegisterKernel(Network("network"));
  EXPECT_EQ(whole.value, network_.value);
  EXPECT_TRUE(Pieces().empty());
  scheduler_->RetireKernel(whole);
  // A new kernel on the place of the old one drops the fused kernel from its place.
  gemm_ = *scheduler_->RegisterKernel(EvictableKernel("gemm", kBlockTaskNs));
  const KernelId unfused = *scheduler_->RegisterKernel(Network("network"));
  EXPECT_EQ(unfused.value, network_.value);
  EXPECT_TRUE(Pieces().empty());
  scheduler_->RetireKernel(unfused);
  // With a new pair: of the same names, on the same places.
  RegisterPair();
  const KernelId again = *scheduler_->RegisterKernel(Network("network"));
  EXPECT_EQ(again.value, network_.value);
  ASSERT_EQ(Pieces().size(), pieces.size());
  for (size_t i = 0; i < pieces.size(); ++i) {
    EXPECT_EQ(Pieces()[i].kernel.value, (i % 2 == 1 ? gemm_ : pieces[i].kernel).value) << i;
  }
}

// Each of the three that a cut needs.
TEST_F(GraphPiecesTest, WithoutAPartOfItsFusedKernelAGraphIsNotCut) {
  for (int released = 0; released < 3; ++released) {
    SCOPED_TRACE(released);
    ASSERT_NO_FATAL_FAILURE(Open("tacker"));
    if (released == 0) scheduler_->RetireFusedKernel(fused_);
    if (released == 1) scheduler_->RetireKernel(gemm_);
    if (released == 2) scheduler_->RetireKernel(stream_);
    network_ = *scheduler_->RegisterKernel(Network("another"));
    EXPECT_TRUE(Pieces().empty());
  }
}

}  // namespace
}  // namespace gpushare::core
