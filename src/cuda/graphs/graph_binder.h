// Moves the kernels of a graph to the context of a place.
//
// A graph binds its nodes to the context of its capture. A kernel node can change context if its
// CUkernel is known, or if its CUfunction, which belongs to one context, has one
// (function_kernels.h). What the
// application or a library set on the function in the first context (dynamic shared memory above
// 48 KB, cluster sizes that are not portable) is set on the place's function too.
// Threads: one at a time; the primary context is current.

#ifndef GPUSHARE_SRC_CUDA_GRAPHS_GRAPH_BINDER_H_
#define GPUSHARE_SRC_CUDA_GRAPHS_GRAPH_BINDER_H_

#include <array>
#include <cstddef>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/core/base/types.h"
#include "src/cuda/driver/context.h"
#include "src/cuda/driver/places.h"
#include "src/cuda/graphs/function_kernels.h"

namespace gpushare::cuda {

// The depth of child graphs is bounded, and so is the recursion.
inline constexpr int kGraphDepthMax = 8;

// The attributes of a kernel node that differ from CUDA's defaults. The driver copies attributes
// only between nodes of one context.
class NodeAttributes {
 public:
  // The attribute of the node that its copy would lack, because Set cannot give it: the end of a
  // sentence that begins "The kernel". Null if there is none.
  static const char* LostByCopy(const DriverApi& api, CUgraphNode node);
  static NodeAttributes Of(const DriverApi& api, CUgraphNode node);
  absl::Status Set(const DriverApi& api, CUgraphNode node) const;

 private:
  static constexpr size_t kCount = 7;
  static const std::array<CUlaunchAttributeID, kCount> kIds;

  std::array<CUlaunchAttributeValue, kCount> values_{};
  std::array<bool, kCount> present_{};
};

class GraphBinder {
 public:
  // `functions`: the graph's; null: only kernels that are known leave their context.
  GraphBinder(const Context& context, const Places& places, core::PlaceIndex place,
              FunctionKernels* functions = nullptr)
      : api_(context.api()),
        place_(place),
        target_(places.place(place).context),
        functions_(functions) {}

  // The context that the nodes of the place are bound to.
  CUcontext target() const { return target_; }
  // Binds the parameters of one kernel node. False if the kernel cannot leave its context.
  absl::StatusOr<bool> BindParams(CUDA_KERNEL_NODE_PARAMS& params);
  // Binds every kernel of the graph and of its child graphs; false if one cannot leave its context.
  // Memory copies need no SM and stay in their context.
  absl::StatusOr<bool> BindGraph(CUgraph graph) { return Bind(graph, false); }
  // The same for a graph that was captured in the place: its kernels are there already, and its
  // functions are not.
  absl::StatusOr<bool> BindFunctions(CUgraph graph) { return Bind(graph, true); }
  // Whether BindGraph can bind the graph to the context of any place.
  static absl::StatusOr<bool> CanBind(const DriverApi& api, CUgraph graph,
                                      FunctionKernels& functions);

 private:
  absl::StatusOr<bool> Bind(CUgraph graph, bool functions_only);
  // Sets on the kernel's function here what is set on `from`.
  absl::Status CopyFunctionAttributes(CUkernel kernel, CUfunction from);

  const DriverApi& api_;
  const core::PlaceIndex place_;
  const CUcontext target_;
  FunctionKernels* const functions_;
  // Kernels whose functions here have the attributes of a function.
  std::set<std::pair<CUkernel, CUfunction>> matched_;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_GRAPHS_GRAPH_BINDER_H_
