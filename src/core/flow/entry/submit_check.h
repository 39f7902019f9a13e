// Part of stage 1, submit: checks the specification of a task.
//
// Threads: any. Pure functions; allocates only for an error's message.

#ifndef GPUSHARE_SRC_CORE_FLOW_ENTRY_SUBMIT_CHECK_H_
#define GPUSHARE_SRC_CORE_FLOW_ENTRY_SUBMIT_CHECK_H_

#include "absl/status/status.h"
#include "src/core/state/options.h"

namespace gpushare::core {

// INVALID_ARGUMENT with the value and the limit. `kernel` is what spec.kernel names, null for none.
absl::Status CheckSpec(const TaskSpec& spec, const KernelDesc* kernel);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_ENTRY_SUBMIT_CHECK_H_
