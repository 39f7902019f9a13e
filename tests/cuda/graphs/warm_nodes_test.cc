// What is read into the L2 cache beside a graph's first nodes, with a fake driver.

#include "src/cuda/graphs/warm_nodes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "src/cuda/graphs/warm_kernel.h"
#include "tests/cuda/graphs/fake_graphs.h"

namespace gpushare::cuda {
namespace {

constexpr uint64_t kMegabyte = 1 << 20;
constexpr uint64_t kMemory = 64 * kMegabyte;  // where the fake GPU's memory begins
constexpr uint64_t kMemoryEnd = 128 * kMegabyte;

constexpr uint64_t kOtherGpu = kMemoryEnd;  // its memory follows
constexpr CUdevice kGpu = 0;

DriverApi FakeDriver() {
  DriverApi api = MakeFakeGraphs();
  api.cuPointerGetAttribute = [](void* out, CUpointer_attribute attribute, CUdeviceptr address) {
    if (address < kMemory || address >= kOtherGpu + kMegabyte) return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE) {
      *static_cast<CUmemorytype*>(out) = CU_MEMORYTYPE_DEVICE;
    } else {
      *static_cast<int*>(out) = address < kOtherGpu ? kGpu : kGpu + 1;
    }
    return CUDA_SUCCESS;
  };
  api.cuDeviceGetAttribute = [](int* value, CUdevice_attribute attribute, CUdevice device) {
    EXPECT_EQ(device, kGpu);
    *value = attribute == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE ? static_cast<int>(kMegabyte) : 0;
    return CUDA_SUCCESS;
  };
  return api;
}

std::vector<std::pair<uint64_t, uint64_t>> Merged(std::vector<core::MemoryRange> memory) {
  std::vector<std::pair<uint64_t, uint64_t>> out;
  for (const core::MemoryRange& range : MergedForWarming(memory)) {
    out.emplace_back(range.address, range.bytes);
  }
  return out;
}

using Ranges = std::vector<std::pair<uint64_t, uint64_t>>;

TEST(MergedForWarmingTest, RangesThatNearlyTouchAreOneWhateverTheirOrder) {
  EXPECT_EQ(Merged({{8192, 512}, {0x1000, 1024}, {0x1400, 512}}), (Ranges{{4096, 4608}}));
  EXPECT_EQ(Merged({{4096, 1024}, {4096 + 1024 + 4080, 1024}}), (Ranges{{4096, 6128}}));
  EXPECT_EQ(Merged({{4096, 1024}, {4096 + 1024 + 4096, 1024}}),
            (Ranges{{4096, 1024}, {9216, 1024}}))
      << "a page may be missing between them";
}

TEST(MergedForWarmingTest, ARangeWithinAnotherAddsNothing) {
  EXPECT_EQ(Merged({{4096, 4096}, {5120, 16}, {4096, 4096}}), (Ranges{{4096, 4096}}));
}

TEST(MergedForWarmingTest, NothingOutsideARangeIsRead) {
  EXPECT_EQ(Merged({{4097, 31}}), (Ranges{{4112, 16}}));
  EXPECT_EQ(Merged({{4097, 30}}), (Ranges{}));
  EXPECT_EQ(Merged({}), (Ranges{}));
}

core::KernelDesc With(std::vector<core::MemoryRange> memory) {
  core::KernelDesc kernel;
  kernel.name = "network";
  kernel.code = core::GraphCode{.warm_memory = std::move(memory)};
  return kernel;
}

TEST(WarmNodesTest, MemoryOfTheGpuThatFitsIsTaken) {
  const Context context(FakeDriver(), kGpu, FakePrimary());
  EXPECT_TRUE(CheckWarmMemory(context, With({})).ok());
  EXPECT_TRUE(CheckWarmMemory(context, With({{kMemory, kMegabyte}})).ok());
  const absl::Status large =
      CheckWarmMemory(context, With({{kMemory, kMegabyte}, {kMemoryEnd - 1, 1}}));
  EXPECT_EQ(large.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(large.message(),
            "The warm memory of graph 'network' has 1048577 bytes, and the L2 cache has 1048576.");
}

TEST(WarmNodesTest, ARangeThatLeavesTheMemoryOfTheGpuIsRefused) {
  const Context context(FakeDriver(), kGpu, FakePrimary());
  for (const core::MemoryRange& range :
       {core::MemoryRange{kMemory - 1, 16}, core::MemoryRange{kMemoryEnd - 15, 16},
        core::MemoryRange{kOtherGpu, 16}, core::MemoryRange{kOtherGpu + kMegabyte - 15, 16}}) {
    const absl::Status status = CheckWarmMemory(context, With({{kMemory, 16}, range}));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(),
              "Range 1 of the warm memory of graph 'network', 16 bytes, is not in the memory of "
              "this GPU.");
  }
}

// Looks into the spans while they live: a kernel node copies its parameters when it is added.
struct AddedNode {
  CUcontext context;
  CUkernel kernel;
  WarmSpans spans;
};
std::vector<AddedNode>& Added() {
  static std::vector<AddedNode> added;
  return added;
}

TEST(WarmNodesTest, EveryRangeIsReadOnceInThePlaceBesideTheGraph) {
  DriverApi api = FakeDriver();
  Added().clear();
  api.cuGraphAddKernelNode = [](CUgraphNode* /*node*/, CUgraph /*graph*/,
                                const CUgraphNode* /*behind*/, size_t count,
                                const CUDA_KERNEL_NODE_PARAMS* params) {
    EXPECT_EQ(count, 0U) << "it waits for nothing";
    Added().push_back(
        {params->ctx, params->kern, *static_cast<const WarmSpans*>(params->kernelParams[0])});
    return CUDA_SUCCESS;
  };
  std::vector<core::MemoryRange> memory;
  for (uint64_t i = 0; i < 2 * kSpansPerWarmNode + 3; ++i)
    memory.push_back({i << 16, 32 * (i + 1)});
  memory.erase(memory.begin());
  FakeGraph graph;
  const auto kernel = reinterpret_cast<CUkernel>(uintptr_t{16});
  const auto place = reinterpret_cast<CUcontext>(uintptr_t{32});
  ASSERT_TRUE(AddWarmNodes(api, kernel, place, memory, graph.handle()).ok());
  ASSERT_EQ(Added().size(), 3U);
  size_t at = 0;
  for (const AddedNode& added : Added()) {
    EXPECT_EQ(added.context, place);
    EXPECT_EQ(added.kernel, kernel);
    for (int i = 0; i < added.spans.count; ++i, ++at) {
      ASSERT_LT(at, memory.size());
      EXPECT_EQ(added.spans.address[i], memory[at].address);
      EXPECT_EQ(added.spans.bytes[i], memory[at].bytes);
    }
  }
  EXPECT_EQ(at, memory.size());
}

}  // namespace
}  // namespace gpushare::cuda
