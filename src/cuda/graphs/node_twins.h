// Nodes of a graph that may run as the workers of a twin.
//
// Where in the flow: registration, once a measured graph is cut. A segment that is one kernel node,
// longer than segment_ns, is evicted between its block tasks if the application has registered the
// PTX of its function (gpushare_kernel_register_ptx with original_function). The segment keeps its
// instance, which longer segments and lanes without an eviction word use.
// A node is left as it is if it has no twin, or if a launch of the twin would not be the same:
// other blocks, other dynamic shared memory, clusters, a cooperative launch, a window of the L2
// cache. Threads: one at a time; the primary context is current. A twin never changes.

#ifndef GPUSHARE_SRC_CUDA_GRAPHS_NODE_TWINS_H_
#define GPUSHARE_SRC_CUDA_GRAPHS_NODE_TWINS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "src/cuda/code/prepared_functions.h"
#include "src/cuda/graphs/graph_segments.h"

namespace gpushare::cuda {

struct NodeTwin {
  WorkerTwin twin;
  std::array<unsigned int, 3> grid{1, 1, 1};
  int64_t block_tasks = 0;
  int64_t block_task_ns = 0;  // one of them, as the node's duration and the rounds of its grid say
  // Of the original, one behind the other, and where each of them begins.
  std::vector<std::byte> arguments;
  std::vector<size_t> offsets;

  // The addresses that a launch takes behind that of the header.
  void Fill(ParameterAddresses& addresses) const;
};

// By segment of the cut; null: it runs to its end. Empty where no segment has a twin.
using NodeTwins = std::vector<std::unique_ptr<NodeTwin>>;

// The twin of a function; none: it has none (PreparedFunctions::TwinOf).
using TwinOfFunction = absl::FunctionRef<std::optional<WorkerTwin>(CUfunction)>;

// The launch of a registered kernel that the node is, without how long a block task takes. Null if
// it is none. Errors: the driver's.
absl::StatusOr<std::unique_ptr<NodeTwin>> FindNodeLaunch(const DriverApi& api, CUgraphNode node,
                                                         TwinOfFunction twin_of);

// `sms`: of the whole device, on which the nodes were measured. A node that the driver does not
// describe has no twin. Errors: DATA_LOSS the device is lost.
absl::StatusOr<NodeTwins> FindNodeTwins(const DriverApi& api, const SegmentedGraph& cut,
                                        int64_t segment_ns, int32_t sms, TwinOfFunction twin_of);

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_GRAPHS_NODE_TWINS_H_
