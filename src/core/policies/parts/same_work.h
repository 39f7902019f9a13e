// Whether a plan treats two BE tasks alike but for their order and their queue.
//
// Queues of one app often have heads of one kernel and one size. What was found for one of them
// then holds for the next. Pure functions; any thread.

#ifndef GPUSHARE_SRC_CORE_POLICIES_PARTS_SAME_WORK_H_
#define GPUSHARE_SRC_CORE_POLICIES_PARTS_SAME_WORK_H_

#include "src/core/seams/snapshot.h"

namespace gpushare::core {

// What differs most often comes first.
inline bool IsSameWork(const HeadView& a, const HeadView& b) {
  return a.app == b.app && a.kernel == b.kernel && a.kernel_index == b.kernel_index &&
         a.kind == b.kind && a.app_class == b.app_class &&
         a.remaining.duration_ns == b.remaining.duration_ns &&
         a.remaining.error_ns == b.remaining.error_ns && a.eviction_ns == b.eviction_ns &&
         a.eviction_p99_ns == b.eviction_p99_ns && a.evictable == b.evictable &&
         a.confinable == b.confinable && a.runs_alone == b.runs_alone &&
         a.awaited_by_lc == b.awaited_by_lc;
}

// Calls `use` with each head that is not the same work as the one before it.
template <class Use>
void ForEachWork(const HeadList& heads, const Use& use) {
  const HeadView* last = nullptr;
  for (const HeadView& head : heads) {
    if (last == nullptr || !IsSameWork(head, *last)) use(head);
    last = &head;
  }
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_PARTS_SAME_WORK_H_
