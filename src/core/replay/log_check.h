// Which logs can be replayed. Pure; threads: any.

#ifndef GPUSHARE_SRC_CORE_REPLAY_LOG_CHECK_H_
#define GPUSHARE_SRC_CORE_REPLAY_LOG_CHECK_H_

#include "absl/status/status.h"
#include "src/core/log/event_log.h"

namespace gpushare::core {

// INVALID_ARGUMENT for a log that is empty, dropped records, begins inside a run, has an app whose
// bound counts tokens and is of a version without marks, or has a record that no run can have
// written.
absl::Status CheckLog(const EventLogFile& log);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_REPLAY_LOG_CHECK_H_
