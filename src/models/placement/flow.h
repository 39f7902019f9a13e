// Assignment as a flow of least cost: supplies go to sinks over arcs, as many as possible, and of
// those the ones of the largest value.
//
//   FlowProblem flow;
//   flow.supplies = {3, 1};
//   flow.sinks = {{.layers = {{.capacity = 2}}}, {.layers = {{.capacity = 2}}}};
//   flow.arcs = {{.supply = 0, .sink = 1, .capacity = 2, .value = 500'000}, ...};
//   const std::vector<int64_t> units = Solve(flow);   // by arc
//
// Exact: network simplex of LEMON. Values are whole, so the same problem has the same answer on
// every machine. Threads: any.

#ifndef GPUSHARE_SRC_MODELS_PLACEMENT_FLOW_H_
#define GPUSHARE_SRC_MODELS_PLACEMENT_FLOW_H_

#include <cstdint>
#include <vector>

namespace gpushare::models::placement {

struct FlowArc {
  int32_t supply = 0;
  int32_t sink = 0;
  int64_t capacity = 0;
  int64_t value = 0;  // of a unit
};

// Units into a sink: each layer adds its value to a unit that is in it. A flow fills layers of
// larger value first, so they fall.
struct FlowLayer {
  int64_t capacity = 0;
  int64_t value = 0;
};

struct FlowSink {
  std::vector<FlowLayer> layers;
};

struct FlowProblem {
  std::vector<int64_t> supplies;
  std::vector<FlowSink> sinks;
  std::vector<FlowArc> arcs;
  // False: a unit goes only where it adds value. True: as many units as possible come first.
  bool as_many_as_possible = true;
};

// With 2^17 nodes the costs of the network stay within 64 bits.
inline constexpr int64_t kFlowValueMax = int64_t{1} << 23;

// Units by arc; empty where nothing can go.
std::vector<int64_t> Solve(const FlowProblem& problem);

}  // namespace gpushare::models::placement

#endif  // GPUSHARE_SRC_MODELS_PLACEMENT_FLOW_H_
