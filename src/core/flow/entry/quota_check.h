// Part of stage 1, submit: refuses BE work that its app's quota, or the reservations, rule out.
//
// Work that no place holds within its limit (checks/sm_limit.h) could never run.
//
// Threads: any. Allocates only for an error's message.

#ifndef GPUSHARE_SRC_CORE_FLOW_ENTRY_QUOTA_CHECK_H_
#define GPUSHARE_SRC_CORE_FLOW_ENTRY_QUOTA_CHECK_H_

#include "absl/status/status.h"
#include "src/core/seams/kernel.h"
#include "src/core/state/flow.h"

namespace gpushare::core {

// FAILED_PRECONDITION with the need and the limit. `kernel`: null for opaque work.
absl::Status CheckQuota(const Flow& flow, const App& app, TaskKind kind, const KernelDesc* kernel);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_ENTRY_QUOTA_CHECK_H_
