// Headrooms without the refill of Baymax eq. 4 (queueing/headroom.h), for a policy that asks for
// them (PolicyProperties::serial_headrooms). For any other nothing is kept.
//
// Serial is the headroom of a query's first plan, less the predicted duration of BE work that began
// since. Pageable copies do not count. A launch counts whole, a graph in segments as they begin.
// Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_EVIDENCE_SERIAL_HEADROOM_H_
#define GPUSHARE_SRC_CORE_EVIDENCE_SERIAL_HEADROOM_H_

#include <cstdint>

#include "src/core/base/saturating.h"
#include "src/core/base/types.h"

namespace gpushare::core {

struct SerialBook {
  uint64_t opened = 0;     // how often a policy began to ask
  bool kept = false;       // one asks now
  int64_t charged_ns = 0;  // BE work that began, less what running graphs have begun since
};

// What a query keeps of it.
struct SerialBudget {
  uint64_t opened = 0;    // the book that it is of; 0: none
  int64_t budget_ns = 0;  // its first headroom, and what was charged before it
};

inline void KeepBook(SerialBook& book, bool kept) {
  if (kept && !book.kept) ++book.opened;
  book.kept = kept;
}

// `charged_ns`: all BE work that began, that of running graphs included.
inline int64_t SerialHeadroom(const SerialBook& book, int64_t charged_ns, int64_t headroom_ns,
                              SerialBudget& budget) {
  if (budget.opened != book.opened) {
    budget = {book.opened, SaturatingAdd(headroom_ns, charged_ns)};
  }
  return SaturatingSubtract(budget.budget_ns, charged_ns);
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_EVIDENCE_SERIAL_HEADROOM_H_
