// Asks for cache lines ahead of their first write.
//
// A submitter and the thread that runs Tick write the same lines in turn: gate, queue, ring, task.
// One after another, behind locked operations, each line costs a trip to the other core's cache.
// Requested together, all of them cost about one trip. A hint: nothing depends on it. Threads: any.

#ifndef GPUSHARE_SRC_CORE_BASE_PREFETCH_H_
#define GPUSHARE_SRC_CORE_BASE_PREFETCH_H_

#include <cstddef>
#include <cstdint>

namespace gpushare::core {

inline constexpr size_t kCacheLineBytes = 64;

inline void PrefetchForWrite(const volatile void* address) {
#if defined(__x86_64__)
  // __builtin_prefetch asks for a shared copy unless the build targets newer processors; every
  // 64-bit one takes this instruction.
  asm volatile("prefetchw %0" : : "m"(*static_cast<const volatile char*>(address)));
#else
  __builtin_prefetch(const_cast<const void*>(address), 1);
#endif
}

// The lines of [begin, begin + bytes); begin is the start of a line.
inline void PrefetchForWrite(const volatile void* begin, size_t bytes) {
  const auto* const first = static_cast<const volatile char*>(begin);
  for (size_t offset = 0; offset < bytes; offset += kCacheLineBytes) {
    PrefetchForWrite(first + offset);
  }
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_BASE_PREFETCH_H_
