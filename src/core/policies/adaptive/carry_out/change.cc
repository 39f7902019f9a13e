// Changing from one arrangement to another (carry_out/change.h).

#include "src/core/policies/adaptive/carry_out/change.h"

#include <algorithm>

#include "src/core/policies/parts/be_quota.h"
#include "src/core/policies/parts/blocking.h"
#include "src/core/policies/parts/eviction.h"
#include "src/core/seams/launch_claims.h"

namespace gpushare::core {
namespace {

bool IsConfinedBe(const HeadView& task) {
  return task.app_class == AppClass::kBestEffort && task.kind != TaskKind::kMemcpy &&
         task.confinable;
}

}  // namespace

PlaceIndex LcPlaceOf(const Snapshot& snapshot, int32_t split) {
  return split < 0 ? kWholeDevice : snapshot.splits[static_cast<size_t>(split)].lc_place;
}

uint64_t BePlacesOf(const Snapshot& snapshot, int32_t split) {
  if (split < 0) return PlaceBit(kWholeDevice);
  const SplitView& view = snapshot.splits[static_cast<size_t>(split)];
  return PlaceBit(view.lc_place) | PlaceBit(view.be_place);
}

int64_t BlockingOfChange(const Snapshot& snapshot, int32_t from, int32_t to) {
  if (from == to || from < 0) return 0;
  const auto overlaps = [&](int32_t split) {
    return snapshot.places[static_cast<size_t>(LcPlaceOf(snapshot, split))].overlaps;
  };
  const uint64_t newly = overlaps(to) & ~overlaps(from);
  int64_t blocking_ns = 0;
  for (const RunningView& running : snapshot.running) {
    if (!IsConfinedBe(running.task)) continue;
    for (const PartView& part : running.parts) {
      if (part.place < 0 || (newly & PlaceBit(part.place)) == 0) continue;
      const int64_t part_ns = ClaimsBlockTasks(part.form)
                                  ? BlockingOn(snapshot, running.task, part.place)
                                  : RemainingOn(snapshot, running.task, part.place);
      blocking_ns = std::max(blocking_ns, part_ns);
    }
  }
  return blocking_ns;
}

void EvictForChange(const Snapshot& snapshot, int32_t split, uint64_t except, Plan& plan) {
  if (!snapshot.eviction_available || snapshot.running.empty()) return;
  const uint64_t places = ~(BePlacesOf(snapshot, split) | except);
  const BeQuotas quotas(snapshot, split);
  for (const RunningView& running : snapshot.running) {
    if (!IsConfinedBe(running.task)) continue;
    if (quotas.IsUnbounded(running.task)) continue;
    if (quotas.IsConfined(running.task)) {
      const uint64_t kept = PlaceBit(quotas.HomeOf(running.task));
      EvictTaskParts(running, ~(kept | except), Reason::kEvictForQuota, plan);
      continue;
    }
    // Beside a split a graph in segments may have the whole device (be_places.h).
    const uint64_t whole =
        RunsInSegments(snapshot, running.task) ? PlaceBit(kWholeDevice) : uint64_t{0};
    EvictTaskParts(running, places & ~whole, Reason::kEvictForLayout, plan);
  }
}

}  // namespace gpushare::core
