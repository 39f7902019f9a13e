// On a GPU: a graph whose long nodes have twins of PTX gives the whole graph's bits, whatever
// evicts it in the middle of a node and wherever it goes on, and leaves within a block task.

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "src/cuda/driver/context.h"
#include "src/ptx/twin.h"
#include "tests/core/make_place.h"
#include "tests/cuda/gpu_fixture.h"

namespace gpushare::cuda {
namespace {

constexpr uint32_t kThreads = 128;
constexpr uint32_t kBlocks = 20'000;
constexpr uint32_t kCount = kBlocks * kThreads;
constexpr uint32_t kLongRounds = 6'000;  // about 30 us a block task, and 10 rounds of the grid
constexpr uint32_t kShortRounds = 10;
constexpr int kNodes = 9;
constexpr int kRuns = 40;

// Adds to out[i] a hash of in[count - 1 - i]: a block task that runs twice, or before the node in
// front of it is done, gives other bits.
constexpr char kMix[] = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry mix(.param .u64 in, .param .u64 out, .param .u32 rounds, .param .u32 count)
.reqntid 128
{
  .reg .pred %p<2>;
  .reg .b32 %r<12>;
  .reg .b64 %rd<7>;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  ld.param.u32 %r1, [rounds];
  ld.param.u32 %r2, [count];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r3, 128, %r4;
  sub.s32 %r6, %r2, %r5;
  sub.s32 %r6, %r6, 1;
  mul.wide.u32 %rd3, %r6, 4;
  add.s64 %rd4, %rd1, %rd3;
  ld.global.u32 %r7, [%rd4];
  add.s32 %r7, %r7, %r5;
  mov.u32 %r8, 0;
LOOP:
  mad.lo.s32 %r7, %r7, 1664525, 1013904223;
  add.s32 %r8, %r8, 1;
  setp.lt.u32 %p1, %r8, %r1;
  @%p1 bra LOOP;
  mul.wide.u32 %rd5, %r5, 4;
  add.s64 %rd6, %rd2, %rd5;
  ld.global.u32 %r9, [%rd6];
  add.s32 %r9, %r9, %r7;
  st.global.u32 [%rd6], %r9;
  ret;
}
)";

struct Chain {
  const DriverApi* api = nullptr;
  CUkernel kernel = nullptr;  // every place may run it
  std::array<uint32_t*, 2> buffers{};
};

// Long nodes with a short one behind every third of them.
int32_t CaptureChain(void* user, void* stream, int32_t /*sm_count*/) {
  const Chain& chain = *static_cast<const Chain*>(user);
  for (size_t i = 0; i < kNodes; ++i) {
    uint32_t* in = chain.buffers[i % 2];
    uint32_t* out = chain.buffers[1 - i % 2];
    uint32_t rounds = i % 3 == 2 ? kShortRounds : kLongRounds;
    uint32_t count = kCount;
    std::array<void*, 4> parameters = {static_cast<void*>(&in), static_cast<void*>(&out), &rounds,
                                       &count};
    const CUresult code = chain.api->cuLaunchKernel(
        reinterpret_cast<CUfunction>(chain.kernel), kBlocks, 1, 1, kThreads, 1, 1, 0,
        static_cast<CUstream>(stream), parameters.data(), nullptr);
    if (code != CUDA_SUCCESS) return static_cast<int32_t>(code);
  }
  return 0;
}

class EvictableNodesGpuTest : public GpuTest {
 protected:
  EvictableNodesGpuTest() : GpuTest(true) {}

  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    context_ = Context::Open(0).value();
    const DriverApi& api = context_->api();
    const ScopedContext current(*context_);
    ASSERT_EQ(api.cuLibraryLoadData(&library_, kMix, nullptr, nullptr, 0, nullptr, nullptr, 0),
              CUDA_SUCCESS);
    ASSERT_EQ(api.cuLibraryGetKernel(&chain_.kernel, library_, "mix"), CUDA_SUCCESS);
    chain_.api = &api;
    ASSERT_EQ(api.cuKernelGetFunction(&function_, chain_.kernel), CUDA_SUCCESS);
    for (uint32_t*& buffer : chain_.buffers) {
      ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&buffer), Bytes()), cudaSuccess);
    }
  }
  void TearDown() override {
    device_ = nullptr;
    for (uint32_t* buffer : chain_.buffers) cudaFree(buffer);
    if (library_ != nullptr) {
      const ScopedContext current(*context_);
      context_->api().cuLibraryUnload(library_);
    }
    context_ = nullptr;
  }
  static size_t Bytes() { return sizeof(uint32_t) * kCount; }

  void RegisterTwin() {
    const ptx::Twin twin = ptx::Transform(kMix, "mix", {.workers = true, .slice = false});
    ASSERT_TRUE(twin.ok()) << twin.refusal.message;
    twin_.id = core::KernelId{1};
    twin_.name = "mix";
    core::PtxCode code;
    code.text = kMix;
    code.graph_nodes = true;
    code.module = twin.text;
    code.entry = twin.facts.entry;
    code.worker.entry = twin.worker_entry;
    code.block = {static_cast<int32_t>(kThreads), 1, 1};
    code.functions.original = function_;
    twin_.code = code;
    twin_.resources.threads_per_block = kThreads;
    twin_.resources.registers_per_thread = twin_.resources.workers_per_sm_max = 0;
    twin_.evictable = true;
    absl::Status status = device_->DescribeKernel(twin_);
    ASSERT_TRUE(status.ok()) << status;
    status = device_->PrepareKernel(twin_);
    ASSERT_TRUE(status.ok()) << status;
  }
  void RegisterGraph(bool measure_nodes = true) {
    graph_.id = core::KernelId{2};
    graph_.name = "chain";
    graph_.code = core::GraphCode{
        .capture = &CaptureChain, .capture_user = &chain_, .measure_nodes = measure_nodes};
    const absl::Status status = device_->PrepareKernel(graph_);
    ASSERT_TRUE(status.ok()) << status;
    graph_.graph()->cut = device_->CutOf(graph_);
    std::printf("%d segments, %d of them evictable, the longest %.0f us, a query waits %.0f us\n",
                graph_.segments(), graph_.graph()->cut.evictable_segments,
                static_cast<double>(graph_.graph()->cut.longest_ns) / 1e3,
                static_cast<double>(graph_.graph()->cut.blocking.longest_ns()) / 1e3);
  }
  void Clear() {
    std::vector<uint32_t> values(kCount);
    for (uint32_t i = 0; i < kCount; ++i) values[i] = i * 747796405U;
    for (uint32_t* buffer : chain_.buffers) {
      ASSERT_EQ(cudaMemcpy(buffer, values.data(), Bytes(), cudaMemcpyHostToDevice), cudaSuccess);
    }
  }
  std::vector<uint32_t> Result() {
    std::vector<uint32_t> out(2 * size_t{kCount});
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(
          cudaMemcpy(out.data() + i * kCount, chain_.buffers[i], Bytes(), cudaMemcpyDeviceToHost),
          cudaSuccess);
    }
    return out;
  }
  core::LaunchRequest Request(core::LaneIndex lane, core::Form form, bool first) {
    core::LaunchRequest request;
    core::LaunchPart& part = request.parts[0];
    request.form = form;
    part.launch = core::LaunchId{++launches_};
    part.lane = lane;
    part.work.kernel = &graph_;
    part.block_count = graph_.segments();
    if (form != core::Form::kSegments) return request;
    part.counter = 0;
    part.reset_counter = first;
    part.epoch = ++epoch_;
    return request;
  }
  void Launch(const core::LaunchRequest& request) {
    const absl::Status status = device_->Launch(request);
    ASSERT_TRUE(status.ok()) << status;
  }
  std::vector<uint32_t> RunWhole() {
    Clear();
    Launch(Request(lane_, core::Form::kGraph, true));
    EXPECT_EQ(NextCompletion().outcome, core::Outcome::kFinished);
    return Result();
  }
  // Polls until `time`, as the scheduler does, or until the launch ends. Whether it has ended.
  bool PollUntil(core::TimeNs time, core::DeviceCompletion& out) {
    while (device_->NowNs() < time) {
      if (device_->PollCompletions(absl::MakeSpan(&out, 1)) > 0) return true;
    }
    return false;
  }

  std::unique_ptr<Context> context_;
  CUlibrary library_ = nullptr;
  Chain chain_;
  CUfunction function_ = nullptr;  // of the kernel, in the primary context
  core::KernelDesc twin_;
  core::KernelDesc graph_;
  uint64_t launches_ = 0;
  uint64_t epoch_ = 0;
};

TEST_F(EvictableNodesGpuTest, EvictionsAtRandomTimesGiveTheWholeGraphsBits) {
  ASSERT_NO_FATAL_FAILURE(RegisterTwin());
  std::vector<core::LaneIndex> lanes = {lane_};
  if (device_->capabilities().partitions) {
    for (const int groups : {4, 8}) {
      const auto place = core::MakePlace(*device_, core::PlaceSpec{0, groups, true}).value();
      lanes.push_back(device_->CreateLane({.place = place, .evictable = true}).value());
    }
  }
  ASSERT_NO_FATAL_FAILURE(RegisterGraph());
  ASSERT_GE(graph_.graph()->cut.evictable_segments, 5);
  const std::vector<uint32_t> whole = RunWhole();
  std::mt19937 random(40);
  int evictions = 0;
  int inside = 0;
  std::vector<int64_t> took_ns;
  for (int run = 0; run < kRuns; ++run) {
    Clear();
    int64_t done = 0;
    for (bool first = true; done < graph_.segments(); first = false) {
      const core::LaneIndex lane = lanes[random() % lanes.size()];
      ASSERT_NO_FATAL_FAILURE(Launch(Request(lane, core::Form::kSegments, first)));
      core::DeviceCompletion end;
      const core::TimeNs evict_ns = device_->NowNs() + 20'000 + random() % 600'000;
      if (!PollUntil(evict_ns, end)) {
        const core::TimeNs evicted_ns = device_->NowNs();
        // Some evictions keep workers, and a graph keeps none.
        ASSERT_TRUE(device_->Evict(lane, epoch_, static_cast<int32_t>(random() % 2) * 8).ok());
        end = NextCompletion();
        if (lane == lane_) took_ns.push_back(device_->NowNs() - evicted_ns);
        evictions += end.outcome == core::Outcome::kEvicted ? 1 : 0;
      }
      ASSERT_NE(end.outcome, core::Outcome::kFailed) << end.error_code;
      inside += end.block_tasks_done == 0 ? 1 : 0;
      done += end.block_tasks_done;
    }
    ASSERT_EQ(done, graph_.segments());
    ASSERT_EQ(Result(), whole) << "run " << run;
  }
  EXPECT_GT(inside, kRuns / 2) << "evictions came in the middle of a node";
  std::sort(took_ns.begin(), took_ns.end());
  ASSERT_GT(took_ns.size(), 20U);
  const int64_t p50_ns = took_ns[took_ns.size() / 2];
  const int64_t p95_ns = took_ns[took_ns.size() * 95 / 100];
  std::printf("%d evictions, %d with no segment done; whole device: p50 %.1f us, p95 %.1f us\n",
              evictions, inside, static_cast<double>(p50_ns) / 1e3,
              static_cast<double>(p95_ns) / 1e3);
  EXPECT_LT(p50_ns, graph_.graph()->cut.longest_ns / 2);
}

TEST_F(EvictableNodesGpuTest, WithoutEvictionsTheGraphTakesAboutItsTime) {
  ASSERT_NO_FATAL_FAILURE(RegisterTwin());
  ASSERT_NO_FATAL_FAILURE(RegisterGraph());
  const std::vector<uint32_t> whole = RunWhole();
  std::array<core::TimeNs, 2> took_ns{};
  for (int round = 0; round < 20; ++round) {
    for (const core::Form form : {core::Form::kGraph, core::Form::kSegments}) {
      Clear();
      const core::TimeNs begin_ns = device_->NowNs();
      ASSERT_NO_FATAL_FAILURE(Launch(Request(lane_, form, true)));
      EXPECT_EQ(NextCompletion().outcome, core::Outcome::kFinished);
      took_ns[form == core::Form::kSegments ? 1 : 0] += device_->NowNs() - begin_ns;
      ASSERT_EQ(Result(), whole);
    }
  }
  const double ratio = static_cast<double>(took_ns[1]) / static_cast<double>(took_ns[0]);
  std::printf("segments with workers over the whole graph: %.3f\n", ratio);
  EXPECT_LT(ratio, 1.25);
}

TEST_F(EvictableNodesGpuTest, ATwinOfAReleasedKernelServesItsGraph) {
  ASSERT_NO_FATAL_FAILURE(RegisterTwin());
  ASSERT_NO_FATAL_FAILURE(RegisterGraph());
  const std::vector<uint32_t> whole = RunWhole();
  device_->ReleaseKernel(twin_.id);
  Clear();
  ASSERT_NO_FATAL_FAILURE(Launch(Request(lane_, core::Form::kSegments, true)));
  EXPECT_EQ(NextCompletion().outcome, core::Outcome::kFinished);
  EXPECT_EQ(Result(), whole);
}

// LC work that is cut at its kernel nodes (node_pieces.h): the long nodes as launches of the
// registered kernel, the short ones as graphs between them.
TEST_F(EvictableNodesGpuTest, AGraphInPiecesGivesTheWholeGraphsBits) {
  ASSERT_NO_FATAL_FAILURE(RegisterTwin());
  graph_.id = core::KernelId{2};
  graph_.name = "chain";
  graph_.code = core::GraphCode{
      .capture = &CaptureChain, .capture_user = &chain_, .segment_ns = -1, .measure_nodes = true};
  absl::Status status = device_->PrepareKernel(graph_);
  ASSERT_TRUE(status.ok()) << status;
  const std::vector<core::NodeKernel> kernels = {{twin_.id, twin_.name, 100'000}};
  auto cut = device_->CutAtNodes(graph_, kernels);
  ASSERT_TRUE(cut.ok()) << cut.status();
  ASSERT_EQ(cut->size(), kNodes) << "two long nodes and a short one, three times";
  for (size_t i = 0; i < cut->size(); ++i) {
    core::NodePiece& piece = (*cut)[i];
    ASSERT_EQ(piece.piece.is_node, i % 3 != 2) << i;
    if (!piece.part.has_value()) continue;
    piece.part->id = core::KernelId{10 + static_cast<uint32_t>(i)};
    status = device_->PrepareKernel(*piece.part);
    ASSERT_TRUE(status.ok()) << status;
  }
  const std::vector<uint32_t> whole = RunWhole();
  std::array<core::TimeNs, 2> took_ns{};
  for (int run = 0; run < kRuns; ++run) {
    core::TimeNs begin_ns = device_->NowNs();
    ASSERT_EQ(RunWhole(), whole);
    took_ns[0] += device_->NowNs() - begin_ns;
    begin_ns = device_->NowNs();
    Clear();
    for (const core::NodePiece& piece : *cut) {
      core::LaunchRequest request = Request(lane_, core::Form::kGraph, true);
      core::LaunchPart& part = request.parts[0];
      part.block_count = 1;
      if (piece.part.has_value()) {
        part.work.kernel = &*piece.part;
      } else {
        request.form = core::Form::kOriginal;
        part.work.kernel = &twin_;
        part.work.grid = piece.piece.grid;
        part.work.block_tasks = part.block_count = piece.piece.block_tasks;
        part.work.arguments = piece.piece.arguments.data();
        part.work.arguments_bytes = piece.piece.arguments.size();
      }
      ASSERT_NO_FATAL_FAILURE(Launch(request));
    }
    for (size_t i = 0; i < cut->size(); ++i) {
      ASSERT_EQ(NextCompletion().outcome, core::Outcome::kFinished) << i;
    }
    ASSERT_EQ(Result(), whole) << "run " << run;
    took_ns[1] += device_->NowNs() - begin_ns;
  }
  // Both with the copies of the buffers.
  std::printf("in pieces over the whole graph: %.3f\n",
              static_cast<double>(took_ns[1]) / static_cast<double>(took_ns[0]));
}

TEST_F(EvictableNodesGpuTest, WithoutATwinOrDurationsNothingIsEvictable) {
  ASSERT_NO_FATAL_FAILURE(RegisterGraph());
  EXPECT_EQ(graph_.graph()->cut.evictable_segments, 0) << "no twin";
  ASSERT_NO_FATAL_FAILURE(RegisterTwin());
  device_->ReleaseKernel(graph_.id);
  ASSERT_NO_FATAL_FAILURE(RegisterGraph(false));
  EXPECT_EQ(graph_.graph()->cut.evictable_segments, 0) << "nobody measured its nodes";
}

}  // namespace
}  // namespace gpushare::cuda
