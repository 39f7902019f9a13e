// Checks a scenario against the library and the device before anything runs: policies, kernels,
// quotas and reservations. What fails here is bad input (exit code 2), not a failed run.

#ifndef GPUSHARE_TOOLS_GPUSHARE_COLOCATE_PREFLIGHT_H_
#define GPUSHARE_TOOLS_GPUSHARE_COLOCATE_PREFLIGHT_H_

#include <string>
#include <vector>

#include "tools/gpushare/base/library.h"
#include "tools/gpushare/scenario/scenario.h"
#include "tools/gpushare/workloads/workloads.h"

namespace gpushare::tool {

// Throws InputError.
void Preflight(const Scenario& scenario, const DeviceChoice& device, const Workloads& workloads,
               const std::vector<std::string>& policies);

// The policies of one case: those of `asked` that the case allows.
std::vector<std::string> PoliciesOf(const Case& one, const std::vector<std::string>& asked);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_COLOCATE_PREFLIGHT_H_
