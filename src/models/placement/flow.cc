// The flow of least cost by LEMON; see flow.h. The only file that includes it.
//
// Nodes: supplies, sinks, and one end that takes all. An arc from each supply to the end stands for
// units that stay; its cost is above what any chain of changes can gain, so it is used last.

// Constants of LEMON are defined here, so that its library need not be linked.
#define LEMON_ONLY_TEMPLATES

// In the place of LEMON's lock, a mutex that stays held where the allocation of a map fails: the
// destructor of another map would wait for it. A graph belongs to one call here.
#define LEMON_BITS_LOCK_H
namespace lemon::bits {
class Lock {
 public:
  void lock() {}
  void unlock() {}
};
}  // namespace lemon::bits

#include "src/models/placement/flow.h"

#include <lemon/network_simplex.h>
#include <lemon/smart_graph.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <numeric>

namespace gpushare::models::placement {

namespace {

using Graph = lemon::SmartDigraph;
using Simplex = lemon::NetworkSimplex<Graph, int64_t, int64_t>;

struct Network {
  Graph graph;
  std::vector<int64_t> capacity;  // by arc, in the order of the arcs
  std::vector<int64_t> cost;

  void Arc(int from, int to, int64_t units, int64_t cost_of_one) {
    graph.addArc(Graph::nodeFromId(from), Graph::nodeFromId(to));
    capacity.push_back(units);
    cost.push_back(cost_of_one);
  }
};

int64_t LargestValue(const FlowProblem& problem) {
  int64_t largest = 1;
  for (const FlowArc& arc : problem.arcs) largest = std::max(largest, std::abs(arc.value));
  for (const FlowSink& sink : problem.sinks) {
    for (const FlowLayer& layer : sink.layers) largest = std::max(largest, std::abs(layer.value));
  }
  return largest;
}

}  // namespace

std::vector<int64_t> Solve(const FlowProblem& problem) {
  const int supplies = static_cast<int>(problem.supplies.size());
  const int sinks = static_cast<int>(problem.sinks.size());
  const int end = supplies + sinks;
  const int64_t total =
      std::accumulate(problem.supplies.begin(), problem.supplies.end(), int64_t{0});
  std::vector<int64_t> units(problem.arcs.size(), 0);
  if (total == 0 || problem.arcs.empty()) return units;

  Network network;
  network.graph.reserveNode(end + 1);
  network.graph.reserveArc(static_cast<int>(problem.arcs.size()) + supplies + 2 * sinks);
  for (int node = 0; node <= end; ++node) network.graph.addNode();
  for (const FlowArc& arc : problem.arcs) {
    network.Arc(arc.supply, supplies + arc.sink, arc.capacity, -arc.value);
  }
  for (int sink = 0; sink < sinks; ++sink) {
    for (const FlowLayer& layer : problem.sinks[static_cast<size_t>(sink)].layers) {
      network.Arc(supplies + sink, end, layer.capacity, -layer.value);
    }
  }
  // A path visits a node once, and changes at most two arcs there.
  const int64_t stay = problem.as_many_as_possible ? LargestValue(problem) * 4 * (end + 1) : 0;
  for (int supply = 0; supply < supplies; ++supply) {
    network.Arc(supply, end, problem.supplies[static_cast<size_t>(supply)], stay);
  }

  Graph::ArcMap<int64_t> capacity(network.graph);
  Graph::ArcMap<int64_t> cost(network.graph);
  for (size_t i = 0; i < network.cost.size(); ++i) {
    const Graph::Arc arc = Graph::arcFromId(static_cast<int>(i));
    capacity[arc] = network.capacity[i];
    cost[arc] = network.cost[i];
  }
  Graph::NodeMap<int64_t> balance(network.graph, 0);
  for (int supply = 0; supply < supplies; ++supply) {
    balance[Graph::nodeFromId(supply)] = problem.supplies[static_cast<size_t>(supply)];
  }
  balance[Graph::nodeFromId(end)] = -total;

  Simplex simplex(network.graph);
  simplex.upperMap(capacity).costMap(cost).supplyMap(balance);
  // Always feasible: everything may stay. A bounded problem has an optimum.
  if (simplex.run() != Simplex::OPTIMAL) return units;
  for (size_t i = 0; i < units.size(); ++i) {
    units[i] = simplex.flow(Graph::arcFromId(static_cast<int>(i)));
  }
  return units;
}

}  // namespace gpushare::models::placement
