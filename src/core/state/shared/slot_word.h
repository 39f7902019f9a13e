// The word of a task slot: its generation, and who holds the slot.
//
//   generation (36 bits) | tasks that wait for it (25 bits) | detached | flow | caller
//
// The slot is free when nobody holds it. The last drop moves the generation on in the same step.
// Because it is one word, a compare-exchange takes a hold only on the slot of the ticket that was
// named, never on a slot that was freed and reused meanwhile. Threads: pure functions, any.

#ifndef GPUSHARE_SRC_CORE_STATE_SHARED_SLOT_WORD_H_
#define GPUSHARE_SRC_CORE_STATE_SHARED_SLOT_WORD_H_

#include <cstdint>

#include "src/core/base/ids.h"
#include "src/core/base/limits.h"

namespace gpushare::core {

// Holders of a slot.
inline constexpr uint64_t kHeldByCaller = 1;  // its ticket is not released
inline constexpr uint64_t kHeldByFlow = 2;    // its task is not complete
inline constexpr uint64_t kDetached = 4;      // instead of the caller, until the task is complete
inline constexpr uint64_t kHeldByWaiter = 8;  // each wait for its ticket adds one

inline constexpr int kHolderBits = 28;
inline constexpr uint64_t kHolderMask = (uint64_t{1} << kHolderBits) - 1;
static_assert(kGenerationMask == ~uint64_t{0} >> kHolderBits, "both fields fill the word");
static_assert(uint64_t{kMaxTasks} * kMaxWaitsPerTask < kHolderMask / kHeldByWaiter,
              "every task may wait for one ticket");

constexpr uint64_t GenerationOf(uint64_t word) { return word >> kHolderBits; }
constexpr uint64_t HoldersOf(uint64_t word) { return word & kHolderMask; }
constexpr uint64_t WaitersOf(uint64_t word) { return HoldersOf(word) / kHeldByWaiter; }
// Whether callers may still use the ticket of this generation.
constexpr bool IsTicketValid(uint64_t word) { return (word & (kHeldByCaller | kDetached)) != 0; }
constexpr uint64_t FreeWord(uint64_t generation) { return generation << kHolderBits; }

// The word without the holders in `drop`, which are all there.
constexpr uint64_t WithoutHolders(uint64_t word, uint64_t drop) {
  const uint64_t left = word - drop;
  return HoldersOf(left) == 0 ? FreeWord(GenerationOf(word) + 1) : left;
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_STATE_SHARED_SLOT_WORD_H_
