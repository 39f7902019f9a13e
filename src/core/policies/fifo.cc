// fifo: everything in order of submission (fifo.h).

#include "src/core/policies/fifo.h"

#include <array>
#include <utility>

#include "src/core/policies/baseline.h"
#include "src/core/policies/lc_first.h"
#include "src/core/policies/quiet.h"

namespace gpushare::core {

void FifoPolicy::MakePlan(const Snapshot& snapshot, Plan& plan) {
  if (PlannedForQuiet(snapshot, plan)) return;
  LcRoute route;
  route.lane_class = LaneClass::kPlain;
  route.fast_path = false;
  PublishRoutes(snapshot, route, plan);

  // Heads come in order of submission already; the insertion keeps the promise at no cost if the
  // rest of an evicted task was put at the end.
  std::array<const HeadView*, kMaxHeads> order;
  size_t count = 0;
  for (const HeadView& head : snapshot.heads) {
    if (count == order.size()) break;
    size_t at = count++;
    order[at] = &head;
    for (; at > 0 && order[at - 1]->sequence > head.sequence; --at) {
      std::swap(order[at - 1], order[at]);
    }
  }
  for (size_t i = 0; i < count; ++i) {
    if (!LaunchAsItComes(*order[i], LaneClass::kPlain, plan)) return;
  }
}

}  // namespace gpushare::core
