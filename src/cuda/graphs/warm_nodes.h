// Nodes that read a graph's memory into the L2 cache beside its first nodes.
//
// BE work displaces what a query reads from L2, and its kernels then wait for DRAM one after
// another: DenseNet-121, whose weights fit, takes 1.95 ms on an H200 instead of 1.74, and 1.83 if
// all weights are read at once. The nodes wait for no other, and only the graph's end for them.
// Threads: one at a time; the primary context is current.

#ifndef GPUSHARE_SRC_CUDA_GRAPHS_WARM_NODES_H_
#define GPUSHARE_SRC_CUDA_GRAPHS_WARM_NODES_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "src/core/seams/kernel.h"
#include "src/cuda/driver/context.h"
#include "src/cuda/driver/driver_api.h"

namespace gpushare::cuda {

// The ranges in the order of their addresses, cut to whole units of 16 bytes. Ranges that nearly
// touch become one.
std::vector<core::MemoryRange> MergedForWarming(absl::Span<const core::MemoryRange> memory);

// INVALID_ARGUMENT unless both ends of each range are memory of the context's GPU and the ranges
// together fit into L2.
absl::Status CheckWarmMemory(const Context& context, const core::KernelDesc& graph);

// Adds the nodes to `graph`, in the context of its place. `warm`: WarmKernel().
absl::Status AddWarmNodes(const DriverApi& api, CUkernel warm, CUcontext context,
                          absl::Span<const core::MemoryRange> memory, CUgraph graph);

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_GRAPHS_WARM_NODES_H_
