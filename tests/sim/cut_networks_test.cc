// Networks of one graph, cut at their GEMM nodes, beside BE kernels with which these have a fused
// kernel: what tacker gains over baymax, and over itself without cuts. Kernels, fused curves and
// device are those of the H200 profile; the number and the length of the GEMMs are those of the
// profile's graphs (prefill: 3 of 173 us; decode12: 12 of 34 us; bert_b1: 100 nodes of 5 us).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "src/core/flow/scheduler.h"
#include "src/core/policies/registry.h"
#include "src/models/profile/profile.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::sim {
namespace {

using core::KernelDesc;
using core::KernelId;
using core::kMs;
using core::kUs;
using core::TimeNs;

constexpr int64_t kRunNs = 300 * kMs;
// About what ends with a GEMM of 162 us in a fused kernel.
constexpr int64_t kBeTaskNs = 190 * kUs;

struct Network {
  const char* name;
  const char* gemm;     // kernel of its nodes
  int gemms;            // nodes
  double rounds;        // of the GEMM's grid
  int64_t small_ns;     // what is before, between and behind them, together for each gap
  const char* partner;  // BE kernel
  const char* fused;
};

struct Row {
  double be = 0;  // of what it would have done alone
  int64_t p50_ns = 0;
  int64_t p99_ns = 0;
  int pieces = 0;
  double cut = 0;  // share of queries
};

class CutNetworksTest : public core::SimulatedSchedulerTest {
 protected:
  void SetUp() override { profile_ = models::LoadProfile(GPUSHARE_CALIBRATED_PROFILE).value(); }

  int64_t BlocksOf(const KernelDesc& kernel, double rounds) const {
    return std::lround(rounds * kernel.resources.workers_per_sm_max) * sms_;
  }
  static int64_t NsOf(const KernelDesc& kernel, double rounds) {
    return static_cast<int64_t>(rounds * static_cast<double>(kernel.simulation.block_task_ns));
  }
  KernelDesc GraphOf(const Network& network) const {
    const KernelDesc& gemm = *profile_.FindKernel(network.gemm);
    KernelDesc graph;
    graph.name = network.name;
    graph.code = core::GraphCode{.segment_ns = -1, .measure_nodes = true};
    graph.simulation = profile_.FindKernel("bert_b1")->simulation;
    std::vector<core::GraphNode>& nodes = graph.simulation.nodes;
    const core::GraphNode small = nodes.front();
    nodes.clear();
    for (int i = 0; i <= network.gemms; ++i) {
      nodes.push_back(small);
      nodes.back().repeat =
          std::max<int32_t>(1, static_cast<int32_t>(network.small_ns / (small.duration_ns + 1)));
      if (i == network.gemms) break;
      core::GraphNode node;
      node.duration_ns = NsOf(gemm, network.rounds);
      node.blocks = static_cast<int32_t>(BlocksOf(gemm, network.rounds));
      node.demand = gemm.simulation.demand;
      node.kernel = network.gemm;
      nodes.push_back(node);
    }
    return graph;
  }
  void Open(const Network& network, const std::string& policy, bool has_fused) {
    scheduler_ = nullptr;  // its last tasks may still count
    done_.clear();
    be_tasks_ = 0;
    sim::SimOptions options;
    options.profile = profile_.device;
    ASSERT_NO_FATAL_FAILURE(StartScheduler(*core::MakePolicy(policy), {}, options));
    gemm_ = *scheduler_->RegisterKernel(*profile_.FindKernel(network.gemm));
    be_kernel_ = *scheduler_->RegisterKernel(*profile_.FindKernel(network.partner));
    if (has_fused) {
      core::FusedKernelDesc fused;
      fused.name = network.fused;
      fused.tensor_part = gemm_;
      fused.cuda_part = be_kernel_;
      for (const models::FusedRecord& record : profile_.calibration.fused) {
        if (record.name != fused.name) continue;
        fused.opportune_load_ratio = record.opportune_load_ratio;
        fused.opportune_duration_ratio = record.opportune_duration_ratio;
        fused.points = record.points;
      }
      ASSERT_FALSE(fused.points.empty()) << network.fused;
      ASSERT_TRUE(scheduler_->RegisterFusedKernel(fused).ok());
    }
    network_ = *scheduler_->RegisterKernel(GraphOf(network));
    core::AppOptions service{.name = "service", .app_class = core::AppClass::kLatencyCritical};
    service.promise.target_ns = 10 * QueryNs();
    service.tasks_max = 4096;
    lc_app_ = *scheduler_->CreateApp(service);
    lc_ = *scheduler_->CreateQueue(lc_app_);
    core::AppOptions train{.name = "train", .app_class = core::AppClass::kBestEffort};
    train.tasks_max = 4096;
    be_ = *scheduler_->CreateQueue(*scheduler_->CreateApp(train));
  }
  int64_t QueryNs() const {
    const KernelDesc& graph = *scheduler_->FindKernel(network_);
    int64_t sum_ns = 0;
    for (const core::GraphNode& node : graph.simulation.nodes) {
      sum_ns += (node.duration_ns + graph.simulation.node_gap_ns) * node.repeat;
    }
    return sum_ns;
  }
  double BeRounds() const {
    const KernelDesc& kernel = *scheduler_->FindKernel(be_kernel_);
    return std::round(static_cast<double>(kBeTaskNs) /
                      static_cast<double>(kernel.simulation.block_task_ns));
  }
  int64_t BeTaskNs() const { return NsOf(*scheduler_->FindKernel(be_kernel_), BeRounds()); }
  void SubmitBe() {
    const KernelDesc& kernel = *scheduler_->FindKernel(be_kernel_);
    core::TaskSpec spec;
    spec.queue = be_;
    spec.kernel = be_kernel_;
    spec.work.block_tasks = BlocksOf(kernel, BeRounds());
    spec.detached = true;
    spec.callback = [](void* user, const core::CompletionRecord& record) {
      if (record.verdict == core::Verdict::kOk) ++*static_cast<int*>(user);
    };
    spec.callback_user = &be_tasks_;
    ASSERT_TRUE(scheduler_->SubmitBe(spec).ok());
  }
  // The tasks that the BE app has done.
  double BeTasksWith(double load) {
    uint64_t random = 1;
    const int64_t query_ns = QueryNs();
    TimeNs next_ns = scheduler_->NowNs();
    int in_queue = 0;
    for (const TimeNs end = scheduler_->NowNs() + kRunNs; scheduler_->NowNs() < end;) {
      for (; in_queue - be_tasks_ < 16; ++in_queue) SubmitBe();
      if (load > 0 && next_ns <= scheduler_->NowNs()) {
        core::TaskSpec spec;
        spec.queue = lc_;
        spec.kernel = network_;
        spec.work.kind = core::TaskKind::kGraph;
        spec.arrival_ns = next_ns;
        spec.detached = true;
        spec.callback = [](void* user, const core::CompletionRecord& record) {
          static_cast<std::vector<core::CompletionRecord>*>(user)->push_back(record);
        };
        spec.callback_user = &done_;
        EXPECT_TRUE(scheduler_->SubmitLc(spec).ok());
        random = random * 6364136223846793005U + 1442695040888963407U;
        const double uniform = (static_cast<double>(random >> 11) + 1) / 9007199254740993.0;
        next_ns += static_cast<int64_t>(-std::log(uniform) * static_cast<double>(query_ns) / load);
        continue;
      }
      const TimeNs until = load > 0 ? std::min({end, next_ns, scheduler_->NowNs() + kMs})
                                    : std::min(end, scheduler_->NowNs() + kMs);
      EXPECT_TRUE(scheduler_->PollUntil(until).ok());
    }
    return be_tasks_;
  }
  Row Run(const Network& network, const std::string& policy, bool has_fused, double load) {
    Open(network, policy, has_fused);
    Row row;
    row.be = BeTasksWith(load) * static_cast<double>(BeTaskNs()) / kRunNs;
    row.pieces = static_cast<int>(scheduler_->FindKernel(network_)->graph()->pieces.size());
    std::vector<int64_t> latencies;
    for (const core::CompletionRecord& record : done_) {
      EXPECT_EQ(record.verdict, core::Verdict::kOk);
      latencies.push_back(record.complete_ns - record.submit_ns);
      row.cut += record.launches > 1 ? 1.0 : 0.0;
    }
    row.cut /= static_cast<double>(std::max<size_t>(1, done_.size()));
    std::sort(latencies.begin(), latencies.end());
    if (latencies.empty()) return row;
    row.p50_ns = latencies[latencies.size() / 2];
    row.p99_ns = latencies[latencies.size() * 99 / 100];
    return row;
  }
  Row Print(const Network& network, const char* what, const std::string& policy, bool has_fused,
            double load) {
    const Row row = Run(network, policy, has_fused, load);
    std::printf("| %s | %.1f | %s | %d, %.2f | %.3f | %.0f | %.0f |\n", network.name, load, what,
                row.pieces, row.cut, row.be, static_cast<double>(row.p50_ns) / 1e3,
                static_cast<double>(row.p99_ns) / 1e3);
    return row;
  }

  models::Profile profile_;
  KernelId gemm_, be_kernel_, network_;
  core::AppId lc_app_;
  core::QueueId lc_, be_;
  std::vector<core::CompletionRecord> done_;
  int be_tasks_ = 0;
};

// 8 GEMMs of 252 us, as the tasks of examples/scenarios/fused.json, with 10 or 40 us between them.
constexpr Network kLong = {
    "long", "gemm_skinny", 8, 8, 10'000, "cutcp", "gpushare_gemm_skinny_with_cutcp_1_1"};
constexpr Network kMixed = {
    "mixed", "gemm_skinny", 8, 8, 40'000, "cutcp", "gpushare_gemm_skinny_with_cutcp_1_1"};
constexpr Network kPrefill = {
    "prefill", "gemm_mma", 3, 6, 20'000, "streaming", "gpushare_gemm_mma_with_streaming_1_1"};
constexpr Network kDecode = {
    "decode12", "gemm_skinny", 12, 1, 5'000, "cutcp", "gpushare_gemm_skinny_with_cutcp_1_1"};

// Nodes of 162 us save some 80 us each beside streaming.
TEST_F(CutNetworksTest, TackerGainsOverBaymaxBesideLongGemms) {
  for (const Network& network : {kLong, kMixed}) {
    for (const double load : {0.4, 0.7}) {
      const Row baymax = Print(network, "baymax", "baymax", true, load);
      const Row whole = Print(network, "tacker, whole", "tacker", false, load);
      const Row cut = Print(network, "tacker, cut", "tacker", true, load);
      Print(network, "adaptive, whole", "adaptive", false, load);
      Print(network, "adaptive, cut", "adaptive", true, load);
      // 1.10 to 1.19 times (docs/cut-graphs.md).
      EXPECT_GT(cut.be, 1.05 * baymax.be) << network.name << ", " << load;
      EXPECT_GT(cut.be, 1.05 * whole.be) << network.name << ", " << load;
      EXPECT_LT(cut.p99_ns, 10 * QueryNs()) << network.name << ", " << load;
      EXPECT_GT(cut.cut, 0.5);
      EXPECT_EQ(baymax.cut, 0);
    }
  }
}

// Where a cut pays little, it must not cost much either. At load 0.7 tacker loses a tenth of the BE
// work beside GEMMs of 162 us, and misses the target of ten query times by 5 %.
TEST_F(CutNetworksTest, ShortGemms) {
  for (const double load : {0.4, 0.7}) {
    for (const Network& network : {kPrefill, kDecode}) {
      SCOPED_TRACE(testing::Message() << network.name << ", " << load);
      const Row baymax = Print(network, "baymax", "baymax", true, load);
      EXPECT_EQ(baymax.cut, 0);
      for (const char* policy : {"tacker", "adaptive"}) {
        const std::string name = policy;
        const Row whole = Print(network, (name + ", whole").c_str(), name, false, load);
        const Row cut = Print(network, (name + ", cut").c_str(), name, true, load);
        EXPECT_EQ(whole.pieces, 0);
        EXPECT_EQ(whole.cut, 0);
        EXPECT_GT(cut.pieces, network.gemms);
        EXPECT_GT(cut.be, 0.85 * whole.be);
        EXPECT_LT(cut.be, 1.3 * whole.be);
        EXPECT_LT(cut.p99_ns, 11 * QueryNs());
        if (network.gemms == kDecode.gemms) {
          EXPECT_LT(cut.cut, 0.1);
        }
      }
    }
  }
}

}  // namespace
}  // namespace gpushare::sim
