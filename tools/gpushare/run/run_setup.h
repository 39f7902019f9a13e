// What a run makes before its first submission: apps, queues, kernels and reservations, in the
// plan's order. A replay makes the same on a runtime of its own.
//
// Threads: the load thread.

#ifndef GPUSHARE_TOOLS_GPUSHARE_RUN_RUN_SETUP_H_
#define GPUSHARE_TOOLS_GPUSHARE_RUN_RUN_SETUP_H_

#include <memory>
#include <vector>

#include "tools/gpushare/base/library.h"
#include "tools/gpushare/run/app_driver.h"
#include "tools/gpushare/run/kernel_table.h"
#include "tools/gpushare/run/run_plan.h"

namespace gpushare::tool {

struct RunSetup {
  // `plan` and `fault` must outlive the setup. Throws InputError or RunError.
  RunSetup(RuntimeHandle opened, const RunPlan& plan, RunFault& fault);

  RuntimeHandle runtime;
  KernelTable kernels;
  std::vector<std::unique_ptr<LcDriver>> lc;
  std::vector<std::unique_ptr<BeDriver>> be;
};

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_RUN_RUN_SETUP_H_
