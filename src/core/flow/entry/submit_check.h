// Part of stage 1, submit: checks the specification of a task.
//
// Threads: any. Pure functions; allocates only for an error's message.

#ifndef GPUSHARE_SRC_CORE_FLOW_ENTRY_SUBMIT_CHECK_H_
#define GPUSHARE_SRC_CORE_FLOW_ENTRY_SUBMIT_CHECK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "src/core/base/limits.h"
#include "src/core/state/options.h"

namespace gpushare::core {

// INVALID_ARGUMENT with the value and the limit. `kernel` is what spec.kernel names, null for none.
// `block_tasks_max` is the device's.
absl::Status CheckSpec(const TaskSpec& spec, const KernelDesc* kernel,
                       int64_t block_tasks_max = kMaxBlockTasks);

// INVALID_ARGUMENT where a query's input is of no size. `what` as below.
absl::Status CheckInput(absl::string_view what, double input_size);

// INVALID_ARGUMENT where TaskSpec::input_size is of no size, or where the task has no query of its
// own that it could be of.
absl::Status CheckOwnInput(const TaskSpec& spec, AppClass app_class);

// INVALID_ARGUMENT where TaskSpec::next_within_ns is out of range, or a BE task has one.
absl::Status CheckNext(const TaskSpec& spec, AppClass app_class);

// INVALID_ARGUMENT where a query is said to arrive before the clock began, or more than
// kMaxArrivalAheadNs after now. `what` names it at the beginning of a sentence.
absl::Status CheckArrival(absl::string_view what, TimeNs arrival_ns, TimeNs now_ns);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_ENTRY_SUBMIT_CHECK_H_
