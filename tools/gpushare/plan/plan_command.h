// `gpushare plan`: whether a task set is admitted, its partitions and the bound of each task.
//
// Pure but for the file that it reads; no runtime is opened, and no GPU is needed. Threads: one.

#ifndef GPUSHARE_TOOLS_GPUSHARE_PLAN_PLAN_COMMAND_H_
#define GPUSHARE_TOOLS_GPUSHARE_PLAN_PLAN_COMMAND_H_

#include <string>

#include "src/models/partition/planner.h"
#include "src/models/partition/task_set.h"

namespace gpushare::tool {

struct PlanRequest {
  std::string file;
  models::partition::PlanOptions options;
};

struct Planned {
  models::partition::TaskSet set;
  models::partition::PlanOptions options;
  models::partition::Plan plan;
};

// InputError: the file or an option is not usable.
Planned PlanTaskSet(const PlanRequest& request);

// A row for each task, by partition, and the reason of a no.
std::string TextOf(const Planned& planned);
// docs/command.md has the members.
std::string JsonOf(const Planned& planned);
// The device as a bar of its SMs, a rectangle for each partition.
std::string SvgOf(const Planned& planned);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_PLAN_PLAN_COMMAND_H_
