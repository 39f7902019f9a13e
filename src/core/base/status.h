// Early returns for code that passes errors on to its caller.
//
//   GPUSHARE_RETURN_IF_ERROR(device.Launch(request));
//   GPUSHARE_ASSIGN_OR_RETURN(const core::LaneIndex lane, device.CreateLane(spec));
//
// For .cc files, and for headers that only they include. Threads: any.

#ifndef GPUSHARE_SRC_CORE_BASE_STATUS_H_
#define GPUSHARE_SRC_CORE_BASE_STATUS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// For a function that returns a status, or a StatusOr.
#define GPUSHARE_RETURN_IF_ERROR(expression)                                \
  do {                                                                      \
    if (absl::Status status_ = (expression); !status_.ok()) return status_; \
  } while (false)

// Declares or assigns `target` from a StatusOr; returns its status if it has no value. It is
// several statements: an `if` around it needs braces.
#define GPUSHARE_ASSIGN_OR_RETURN(target, expression) \
  GPUSHARE_ASSIGN_OR_RETURN_AT_(target, expression, __LINE__)
// Two steps, so that __LINE__ is a number before it is pasted.
#define GPUSHARE_ASSIGN_OR_RETURN_AT_(target, expression, line) \
  GPUSHARE_ASSIGN_OR_RETURN_AS_(target, expression, line)
#define GPUSHARE_ASSIGN_OR_RETURN_AS_(target, expression, line)      \
  auto result_##line = (expression);                                 \
  if (!result_##line.ok()) return std::move(result_##line).status(); \
  target = *std::move(result_##line) /* NOLINT(bugprone-macro-parentheses): may declare */

#endif  // GPUSHARE_SRC_CORE_BASE_STATUS_H_
