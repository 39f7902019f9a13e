// Conversions from the core's types to the ABI's. Threads: any; pure.

#ifndef GPUSHARE_BINDINGS_C_CONVERT_H_
#define GPUSHARE_BINDINGS_C_CONVERT_H_

#include <gpushare/gpushare.h>

#include "src/core/base/types.h"
#include "src/core/flow/scheduler.h"
#include "src/core/log/event_log.h"
#include "src/core/seams/device.h"
#include "src/core/seams/kernel.h"

namespace gpushare::abi {

// The ABI numbers kinds and classes from 1, because 0 means default.
constexpr gpushare_task_kind ToC(core::TaskKind kind) { return static_cast<int32_t>(kind) + 1; }
constexpr gpushare_app_class ToC(core::AppClass app_class) {
  return static_cast<int32_t>(app_class) + 1;
}

gpushare_completion_record ToC(const core::CompletionRecord& record);
gpushare_latency_summary ToC(const core::LatencySummary& summary);
gpushare_runtime_stats ToC(const core::SchedulerStats& stats, bool simulated, int app_count);
gpushare_app_stats ToC(const core::AppStats& stats);
gpushare_app_guarantee ToC(const core::AppGuarantee& guarantee);
gpushare_event ToC(const core::EventRecord& record);
gpushare_kernel_info ToC(const core::KernelDesc& kernel);

}  // namespace gpushare::abi

#endif  // GPUSHARE_BINDINGS_C_CONVERT_H_
