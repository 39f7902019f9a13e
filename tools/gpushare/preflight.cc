#include "tools/gpushare/preflight.h"

#include <memory>
#include <set>
#include <utility>

#include "tools/gpushare/app_driver.h"
#include "tools/gpushare/errors.h"

namespace gpushare::tool {

namespace {

void CheckWork(const std::string& app, const std::vector<WorkItem>& tasks,
               gpushare_runtime* runtime) {
  for (const WorkItem& task : tasks) {
    if (task.is_copy()) continue;
    gpushare_kernel_info info = GPUSHARE_KERNEL_INFO_INIT;
    const gpushare_status status =
        gpushare_kernel_info_by_name(runtime, task.kernel.c_str(), &info);
    if (status == GPUSHARE_NOT_FOUND) {
      throw InputError("App '" + app + "' names the kernel '" + task.kernel +
                       "', and the profile has no kernel of that name.");
    }
    Check(status);
    const bool counts_blocks = info.kind == GPUSHARE_TASK_KERNEL;
    if (counts_blocks && task.block_tasks == 0) {
      throw InputError("App '" + app + "' gives no block_tasks for the kernel '" + task.kernel +
                       "', and a kernel needs at least 1.");
    }
    if (!counts_blocks && task.block_tasks != 0) {
      throw InputError("App '" + app + "' gives block_tasks for '" + task.kernel +
                       "', which is a graph or a library call and has none.");
    }
  }
}

// Reservations of a case must fit together, so they are tried on the device itself.
void CheckReservations(const Scenario& scenario, const Case& one, const DeviceChoice& device,
                       const std::string& policy) {
  RunFault fault;
  const RuntimeHandle runtime = OpenRuntime(device, policy);
  KernelTable kernels(runtime.get());
  std::vector<LcPlan> lc;
  std::vector<BePlan> be;
  for (const int index : one.lc) {
    LcPlan plan;
    plan.app = &scenario.lc[static_cast<size_t>(index)];
    plan.reserve = true;
    lc.push_back(plan);
  }
  for (const int index : one.be) be.push_back({&scenario.be[static_cast<size_t>(index)], true});
  // Kept until all are made, so that the sum of the reservations is what is checked.
  std::vector<std::unique_ptr<LcDriver>> lc_apps;
  std::vector<std::unique_ptr<BeDriver>> be_apps;
  lc_apps.reserve(lc.size());
  be_apps.reserve(be.size());
  for (const LcPlan& plan : lc) {
    lc_apps.push_back(std::make_unique<LcDriver>(runtime.get(), plan, kernels, 16, fault));
  }
  for (const BePlan& plan : be) {
    be_apps.push_back(std::make_unique<BeDriver>(runtime.get(), plan, kernels, fault));
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

DeviceFacts Preflight(const Scenario& scenario, const DeviceChoice& device,
                      const std::vector<std::string>& policies) {
  RequirePolicies(policies);
  RequirePolicies(scenario.target_policies);
  RequirePolicies(scenario.reservation_policies);
  const RuntimeHandle runtime = OpenRuntime(device, "bare");
  for (const LcApp& app : scenario.lc) CheckWork(app.name, app.tasks, runtime.get());
  for (const BeApp& app : scenario.be) CheckWork(app.name, app.tasks, runtime.get());
  std::set<std::pair<std::vector<int>, std::vector<int>>> tried;
  for (const Case& one : scenario.cases) {
    RequirePolicies(one.policies);
    if (!HasReservations(scenario, one) || !tried.insert({one.lc, one.be}).second) continue;
    CheckReservations(
        scenario, one, device,
        scenario.reservation_policies.empty() ? "smguard" : scenario.reservation_policies[0]);
  }
  return FactsOf(runtime.get());
}

}  // namespace gpushare::tool
