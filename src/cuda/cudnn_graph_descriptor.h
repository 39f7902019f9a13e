// Descriptors of cuDNN's graph interface: each is created, given its attributes, and finalised, and
// then never changes. Included only where cudnn.h is. Threads: one at a time.

#ifndef GPUSHARE_SRC_CUDA_CUDNN_GRAPH_DESCRIPTOR_H_
#define GPUSHARE_SRC_CUDA_CUDNN_GRAPH_DESCRIPTOR_H_

#include <cudnn.h>

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "src/cuda/cudnn_common.h"

namespace gpushare::cuda {

struct GraphDescriptorEnd {
  decltype(&::cudnnBackendDestroyDescriptor) end = nullptr;
  void operator()(void* descriptor) const { end(descriptor); }
};

// Ends itself. Descriptors that it was made of must outlive it.
using GraphDescriptor = std::unique_ptr<void, GraphDescriptorEnd>;

struct GraphAttribute {
  cudnnBackendAttributeName_t name;
  cudnnBackendAttributeType_t type;
  int64_t count;
  const void* values;  // `count` of the type; a descriptor is a pointer to its handle
};

// What cuDNN fills in: an engine of a configuration, a configuration that the heuristics found.
absl::Status CreateGraphDescriptor(const CudnnApi& api, cudnnBackendDescriptorType_t type,
                                   GraphDescriptor& out);

// One with these attributes, finalised. `out` stays as it was on an error, which names the
// descriptor and the attribute by their numbers in cudnn_graph.h.
absl::Status MakeGraphDescriptor(const CudnnApi& api, cudnnBackendDescriptorType_t type,
                                 absl::Span<const GraphAttribute> attributes, GraphDescriptor& out);

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_CUDNN_GRAPH_DESCRIPTOR_H_
