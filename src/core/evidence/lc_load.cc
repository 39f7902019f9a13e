// The load of an LC app from its busy periods. See lc_load.h.

#include "src/core/evidence/lc_load.h"

#include <algorithm>
#include <cmath>

#include "src/core/evidence/tuning.h"

namespace gpushare::core {
namespace {

// Adds the time since the last change to the exponentially weighted load.
void Advance(LcLoad& load, LoadDecay& decay, TimeNs now_ns) {
  if (now_ns <= load.updated_ns) return;
  const double keep = decay.KeepOver(now_ns - load.updated_ns);
  const bool counts = load.busy && !load.only_waits;
  const double busy = counts ? 1 - keep : 0;
  load.sum = load.sum * keep + busy;
  load.weight = load.weight * keep + (1 - keep);
  load.busy_sum = load.busy_sum * keep + busy;
  if (counts) load.busy_ns += now_ns - load.updated_ns;
  load.updated_ns = now_ns;
}

}  // namespace

void BeginBusy(LcLoad& load, LoadDecay& decay, TimeNs now_ns) {
  if (load.busy) return;
  Advance(load, decay, now_ns);
  load.busy = true;
}

void EndBusyPeriod(LcLoad& load, LoadDecay& decay, TimeNs now_ns) {
  Advance(load, decay, now_ns);
  if (load.busy_ns > 0 && load.busy_solo_ns < load.busy_ns) {
    const double longer =
        1 - static_cast<double>(load.busy_solo_ns) / static_cast<double>(load.busy_ns);
    load.sum = std::max(0.0, load.sum - load.busy_sum * longer);
  }
  load.busy_sum = 0;
  load.busy_ns = load.busy_solo_ns = 0;
  load.busy = false;
  load.idle_since_ns = now_ns;
}

double LoadAt(LcLoad& load, LoadDecay& decay, bool only_waits, TimeNs now_ns) {
  Advance(load, decay, now_ns);
  load.only_waits = only_waits;
  return LoadSeen(load);
}

double LoadError(double load, int64_t query_ns, TimeNs first_arrival_ns, TimeNs now_ns) {
  const auto seen = static_cast<double>(now_ns - first_arrival_ns) / kLoadWindowNs;
  const double weight = seen > kLoadWindowsKept ? 1 : 1 - std::exp(-seen);
  const double solo_ns = static_cast<double>(std::max<int64_t>(query_ns, 1));
  const double query = solo_ns / (2 * kLoadWindowNs * weight / (2 - weight) + solo_ns);
  return std::sqrt((load + query) * query);
}

}  // namespace gpushare::core
