// The apps of a run, each with its reservation or quota if the plan asks for it.
//
// Threads: the load thread.

#ifndef GPUSHARE_TOOLS_GPUSHARE_RUN_APPS_H_
#define GPUSHARE_TOOLS_GPUSHARE_RUN_APPS_H_

#include "tools/gpushare/base/library.h"
#include "tools/gpushare/run/run_plan.h"

namespace gpushare::tool {

AppHandle CreateLcApp(gpushare_runtime* runtime, const LcPlan& plan, int tasks_max);
// Partitions for the periodic apps that exist. Again: their counts of jobs begin anew.
void PlanPartitions(gpushare_runtime* runtime, const PartitionSpec& spec);
AppHandle CreateBeApp(gpushare_runtime* runtime, const BePlan& plan);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_RUN_APPS_H_
