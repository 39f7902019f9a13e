// Which GPU of a warehouse has which service and which BE instances: at random, or assigned by
// what pairs are known to do (src/models/placement).
//
// Both place every instance, ten a GPU for example, and neither looks at QoS: as in Baymax 7.6, the
// scheduler of the GPU has to keep it. Pure. Threads: any.

#ifndef GPUSHARE_TOOLS_GPUSHARE_DATACENTER_PLACING_H_
#define GPUSHARE_TOOLS_GPUSHARE_DATACENTER_PLACING_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tools/gpushare/datacenter/warehouse.h"

namespace gpushare::tool {

struct PlacedGpu {
  int32_t service = 0;
  int32_t replica = 0;      // which GPU of its service, in the order of the GPUs
  std::vector<int32_t> be;  // indices into Scenario::be, one a slot, in order
};

// `be_time` by service, then by BE app; used by Placing::kAssigned alone. BE instances are divided
// evenly among BE apps, GPUs among services. Deterministic by the scenario's seed. RunError if an
// instance has no GPU.
std::vector<PlacedGpu> PlaceWarehouse(const Warehouse& warehouse, Placing placing,
                                      const std::vector<std::vector<double>>& be_time);

// The indices of `count` GPUs that are evenly spaced in the order of services and replicas, so that
// every service has its share.
std::vector<size_t> EvenlySpaced(const std::vector<PlacedGpu>& gpus, size_t count);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_DATACENTER_PLACING_H_
