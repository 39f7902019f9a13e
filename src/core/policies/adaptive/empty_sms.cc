// Which LC grids wait for empty SMs (empty_sms.h).

#include "src/core/policies/adaptive/empty_sms.h"

#include <algorithm>

#include "src/core/base/tuning.h"
#include "src/core/policies/parts/launch_form.h"
#include "src/core/seams/launch_claims.h"

namespace gpushare::core {

bool GainsByEmptySms(const Snapshot& snapshot) {
  if (snapshot.lc_apps.size() != 1 || snapshot.lc_apps[0].solo_ns < kEmptySmsQueryNs) return false;
  bool takes_l1 = false;
  const auto leaves = [&](const HeadView& task) {
    if (!IsBeCompute(task)) return true;
    takes_l1 = takes_l1 || (task.kind == TaskKind::kKernel && !task.kernel->keeps_l1);
    return CanBeEvicted(snapshot, task);
  };
  // A kernel that can be evicted may run as an ordinary grid, which stays.
  const auto part_leaves = [](const PartView& part) { return ClaimsBlockTasks(part.form); };
  const auto running_leaves = [&](const RunningView& running) {
    return leaves(running.task) &&
           (!IsBeCompute(running.task) ||
            std::all_of(running.parts.begin(), running.parts.end(), part_leaves));
  };
  return std::all_of(snapshot.heads.begin(), snapshot.heads.end(), leaves) &&
         std::all_of(snapshot.running.begin(), snapshot.running.end(), running_leaves) && takes_l1;
}

}  // namespace gpushare::core
