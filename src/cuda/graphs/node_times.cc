// Executes a graph as a chain with events. See node_times.h.

#include "src/cuda/graphs/node_times.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <type_traits>

#include "src/cuda/driver/errors.h"
#include "src/cuda/graphs/graph_handle.h"
#include "src/cuda/graphs/graph_segments.h"
#include "src/cuda/graphs/timed_run.h"

namespace gpushare::cuda {
namespace {

constexpr int kRuns = 2;

struct ExecDestroyer {
  const DriverApi* api;
  void operator()(CUgraphExec exec) const { api->cuGraphExecDestroy(exec); }
};
using ExecHandle = std::unique_ptr<std::remove_pointer_t<CUgraphExec>, ExecDestroyer>;

// Adds the chain event, node, event, node, ..., event to the graph `chain`, in which each node
// waits for the one before it.
absl::Status AddChain(const DriverApi& api, const std::vector<CUgraphNode>& nodes,
                      const TimingEvents& events, GraphBinder& binder, CUgraph chain) {
  CUgraphNode last = nullptr;
  GPUSHARE_CU_RETURN(api, cuGraphAddEventRecordNode(&last, chain, nullptr, 0, events[0]));
  for (size_t i = 0; i < nodes.size(); ++i) {
    CUgraphNode added = nullptr;
    absl::Status status = AddNodeCopy(api, chain, nodes[i], binder, added);
    if (!status.ok()) return status;
    const CUgraphEdgeData plain = {};
    GPUSHARE_CU_RETURN(api, cuGraphAddDependencies(chain, &last, &added, &plain, 1));
    GPUSHARE_CU_RETURN(api, cuGraphAddEventRecordNode(&last, chain, &added, 1, events[i + 1]));
  }
  return absl::OkStatus();
}

absl::Status RunOnce(const DriverApi& api, CUgraphExec exec, CUstream stream,
                     const TimingEvents& events, std::vector<int64_t>& times_ns) {
  if (absl::Status status = RunToEnd(api, exec, stream); !status.ok()) return status;
  for (size_t i = 0; i < times_ns.size(); ++i) {
    const absl::StatusOr<int64_t> ns = events.NsBehind(i);
    if (!ns.ok()) return ns.status();
    times_ns[i] = std::min(times_ns[i], *ns);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> MeasureNodes(const DriverApi& api,
                                                  const std::vector<CUgraphNode>& nodes,
                                                  GraphBinder& binder, CUstream stream) {
  TimingEvents events(api);
  if (absl::Status status = events.Make(nodes.size() + 1); !status.ok()) return status;
  CUgraph made = nullptr;
  GPUSHARE_CU_RETURN(api, cuGraphCreate(&made, 0));
  const GraphHandle chain(made, {&api});
  absl::Status status = AddChain(api, nodes, events, binder, made);
  if (!status.ok()) return status;
  CUgraphExec instance = nullptr;
  GPUSHARE_CU_RETURN(api, cuGraphInstantiate(&instance, made, 0));
  const ExecHandle exec(instance, {&api});
  GPUSHARE_CU_RETURN(api, cuGraphUpload(instance, stream));
  std::vector<int64_t> times_ns(nodes.size(), std::numeric_limits<int64_t>::max());
  for (int run = 0; run < kRuns; ++run) {
    status = RunOnce(api, instance, stream, events, times_ns);
    if (!status.ok()) return status;
  }
  return times_ns;
}

}  // namespace gpushare::cuda
