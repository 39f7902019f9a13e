// A long run of everything at once through the public API: LC apps with Poisson queries, BE apps
// with every kind of task, reservations and quotas that come and go, apps that end and begin, tasks
// that are cancelled, waits that run out, quiesces, policies that change.
//
// Checks: every accepted task completes exactly once, by its ticket, its callback and its app's
// counters; every answer of a task that was not cancelled is right; no call answers a status that
// this file does not expect; memory stays flat.
//
// Threads: on a GPU the apps are shared among a few threads beside the library's own; on a device
// in virtual time everything runs on the caller's thread, so that a seed repeats a run. Blocks for
// as long as asked.

#ifndef GPUSHARE_BENCHMARKS_SOAK_SOAK_H_
#define GPUSHARE_BENCHMARKS_SOAK_SOAK_H_

#include "benchmarks/soak/soak_report.h"

namespace gpushare::soak {

// Nothing thrown; what cannot start is a failure too.
Report RunSoak(const Options& options);

}  // namespace gpushare::soak

#endif  // GPUSHARE_BENCHMARKS_SOAK_SOAK_H_
