// How the launcher runs a node of a graph as the workers of its twin, and reads how they ended,
// with a fake driver: what the launch header says is what a worker acts on.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpushare/device/launch.h"
#include "src/cuda/code/prepared_functions.h"
#include "src/cuda/graphs/prepared_graphs.h"
#include "src/cuda/lanes/claim_counters.h"
#include "src/cuda/launcher.h"
#include "src/cuda/library/library_calls.h"
#include "tests/cuda/code/fake_cubin.h"
#include "tests/cuda/code/ptx_code.h"
#include "tests/cuda/graphs/fake_graphs.h"

namespace gpushare::cuda {
namespace {

constexpr char kScale[] = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 out, .param .u32 count)
.reqntid 128
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %ctaid.x;
  st.global.u32 [%rd1], %r1;
  ret;
}
)";

const CUfunction kOriginal = reinterpret_cast<CUfunction>(intptr_t{7000});  // NOLINT
constexpr unsigned int kSharedBytes = 512;
constexpr int kWorkersPerSm = 8;
constexpr std::array<unsigned int, 3> kGrid = {100, 40, 3};
constexpr int64_t kBlockTasks = 100 * 40 * 3;
constexpr int64_t kWholeDevice = 132 * kWorkersPerSm;
constexpr int32_t kCounter = 5;
constexpr uint64_t kSequence = 9;
constexpr uint32_t kEpoch = 0xfffffff0;
constexpr size_t kNode = 1;  // the segment of the node that has a twin

// What was launched last.
struct Launched {
  int launches = 0;
  CUfunction function = nullptr;
  std::array<unsigned int, 3> grid{};
  std::array<unsigned int, 3> block{};
  unsigned int shared_bytes = 0;
  CUstream stream = nullptr;
  gpushare_worker_launch header = {};
  uint64_t pointer = 0;
  uint32_t count = 0;
  CUresult answer = CUDA_SUCCESS;
  // What was written to the device's word, and where.
  int writes = 0;
  int launches_before_write = 0;
  CUdeviceptr address = 0;
  uint64_t word = 0;
  CUstream write_stream = nullptr;
  CUresult write_answer = CUDA_SUCCESS;
};
Launched& Last() {
  static Launched launched;
  return launched;
}

void FillCode(DriverApi& api) {
  // The kernels of the twin's module by their order: the worker has a header in front.
  static std::vector<std::string> entries;
  entries.clear();
  api.cuLibraryLoadData = [](CUlibrary* library, const void*, CUjit_option*, void**, unsigned,
                             CUlibraryOption*, void**, unsigned) {
    *library = reinterpret_cast<CUlibrary>(uintptr_t{1});
    return CUDA_SUCCESS;
  };
  api.cuLibraryUnload = [](CUlibrary) { return CUDA_SUCCESS; };
  api.cuLibraryGetKernel = [](CUkernel* kernel, CUlibrary, const char* name) {
    entries.emplace_back(name);
    *kernel = reinterpret_cast<CUkernel>(entries.size());
    return CUDA_SUCCESS;
  };
  api.cuKernelGetFunction = [](CUfunction* function, CUkernel kernel) {
    *function = reinterpret_cast<CUfunction>(kernel);
    return CUDA_SUCCESS;
  };
  api.cuFuncLoad = [](CUfunction) { return CUDA_SUCCESS; };
  api.cuFuncGetName = [](const char** name, CUfunction) {
    *name = "scale";
    return CUDA_SUCCESS;
  };
  api.cuFuncSetAttribute = [](CUfunction, CUfunction_attribute, int) { return CUDA_SUCCESS; };
  api.cuFuncGetAttribute = [](int* value, CUfunction_attribute, CUfunction) {
    *value = 256;
    return CUDA_SUCCESS;
  };
  api.cuOccupancyMaxActiveBlocksPerMultiprocessor = [](int* blocks, CUfunction, int, size_t) {
    *blocks = kWorkersPerSm;
    return CUDA_SUCCESS;
  };
  api.cuFuncGetParamInfo = [](CUfunction function, size_t index, size_t* offset, size_t* bytes) {
    const auto number = reinterpret_cast<uintptr_t>(function);
    const bool is_twin = number <= entries.size() && entries[number - 1] != "scale";
    const std::vector<size_t> parameters =
        is_twin ? std::vector<size_t>{sizeof(gpushare_worker_launch), 8, 4}
                : std::vector<size_t>{8, 4};
    if (index >= parameters.size()) return CUDA_ERROR_INVALID_VALUE;
    *offset = 256 * index;
    *bytes = parameters[index];
    return CUDA_SUCCESS;
  };
}

// Each node of a graph takes 1 ms.
void FillTimes(DriverApi& api) {
  api.cuEventCreate = [](CUevent* event, unsigned int) {
    *event = reinterpret_cast<CUevent>(uintptr_t{1});
    return CUDA_SUCCESS;
  };
  api.cuEventDestroy = [](CUevent) { return CUDA_SUCCESS; };
  api.cuEventElapsedTime = [](float* ms, CUevent, CUevent) {
    *ms = 1;
    return CUDA_SUCCESS;
  };
  api.cuGraphAddEventRecordNode = [](CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t,
                                     CUevent) {
    *node = GraphOf(graph).Add(CU_GRAPH_NODE_TYPE_EVENT_RECORD).handle();
    return CUDA_SUCCESS;
  };
  api.cuGraphLaunch = [](CUgraphExec, CUstream) { return CUDA_SUCCESS; };
}

DriverApi FakeDriver() {
  Last() = Launched();
  DriverApi api = MakeFakeGraphs();
  FillCode(api);
  FillTimes(api);
  api.cuLaunchKernel = [](CUfunction function, unsigned x, unsigned y, unsigned z, unsigned block_x,
                          unsigned block_y, unsigned block_z, unsigned shared_bytes,
                          CUstream stream, void** parameters, void**) {
    Launched& last = Last();
    ++last.launches;
    last.function = function;
    last.grid = {x, y, z};
    last.block = {block_x, block_y, block_z};
    last.shared_bytes = shared_bytes;
    last.stream = stream;
    std::memcpy(&last.header, parameters[0], sizeof(last.header));
    std::memcpy(&last.pointer, parameters[1], sizeof(last.pointer));
    std::memcpy(&last.count, parameters[2], sizeof(last.count));
    return last.answer;
  };
  api.cuStreamWriteValue64 = [](CUstream stream, CUdeviceptr address, cuuint64_t word,
                                unsigned int) {
    Launched& last = Last();
    ++last.writes;
    last.launches_before_write = last.launches;
    last.write_stream = stream;
    last.address = address;
    last.word = word;
    return last.write_answer;
  };
  return api;
}

// Its code has no variables, which a kernel with an original of the application's must not have.
class FakeAssembler : public Assembler {
 public:
  std::string Name() const override { return "fake"; }
  std::string Options() const override { return ""; }
  absl::StatusOr<std::string> Assemble(absl::string_view, absl::string_view) const override {
    return Cubin({{".text.scale"}});
  }
};

// A graph of three nodes of 1 ms, of which the second one's kernel has a twin, and a lane for it.
class LauncherNodesTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(places_.Split(132).ok());
    PrepareTwin();
    PrepareGraph();
    lane_->stream = reinterpret_cast<CUstream>(uintptr_t{77});
    lane_->words.records = records_.data();
    lane_->words.records_on_device = records_.data() + kLaneRing;  // another address on the device
    lane_->words.scratch = scratch_.data();
    lane_->words.eviction_word = &device_word_;
    lane_->words.host_eviction_word = &host_word_;
    lane_->words.host_eviction_word_on_device = reinterpret_cast<const uint64_t*>(&host_word_);
    run_.graph = graph_.id;
    run_.sequence = kSequence;
    run_.epoch = kEpoch;
    run_.counter = kCounter;
  }

  void PrepareTwin() {
    auto assembly = std::make_unique<Assembly>(CodeCache(""), "sm_90a");
    assembly->Add(std::make_unique<FakeAssembler>());
    functions_.UseAssembly(std::move(assembly));
    core::KernelDesc kernel;
    kernel.id = core::KernelId{1};
    kernel.name = "twin";
    kernel.evictable = true;
    kernel.resources.threads_per_block = 128;
    kernel.resources.dynamic_shared_memory_bytes = kSharedBytes;
    core::PtxCode code = PtxCodeOf(kScale, "scale");
    ASSERT_EQ(code.worker.refusal, "");
    code.graph_nodes = true;
    code.functions.original = kOriginal;
    kernel.code = code;
    absl::Status status = functions_.Describe(kernel);
    if (status.ok()) status = functions_.Prepare(kernel);
    ASSERT_TRUE(status.ok()) << status;
  }

  void PrepareGraph() {
    for (size_t i = 0; i < 3; ++i) nodes_.AddKernel();
    CUDA_KERNEL_NODE_PARAMS& node = nodes_.nodes[kNode]->kernel;
    node.kern = nullptr;
    node.func = kOriginal;
    node.gridDimX = kGrid[0];
    node.gridDimY = kGrid[1];
    node.gridDimZ = kGrid[2];
    node.blockDimX = 128;
    node.blockDimY = node.blockDimZ = 1;
    node.sharedMemBytes = kSharedBytes;
    node.kernelParams = parameters_.data();
    graph_.id = core::KernelId{2};
    graph_.name = "graph";
    graph_.confinable = false;  // the application's own function is no kernel of a library
    graph_.code = core::GraphCode{.graph = nodes_.handle(), .segment_ns = 100'000};
    graph_.graph()->measure_nodes = true;
    const absl::Status status = graphs_.Prepare(graph_);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(graphs_.CutOf(graph_.id).segments, 3);
    ASSERT_EQ(graphs_.CutOf(graph_.id).evictable_segments, 1);
  }

  CUresult Launch(bool begins, uint64_t number) {
    return launcher_.LaunchNode(*lane_, run_, kNode, begins, number);
  }
  // As the last worker of the launch does.
  void End(uint32_t left) {
    gpushare_worker_completion& record = records_[lane_->Slot(kSequence)];
    record.block_tasks_left = left;
    record.sequence = Last().header.sequence;
  }
  NodeWorkers::Ended EndOf(uint64_t number) const {
    return launcher_.EndOfNode(*lane_, run_, kNode, number);
  }

  const Context context_{FakeDriver(), 0, FakePrimary()};
  Places places_{context_};
  PreparedFunctions functions_{context_};
  PreparedGraphs graphs_{context_, places_, &WarmKernel, &functions_};
  const std::unique_ptr<LibraryCalls> library_ = LibraryCalls::Make(context_.api(), nullptr);
  ClaimCounters counters_;  // without memory: its addresses are numbers
  Launcher launcher_{context_, places_, functions_, graphs_, *library_, counters_};
  FakeGraph nodes_;
  uint64_t pointer_ = 0x1234'5678'9abc;
  uint32_t count_ = 77;
  std::array<void*, 2> parameters_{&pointer_, &count_};
  core::KernelDesc graph_;
  std::vector<gpushare_worker_completion> records_ =
      std::vector<gpushare_worker_completion>(2 * kLaneRing);
  std::vector<gpushare_worker_scratch> scratch_ = std::vector<gpushare_worker_scratch>(kLaneRing);
  uint64_t device_word_ = 0;
  std::atomic<uint64_t> host_word_{uint64_t{kEpoch - 1} << 32};
  const std::unique_ptr<CudaLane> lane_ = std::make_unique<CudaLane>();
  SegmentRun run_;
};

TEST_F(LauncherNodesTest, TheTwinIsLaunchedWithTheNodesShapeAndArguments) {
  pointer_ = count_ = 0;  // the application may change them behind the registration
  ASSERT_EQ(Launch(true, 1), CUDA_SUCCESS);
  EXPECT_EQ(Last().function, graphs_.TwinOf(graph_.id, kNode).twin.kernel.worker.function);
  EXPECT_NE(Last().function, kOriginal);
  EXPECT_EQ(Last().block, (std::array<unsigned int, 3>{128, 1, 1}));
  EXPECT_EQ(Last().shared_bytes, kSharedBytes);
  EXPECT_EQ(Last().stream, lane_->stream);
  EXPECT_EQ(Last().pointer, 0x1234'5678'9abcU);
  EXPECT_EQ(Last().count, 77U);
  const gpushare_worker_launch& header = Last().header;
  EXPECT_EQ(header.grid_x, kGrid[0]);
  EXPECT_EQ(header.grid_y, kGrid[1]);
  EXPECT_EQ(header.grid_z, kGrid[2]);
  EXPECT_EQ(header.block_begin, 0U);
  EXPECT_EQ(header.block_count, kBlockTasks);
  EXPECT_GE(header.claim_batch, 1U);
  EXPECT_EQ(header.yield_list, nullptr);
}

TEST_F(LauncherNodesTest, WorkersFillThePlaceAndTheLeaderTakesOnesRoom) {
  ASSERT_EQ(Launch(true, 1), CUDA_SUCCESS);
  EXPECT_EQ(Last().grid, (std::array<unsigned int, 3>{kWholeDevice, 1, 1}));
  EXPECT_EQ(Last().header.host_eviction_word, lane_->words.host_eviction_word_on_device)
      << "or block 0 leads nobody";
}

TEST_F(LauncherNodesTest, OnALaneWithoutAnEvictionWordNoBlockLeads) {
  lane_->words.eviction_word = nullptr;
  lane_->words.host_eviction_word_on_device = nullptr;
  ASSERT_EQ(Launch(false, 1), CUDA_SUCCESS);
  EXPECT_EQ(Last().grid[0], kWholeDevice);
  EXPECT_EQ(Last().header.eviction_word, nullptr);
  EXPECT_EQ(Last().header.host_eviction_word, nullptr);
}

TEST_F(LauncherNodesTest, InASmallPlaceAreAsManyWorkersAsFitThere) {
  core::PlaceSpec spec;
  spec.groups = 2;
  ASSERT_TRUE(places_.Create(1, spec).ok());
  lane_->spec.place = 1;
  ASSERT_EQ(Launch(true, 1), CUDA_SUCCESS);
  EXPECT_EQ(Last().grid[0], 16U * kWorkersPerSm);
}

TEST_F(LauncherNodesTest, AWorkerReadsTheLanesWordAndTheRunsEpoch) {
  ASSERT_EQ(Launch(true, 1), CUDA_SUCCESS);
  EXPECT_EQ(Last().header.eviction_word, &device_word_);
  EXPECT_EQ(Last().header.epoch, kEpoch);
  const size_t slot = lane_->Slot(kSequence);
  EXPECT_EQ(Last().header.scratch, &scratch_[slot]);
  EXPECT_EQ(Last().header.completion, lane_->words.records_on_device + slot);
}

// The leader relays a word only once workers have claimed: of a quota that was written before the
// launch, every worker would execute a block task.
TEST_F(LauncherNodesTest, AnEvictionBeforeTheLaunchIsOnTheDeviceBeforeAnyWorker) {
  for (const uint32_t ahead : {0U, 1U, 100U}) {
    Last() = Launched();
    host_word_ = uint64_t{kEpoch + ahead} << 32 | 16;  // the epoch wraps
    ASSERT_EQ(Launch(true, 1), CUDA_SUCCESS);
    EXPECT_EQ(Last().writes, 1);
    EXPECT_EQ(Last().launches_before_write, 0);
    EXPECT_EQ(Last().launches, 1);
    EXPECT_EQ(Last().write_stream, lane_->stream) << "in the order of the launch";
    EXPECT_EQ(Last().address, reinterpret_cast<CUdeviceptr>(&device_word_));
    EXPECT_EQ(Last().word, host_word_.load());
  }
}

TEST_F(LauncherNodesTest, AnOlderEvictionCostsTheLaunchNothing) {
  ASSERT_EQ(Launch(true, 1), CUDA_SUCCESS);
  EXPECT_EQ(Last().writes, 0);
}

TEST_F(LauncherNodesTest, WithoutItsEvictionNothingIsLaunched) {
  host_word_ = uint64_t{kEpoch} << 32;
  Last().write_answer = CUDA_ERROR_NOT_SUPPORTED;
  EXPECT_EQ(Launch(true, 1), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(Last().launches, 0);
}

// The node's workers claim from a counter that is zero; the rest goes on where they left it.
TEST_F(LauncherNodesTest, TheRestOfANodeClaimsFromTheCounterThatItBeganWith) {
  ASSERT_EQ(Launch(true, 1), CUDA_SUCCESS);
  const gpushare_worker_launch first = Last().header;
  EXPECT_NE(first.counter, first.retired_counter);
  ASSERT_EQ(Launch(false, 2), CUDA_SUCCESS);
  EXPECT_EQ(Last().header.counter, first.counter);
  EXPECT_EQ(Last().header.retired_counter, first.retired_counter);
  EXPECT_EQ(Last().header.block_count, kBlockTasks) << "the counter says what is left";
  ASSERT_EQ(Launch(true, 3), CUDA_SUCCESS);
  EXPECT_EQ(Last().header.counter, first.retired_counter) << "the next node's is zero again";
  EXPECT_EQ(Last().header.retired_counter, first.counter);
}

// What the driver refused zeroes no counter.
TEST_F(LauncherNodesTest, ARefusedLaunchLeavesTheCountersAsTheyWere) {
  Last().answer = CUDA_ERROR_OUT_OF_MEMORY;
  EXPECT_EQ(Launch(true, 1), CUDA_ERROR_OUT_OF_MEMORY);
  const gpushare_worker_launch refused = Last().header;
  Last().answer = CUDA_SUCCESS;
  ASSERT_EQ(Launch(true, 2), CUDA_SUCCESS);
  EXPECT_EQ(Last().header.counter, refused.counter);
}

TEST_F(LauncherNodesTest, TheEndIsReadFromTheRecordOfItsOwnLaunch) {
  ASSERT_EQ(Launch(true, 1), CUDA_SUCCESS);
  EXPECT_FALSE(EndOf(1).known) << "no worker has written it";
  End(40);
  const NodeWorkers::Ended ended = EndOf(1);
  EXPECT_TRUE(ended.known);
  EXPECT_EQ(ended.block_tasks_left, 40);
  EXPECT_EQ(ended.block_tasks, kBlockTasks);
  // The next launch of the run has the same record.
  ASSERT_EQ(Launch(false, 2), CUDA_SUCCESS);
  EXPECT_FALSE(EndOf(2).known) << "the record is that of the launch before";
  End(0);
  EXPECT_TRUE(EndOf(2).known);
  EXPECT_EQ(EndOf(2).block_tasks_left, 0);
}

// The lane's next launch with this record's place must not take it for its own.
TEST_F(LauncherNodesTest, TheRecordIsThatOfNoLaunchOfTheLane) {
  for (const uint64_t number : {uint64_t{1}, kSequence, kSequence + kLaneRing}) {
    ASSERT_EQ(Launch(true, number), CUDA_SUCCESS);
    EXPECT_GT(Last().header.sequence, uint64_t{1} << 62);
  }
}

}  // namespace
}  // namespace gpushare::cuda
