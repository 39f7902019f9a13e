// Owns a CUDA graph until the end of a scope.
//
// Threads: any; the primary context is current.

#ifndef GPUSHARE_SRC_CUDA_GRAPHS_GRAPH_HANDLE_H_
#define GPUSHARE_SRC_CUDA_GRAPHS_GRAPH_HANDLE_H_

#include <memory>
#include <type_traits>

#include "src/cuda/driver/driver_api.h"

namespace gpushare::cuda {

struct GraphDestroyer {
  const DriverApi* api = nullptr;
  void operator()(CUgraph graph) const { api->cuGraphDestroy(graph); }
};
using GraphHandle = std::unique_ptr<std::remove_pointer_t<CUgraph>, GraphDestroyer>;

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_GRAPHS_GRAPH_HANDLE_H_
