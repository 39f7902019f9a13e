// Reads a graph's memory into the L2 cache beside its first nodes. See warm_nodes.h.

#include "src/cuda/graphs/warm_nodes.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "src/cuda/driver/errors.h"
#include "src/cuda/graphs/warm_kernel.h"

namespace gpushare::cuda {
namespace {

constexpr uint64_t kLoadBytes = 16;
// A gap between two ranges that is shorter than any page may be read too: it lies on a page of one
// of the ranges.
constexpr uint64_t kGapMax = 4096;

bool IsOfGpu(const Context& context, uint64_t address) {
  const DriverApi& api = context.api();
  CUmemorytype type = {};
  int ordinal = -1;
  return api.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) ==
             CUDA_SUCCESS &&
         api.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) ==
             CUDA_SUCCESS &&
         type == CU_MEMORYTYPE_DEVICE && ordinal == context.device();
}

}  // namespace

std::vector<core::MemoryRange> MergedForWarming(absl::Span<const core::MemoryRange> memory) {
  std::vector<core::MemoryRange> merged;
  std::vector<core::MemoryRange> sorted(memory.begin(), memory.end());
  std::sort(
      sorted.begin(), sorted.end(),
      [](const core::MemoryRange& a, const core::MemoryRange& b) { return a.address < b.address; });
  for (const core::MemoryRange& range : sorted) {
    const uint64_t begin = (range.address + kLoadBytes - 1) / kLoadBytes * kLoadBytes;
    const uint64_t end = (range.address + range.bytes) / kLoadBytes * kLoadBytes;
    if (begin >= end) continue;
    if (!merged.empty() && begin < merged.back().end() + kGapMax) {
      merged.back().bytes = std::max(merged.back().end(), end) - merged.back().address;
    } else {
      merged.push_back({begin, end - begin});
    }
  }
  return merged;
}

absl::Status CheckWarmMemory(const Context& context, const core::KernelDesc& graph) {
  const std::vector<core::MemoryRange>& memory = graph.graph()->warm_memory;
  uint64_t bytes = 0;
  for (size_t i = 0; i < memory.size(); ++i) {
    const core::MemoryRange& range = memory[i];
    bytes += range.bytes;
    if (IsOfGpu(context, range.address) && IsOfGpu(context, range.end() - 1)) continue;
    return absl::InvalidArgumentError(absl::StrCat("Range ", i, " of the warm memory of graph '",
                                                   graph.name, "', ", range.bytes,
                                                   " bytes, is not in the memory of this GPU."));
  }
  const int l2_bytes = memory.empty() ? 0 : context.Attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  if (bytes <= static_cast<uint64_t>(l2_bytes)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("The warm memory of graph '", graph.name, "' has ",
                                                 bytes, " bytes, and the L2 cache has ", l2_bytes,
                                                 "."));
}

absl::Status AddWarmNodes(const DriverApi& api, CUkernel warm, CUcontext context,
                          absl::Span<const core::MemoryRange> memory, CUgraph graph) {
  const std::vector<core::MemoryRange> merged = MergedForWarming(memory);
  for (size_t at = 0; at < merged.size();) {
    WarmSpans spans = {};
    for (; at < merged.size() && spans.count < kSpansPerWarmNode; ++at) {
      spans.address[spans.count] = merged[at].address;
      spans.bytes[spans.count++] = merged[at].bytes;
    }
    void* arguments[] = {&spans};
    CUDA_KERNEL_NODE_PARAMS params = {};
    params.kern = warm;
    params.ctx = context;
    params.gridDimX = kWarmBlocks;
    params.gridDimY = params.gridDimZ = 1;
    params.blockDimX = kWarmThreads;
    params.blockDimY = params.blockDimZ = 1;
    params.kernelParams = arguments;
    CUgraphNode added = nullptr;
    GPUSHARE_CU_RETURN(api, cuGraphAddKernelNode(&added, graph, nullptr, 0, &params));
  }
  return absl::OkStatus();
}

}  // namespace gpushare::cuda
