// How many SMs a BE task may hold beside reservations and its app's quota (gpushare_reserve_capsm).
//
// A spread quota bounds persistent workers by their number. All other work is bounded by its place.
// Work that nothing evicts has at most the SMs that are not reserved; work that can be evicted may
// use them all. Submit refuses by this rule, and the policies place by it. Pure; any thread.

#ifndef GPUSHARE_SRC_CORE_CHECKS_SM_LIMIT_H_
#define GPUSHARE_SRC_CORE_CHECKS_SM_LIMIT_H_

#include <algorithm>
#include <cstdint>

namespace gpushare::core {

// Whether the number of workers keeps the quota. `workers`: the task runs as persistent workers
// that can be evicted.
constexpr bool QuotaBoundsWorkers(int32_t quota_capsms, bool packed, bool workers) {
  return quota_capsms > 0 && !packed && workers;
}

struct SmCounts {
  int32_t device = 0;
  int32_t unreserved = 0;  // not reserved for LC apps
};
// SMs of the place of a task whose workers no quota bounds. `quota_capsms`: 0 for none.
constexpr int32_t SmLimit(const SmCounts& sms, int32_t quota_capsms, bool evictable) {
  const int32_t limit = evictable ? sms.device : sms.unreserved;
  return quota_capsms > 0 ? std::min(limit, quota_capsms) : limit;
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_CHECKS_SM_LIMIT_H_
