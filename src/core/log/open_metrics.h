// The scheduler's statistics as OpenMetrics text (openmetrics.io, version 1.0.0).
//
// Scheduler::OpenMetrics calls it; a server in the host process may return the text as it is, with
// content type application/openmetrics-text. Allocates; never called on the submit, plan or launch
// path. Threads: any; works on copies.

#ifndef GPUSHARE_SRC_CORE_LOG_OPEN_METRICS_H_
#define GPUSHARE_SRC_CORE_LOG_OPEN_METRICS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "src/core/state/records.h"

namespace gpushare::core {

struct MetricsSource {
  absl::string_view device_name;
  absl::string_view policy_name;
  bool simulated = false;  // stamps the info metric and a label of every sample
  SchedulerStats scheduler;
  absl::Span<const AppStats> apps;
  absl::Span<const AppGuarantee> guarantees;  // of the same apps, in the same order; or none
};

std::string FormatOpenMetrics(const MetricsSource& source);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_LOG_OPEN_METRICS_H_
