// How long each node of a graph takes, by executing the graph.
//
// The nodes run as a chain in the order that the cut has, with an event between two of them; what
// an event takes counts with its node, as the gap between two nodes would. The graph's own work is
// done twice: only a graph whose owner allows that may be measured.
// Threads: one at a time; the primary context is current.

#ifndef GPUSHARE_SRC_CUDA_GRAPHS_NODE_TIMES_H_
#define GPUSHARE_SRC_CUDA_GRAPHS_NODE_TIMES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "src/cuda/driver/driver_api.h"
#include "src/cuda/graphs/graph_binder.h"

namespace gpushare::cuda {

// The duration of each of `nodes` in ns, at least 1. `binder` and `stream` are the whole device's.
// The shorter of two runs counts, because the first run loads code.
absl::StatusOr<std::vector<int64_t>> MeasureNodes(const DriverApi& api,
                                                  const std::vector<CUgraphNode>& nodes,
                                                  GraphBinder& binder, CUstream stream);

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_GRAPHS_NODE_TIMES_H_
