// Speed on fewer SMs and beside a neighbour; see scaling.h.

#include "src/models/durations/scaling.h"

#include <algorithm>

#include "src/models/durations/thesis_scaling.h"

namespace gpushare::models {
namespace {

using core::GraphNode;
using core::KernelDesc;
using core::ResourceDemand;
using core::SpeedPoint;

// Once bandwidth is short an SM gets it in proportion to its outstanding requests.
double BandwidthWeight(const Side& side, double demand) {
  const double parallelism = side.kernel->simulation.memory_parallelism;
  return side.sms * (parallelism > 0 ? parallelism : demand);
}

// The share of its demand that this side gets of one resource. Unused capacity goes to the other
// side. A side that asks for something has a weight above 0.
double Granted(double ours, double theirs, double our_weight, double their_weight) {
  if (ours <= 0 || ours + theirs <= 1) return 1;
  const double share = our_weight / (our_weight + their_weight);
  return std::clamp(std::max(share, 1 - theirs) / ours, 0.0, 1.0);
}

ResourceDemand DemandOf(const core::KernelCounters& counters) {
  return {counters.issue, counters.tensor, counters.special, counters.dram, counters.l2};
}

}  // namespace

double SpeedOnSms(const KernelDesc& kernel, int32_t sms, int32_t sm_count) {
  if (sms <= 0 || sm_count <= 0) return 0;
  const auto& table = kernel.simulation.speed;
  if (table.empty()) return CountedSpeedOnSms(kernel.counters, sms, sm_count);
  const auto above =
      std::lower_bound(table.begin(), table.end(), sms,
                       [](const SpeedPoint& point, int32_t wanted) { return point.sms < wanted; });
  if (above != table.end() && above->sms == sms) return above->speed;
  // Below the table in proportion to its first point, above it towards 1 on the whole device.
  SpeedPoint low;
  SpeedPoint high{sm_count, 1};
  if (above != table.begin()) low = *(above - 1);
  if (above != table.end()) high = *above;
  if (sms >= high.sms) return 1;
  return low.speed + (high.speed - low.speed) * (sms - low.sms) / (high.sms - low.sms);
}

ResourceDemand MeanDemand(const KernelDesc& kernel) {
  const core::SimulationRecord& record = kernel.simulation;
  if (!record.present && kernel.counters.present()) return DemandOf(kernel.counters);
  if (record.nodes.empty()) return record.demand;
  ResourceDemand mean;
  double total = 0;
  for (const GraphNode& node : record.nodes) {
    const double time = static_cast<double>(node.duration_ns) * node.repeat;
    mean.dram += node.demand.dram * time;
    mean.l2 += node.demand.l2 * time;
    total += time + static_cast<double>(record.node_gap_ns) * node.repeat;
  }
  if (total <= 0) return record.demand;
  mean.dram /= total;
  mean.l2 /= total;
  // If the nodes have no demands, that of the record counts.
  return mean.dram > 0 || mean.l2 > 0 ? mean : record.demand;
}

double SpeedBesideNeighbour(const Side& self, const Side& neighbour, int32_t sm_count) {
  return SpeedBesideNeighbour(self, MeanDemand(*self.kernel), neighbour,
                              MeanDemand(*neighbour.kernel), sm_count);
}

double SpeedBesideNeighbour(const Side& self, const ResourceDemand& ours, const Side& neighbour,
                            const ResourceDemand& theirs, int32_t sm_count) {
  // Demands are those on the whole device at full speed; on fewer SMs they shrink with the speed.
  const double our_speed = SpeedOnSms(*self.kernel, self.sms, sm_count);
  const double their_speed = SpeedOnSms(*neighbour.kernel, neighbour.sms, sm_count);
  const double dram =
      Granted(ours.dram * our_speed, theirs.dram * their_speed, BandwidthWeight(self, ours.dram),
              BandwidthWeight(neighbour, theirs.dram));
  const double l2 = Granted(ours.l2 * our_speed, theirs.l2 * their_speed,
                            BandwidthWeight(self, ours.l2), BandwidthWeight(neighbour, theirs.l2));
  return std::min(dram, l2);
}

}  // namespace gpushare::models
