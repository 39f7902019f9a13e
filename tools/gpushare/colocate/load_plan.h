// From a case's load to the arrivals of its LC apps: each app gets its share of the load, and its
// rate is that share over the solo time of its query.

#ifndef GPUSHARE_TOOLS_GPUSHARE_COLOCATE_LOAD_PLAN_H_
#define GPUSHARE_TOOLS_GPUSHARE_COLOCATE_LOAD_PLAN_H_

#include <cstdint>
#include <map>
#include <vector>

#include "tools/gpushare/run/run_plan.h"
#include "tools/gpushare/scenario/scenario.h"

namespace gpushare::tool {

// Plans of the LC apps `lc` at the total load `load`. `lc` holds indices into scenario.lc, and
// `solo_ns` has the same keys. An app's arrivals depend on the seed, its name, its share and the
// load, so that cases with the same apps and load have the same arrivals. Throws InputError if an
// app gets no query.
std::vector<LcPlan> PlanLoad(const Scenario& scenario, const std::vector<int>& lc, double load,
                             int64_t queries, const std::map<int, int64_t>& solo_ns);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_COLOCATE_LOAD_PLAN_H_
