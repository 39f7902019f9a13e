// What tests of cut graphs register: a fused pair, and a graph that is cut for it.

#ifndef GPUSHARE_TESTS_CORE_FLOW_CUT_NETWORK_H_
#define GPUSHARE_TESTS_CORE_FLOW_CUT_NETWORK_H_

#include <initializer_list>

#include "src/core/seams/kernel.h"

namespace gpushare::core {

inline FusedKernelDesc FusedPair(KernelId tensor, KernelId cuda) {
  FusedKernelDesc fused;
  fused.name = "pair";
  fused.tensor_part = tensor;
  fused.cuda_part = cuda;
  fused.opportune_load_ratio = 0.8;
  fused.opportune_duration_ratio = 1.1;
  return fused;
}

// Nodes of 100 us, each of the named kernel; "": of one that is not registered.
inline KernelDesc CutNetwork(std::initializer_list<const char*> kernels) {
  KernelDesc network;
  network.name = "network";
  network.code = GraphCode{.segment_ns = -1, .measure_nodes = true};
  network.simulation.present = true;
  GraphNode node = {.duration_ns = 100'000, .blocks = 132, .demand = {}};
  for (const char* kernel : kernels) {
    node.kernel = kernel;
    network.simulation.nodes.push_back(node);
  }
  return network;
}

}  // namespace gpushare::core

#endif  // GPUSHARE_TESTS_CORE_FLOW_CUT_NETWORK_H_
