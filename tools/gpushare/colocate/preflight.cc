#include "tools/gpushare/colocate/preflight.h"

#include <algorithm>
#include <set>
#include <utility>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/colocate/plain_rows.h"
#include "tools/gpushare/run/apps.h"

namespace gpushare::tool {

namespace {

void CheckKernel(const std::string& app, const WorkItem& task, const Workloads& workloads,
                 gpushare_runtime* runtime) {
  gpushare_kernel_info info = GPUSHARE_KERNEL_INFO_INIT;
  const gpushare_status status = gpushare_kernel_info_by_name(runtime, task.kernel.c_str(), &info);
  const bool in_profile = status != GPUSHARE_NOT_FOUND;
  if (in_profile) Check(status);
  if (!workloads.CanRun(task.kernel, in_profile)) {
    throw InputError("App '" + app + "' names the kernel '" + task.kernel + "', and " +
                     (in_profile ? "there is no program of that name for this device."
                                 : "the profile has no kernel of that name."));
  }
  const bool counts_blocks =
      workloads.CountsBlocks(task.kernel, in_profile ? info.kind : GPUSHARE_TASK_DEFAULT);
  if (counts_blocks && task.block_tasks == 0) {
    throw InputError("App '" + app + "' gives no block_tasks for the kernel '" + task.kernel +
                     "', and a kernel needs at least 1.");
  }
  if (!counts_blocks && task.block_tasks != 0) {
    throw InputError("App '" + app + "' gives block_tasks for '" + task.kernel +
                     "', which is a graph or a library call and has none.");
  }
}

void CheckWork(const std::string& app, const std::vector<WorkItem>& tasks,
               const Workloads& workloads, gpushare_runtime* runtime) {
  for (const WorkItem& task : tasks) {
    if (!task.is_copy()) CheckKernel(app, task, workloads, runtime);
  }
}

// The reservations of a case must fit together, so this makes them on the device.
void CheckReservations(const Scenario& scenario, const Case& one, const DeviceChoice& device,
                       const std::string& policy) {
  const RuntimeHandle runtime = OpenRuntime(device, policy);
  // Apps are kept until all exist, so that the device checks the sum of their reservations.
  std::vector<AppHandle> apps;
  for (const int index : one.lc) {
    LcPlan plan;
    plan.app = &scenario.lc[static_cast<size_t>(index)];
    plan.reserve = true;
    apps.push_back(CreateLcApp(runtime.get(), plan, 16));
  }
  for (const int index : one.be) {
    apps.push_back(CreateBeApp(runtime.get(), {&scenario.be[static_cast<size_t>(index)], true}));
  }
}

// The periodic apps of a case must fit, so this plans them on the device.
void CheckPartitions(const Scenario& scenario, const Case& one, const DeviceChoice& device) {
  const RuntimeHandle runtime = OpenRuntime(device, "partitioned");
  std::vector<AppHandle> apps;
  for (const int index : one.lc) {
    LcPlan plan;
    plan.app = &scenario.lc[static_cast<size_t>(index)];
    apps.push_back(CreateLcApp(runtime.get(), plan, 16));
  }
  try {
    PlanPartitions(runtime.get(), scenario.partitions);
  } catch (const RunError& error) {
    throw InputError("Case '" + one.name + "' does not run under 'partitioned': " + error.what());
  }
}

bool HasReservations(const Scenario& scenario, const Case& one) {
  bool any = false;
  for (const int index : one.lc) any |= scenario.lc[static_cast<size_t>(index)].reserve_capsms > 0;
  for (const int index : one.be) any |= scenario.be[static_cast<size_t>(index)].quota_capsms > 0;
  return any;
}

}  // namespace

std::vector<std::string> PoliciesOf(const Case& one, const std::vector<std::string>& asked) {
  if (one.policies.empty()) return asked;
  std::vector<std::string> policies;
  for (const std::string& policy : asked) {
    if (ListNamesPolicy(one.policies, policy)) policies.push_back(policy);
  }
  return policies;
}

void Preflight(const Scenario& scenario, const DeviceChoice& device, const Workloads& workloads,
               const std::vector<std::string>& policies) {
  RequirePolicies(WithoutPlainRows(policies));
  RequirePolicies(scenario.target_policies);
  RequirePolicies(scenario.reservation_policies);
  {
    const RuntimeHandle runtime = OpenRuntime(device, "bare");
    for (const LcApp& app : scenario.lc) CheckWork(app.name, app.tasks, workloads, runtime.get());
    for (const BeApp& app : scenario.be) CheckWork(app.name, app.tasks, workloads, runtime.get());
  }
  std::set<std::vector<int>> planned;  // by their LC apps
  std::set<std::pair<std::vector<int>, std::vector<int>>> tried;
  for (const Case& one : scenario.cases) {
    RequirePolicies(WithoutPlainRows(one.policies));
    const std::vector<std::string> own = PoliciesOf(one, policies);
    const bool partitioned = std::any_of(own.begin(), own.end(), [&](const std::string& policy) {
      return HasPartitions(scenario, one.lc, policy);
    });
    if (partitioned && planned.insert(one.lc).second) CheckPartitions(scenario, one, device);
    if (!HasReservations(scenario, one) || !tried.insert({one.lc, one.be}).second) continue;
    CheckReservations(
        scenario, one, device,
        scenario.reservation_policies.empty() ? "smguard" : scenario.reservation_policies[0]);
  }
}

}  // namespace gpushare::tool
