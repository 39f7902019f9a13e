// Descriptors of cuDNN's graph interface. Each one is created, gets its attributes and is
// finalised; then it never changes. Only files that compile with cudnn.h include it.
//
// Threads: one at a time.

#ifndef GPUSHARE_SRC_CUDA_LIBRARY_CUDNN_GRAPH_DESCRIPTOR_H_
#define GPUSHARE_SRC_CUDA_LIBRARY_CUDNN_GRAPH_DESCRIPTOR_H_

#include <cudnn.h>

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "src/cuda/library/cudnn_common.h"

namespace gpushare::cuda {

struct GraphDescriptorEnd {
  decltype(&::cudnnBackendDestroyDescriptor) end = nullptr;
  void operator()(void* descriptor) const { end(descriptor); }
};

// Destroys itself. The descriptors that it refers to must outlive it.
using GraphDescriptor = std::unique_ptr<void, GraphDescriptorEnd>;

struct GraphAttribute {
  cudnnBackendAttributeName_t name;
  cudnnBackendAttributeType_t type;
  int64_t count;
  const void* values;  // `count` values of `type`; for a descriptor, a pointer to its handle
};

// Creates an empty descriptor for cuDNN to fill: the engine of a configuration, or a configuration
// of the heuristics.
absl::Status CreateGraphDescriptor(const CudnnApi& api, cudnnBackendDescriptorType_t type,
                                   GraphDescriptor& out);

// Creates a descriptor with these attributes and finalises it. On an error `out` keeps its value;
// the message gives the numbers of the descriptor and the attribute in cudnn_graph.h.
absl::Status MakeGraphDescriptor(const CudnnApi& api, cudnnBackendDescriptorType_t type,
                                 absl::Span<const GraphAttribute> attributes, GraphDescriptor& out);

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_LIBRARY_CUDNN_GRAPH_DESCRIPTOR_H_
