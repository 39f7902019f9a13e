// A task set from a JSON file (docs/partition-planner.md has the fields). Throws InputError.

#ifndef GPUSHARE_TOOLS_GPUSHARE_PLAN_TASK_SET_FILE_H_
#define GPUSHARE_TOOLS_GPUSHARE_PLAN_TASK_SET_FILE_H_

#include <string>
#include <string_view>

#include "src/models/partition/task_set.h"

namespace gpushare::tool {

// `file` names the text in errors. What it returns has passed models::partition::Check.
models::partition::TaskSet ParseTaskSet(std::string_view text, const std::string& file);

models::partition::TaskSet LoadTaskSet(const std::string& path);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_PLAN_TASK_SET_FILE_H_
