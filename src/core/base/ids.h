// How identifiers are packed: slot, owner and generation in one word. A stale or foreign handle is
// then recognised without a lookup structure.

#ifndef GPUSHARE_SRC_CORE_BASE_IDS_H_
#define GPUSHARE_SRC_CORE_BASE_IDS_H_

#include <cstdint>

#include "src/core/base/types.h"

namespace gpushare::core {

// Ticket: slot + 1 in bits 0-15, app slot in 16-23, generation in 24-59. Bits 60-63 stay free for
// the tag of a submit-ring word.
inline constexpr uint64_t kGenerationMask = (uint64_t{1} << 36) - 1;

struct SlotAddress {
  uint32_t owner = 0;
  uint32_t slot = 0;
  uint64_t generation = 0;
};

constexpr uint64_t PackSlot(const SlotAddress& address) {
  return uint64_t{address.slot + 1} | uint64_t{address.owner} << 16 |
         (address.generation & kGenerationMask) << 24;
}
// `value` must not be 0.
constexpr SlotAddress UnpackSlot(uint64_t value) {
  return {static_cast<uint32_t>(value >> 16 & 0xff), static_cast<uint32_t>(value & 0xffff) - 1,
          value >> 24 & kGenerationMask};
}

// App and queue identifiers: slot + 1 in the low 12 bits, generation above.
constexpr uint32_t PackSmall(uint32_t slot, uint32_t generation) {
  return (slot + 1) | (generation & 0xfffff) << 12;
}
constexpr uint32_t SmallSlot(uint32_t value) { return (value & 0xfff) - 1; }

// What a word of the submit ring announces.
enum class RingTag : uint64_t {
  kSubmitted = 1,    // a task
  kStarted = 2,      // a task that its submitter launched
  kStartFailed = 3,  // a task whose launch by its submitter failed
  kQueryBegun = 4,
  kQueryEnded = 5,
  kRegionBegun = 6,
};

constexpr uint64_t PackRing(RingTag tag, uint64_t slot_word) {
  return slot_word | static_cast<uint64_t>(tag) << 60;
}
constexpr RingTag RingTagOf(uint64_t word) { return static_cast<RingTag>(word >> 60); }
constexpr uint64_t RingSlotWord(uint64_t word) { return word & ((uint64_t{1} << 60) - 1); }

// Explicit queries share the layout of tickets; an implicit query has its task's ticket with this
// bit set.
inline constexpr uint64_t kImplicitQueryBit = uint64_t{1} << 63;

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_BASE_IDS_H_
