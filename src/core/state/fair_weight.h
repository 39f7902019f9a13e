// The weights by which BE apps share the device, beside quotas.
//
// Weights share what quotas leave (max-min fairness). An app whose share by weight is more than its
// quota counts with the smaller weight that gives it the quota, and the others share the rest. So
// no app gets less than its floor, which is what the quotas of the others leave of the device:
// where apps wait for each other, those that may hold more CapSMs get more turns.
//
// Threads: the one that runs Tick. Pure; nothing allocates.

#ifndef GPUSHARE_SRC_CORE_STATE_FAIR_WEIGHT_H_
#define GPUSHARE_SRC_CORE_STATE_FAIR_WEIGHT_H_

#include <algorithm>
#include <bitset>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "src/core/base/limits.h"
#include "src/core/base/tuning.h"

namespace gpushare::core {

// Lowers the weights of apps that their quotas bind. `quotas`: by app, 0 for none. `capsms`: what
// all apps share. At most kMaxApps.
inline void BoundByQuotas(absl::Span<const int32_t> quotas, double capsms,
                          absl::Span<double> weights) {
  const size_t count = weights.size();
  std::bitset<kMaxApps> bound;
  double level = 0;  // CapSMs for a unit of weight
  for (bool found = true; found && bound.count() < count;) {
    double left = capsms;
    double sharing = 0;
    for (size_t a = 0; a < count; ++a) {
      if (bound[a]) {
        left -= quotas[a];
      } else {
        sharing += weights[a];
      }
    }
    level = left / sharing;
    found = false;
    for (size_t a = 0; a < count; ++a) {
      if (bound[a] || quotas[a] <= 0 || quotas[a] >= level * weights[a]) continue;
      bound.set(a);
      found = true;
    }
  }
  if (bound.count() == count) {  // the app with the largest quota for its weight keeps its weight
    level = 0;
    for (size_t a = 0; a < count; ++a) level = std::max(level, quotas[a] / weights[a]);
  }
  for (size_t a = 0; a < count; ++a) {
    if (bound[a]) weights[a] = std::max(kFairWeightMin, quotas[a] / level);
  }
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_STATE_FAIR_WEIGHT_H_
