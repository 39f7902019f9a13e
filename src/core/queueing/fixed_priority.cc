// Response times under fixed priorities. See fixed_priority.h.

#include "src/core/queueing/fixed_priority.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "src/core/base/types.h"

namespace gpushare::core {

int64_t FixedPriorityResponseNs(std::span<const DemandClass> classes, size_t i) {
  const DemandClass& own = classes[i];
  int64_t blocking = 0;
  for (size_t j = i + 1; j < classes.size(); ++j) {
    blocking = std::max(blocking, classes[j].blocking_ns);
  }
  int64_t response = 0;
  int rounds = kFixedPriorityRoundsMax;
  // Tasks of a class wait for each other, so the class is one task with all their work. Where its
  // jobs may not be preempted, the wait for one that started before is in this work.
  for (int64_t job = 1;; ++job) {
    int64_t end = blocking + job * own.work_ns;
    while (true) {
      if (--rounds < 0) return kNever;
      int64_t next = blocking + job * own.work_ns;
      for (size_t j = 0; j < i; ++j) {
        const int64_t releases = (end + classes[j].period_ns - 1) / classes[j].period_ns;
        next += releases * classes[j].work_ns;
      }
      if (next - (job - 1) * own.period_ns > own.deadline_ns) return kNever;
      if (next == end) break;
      end = next;
    }
    response = std::max(response, end - (job - 1) * own.period_ns);
    if (end <= job * own.period_ns) return response;
  }
}

bool FixedPriorityHolds(std::span<const DemandClass> classes) {
  for (size_t i = 0; i < classes.size(); ++i) {
    if (FixedPriorityResponseNs(classes, i) == kNever) return false;
  }
  return true;
}

}  // namespace gpushare::core
