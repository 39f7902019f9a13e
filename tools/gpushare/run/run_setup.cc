#include "tools/gpushare/run/run_setup.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "tools/gpushare/run/apps.h"

namespace gpushare::tool {

RunSetup::RunSetup(RuntimeHandle opened, const RunPlan& plan, RunFault& fault)
    : runtime(std::move(opened)), kernels(runtime.get(), *plan.workloads) {
  plan.workloads->BeginRun();
  // The library has 65,536 task slots in all. An app that fills its share waits with its queries.
  const int tasks_max = static_cast<int>(std::max<size_t>(256, 32768 / (plan.lc.size() + 1)));
  std::vector<AppHandle> apps;
  for (const LcPlan& app : plan.lc) {
    apps.push_back(CreateLcApp(runtime.get(), app, std::min(tasks_max, 8192)));
  }
  // Before graphs are registered that are captured in each place: a later partition would lack
  // them.
  if (plan.partitions != nullptr) PlanPartitions(runtime.get(), *plan.partitions);
  for (size_t i = 0; i < plan.lc.size(); ++i) {
    lc.push_back(std::make_unique<LcDriver>(runtime.get(), plan.lc[i], std::move(apps[i]), kernels,
                                            plan.device.real_time, fault));
  }
  for (const BePlan& app : plan.be) {
    be.push_back(std::make_unique<BeDriver>(runtime.get(), app, kernels, fault));
  }
  if (plan.fused != nullptr) kernels.Fuse(*plan.fused, plan.device.real_time);
}

}  // namespace gpushare::tool
