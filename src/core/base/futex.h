// The system calls that put a thread to sleep on a word, and wake those that sleep on it.
//
//   sleeper: word = kAsleep -> look for work -> FutexWait(word, kAsleep, time)
//   waker:   post work -> word = kAwake -> FutexWake(word, 1)
//
// Why not a condition variable: a waker needs no mutex, and a sleeper that was woken needs none to
// go on. Threads: any. FutexWake may be given a word that is gone: then it wakes nobody, or a
// sleeper on whatever is there now, which must check its condition again in any case.

#ifndef GPUSHARE_SRC_CORE_BASE_FUTEX_H_
#define GPUSHARE_SRC_CORE_BASE_FUTEX_H_

#include <atomic>
#include <cstdint>

namespace gpushare::core {

// Sleeps while `word` is `expected`. Returns after a wake, after `time_ns` (kNever: no limit), or
// without a cause.
void FutexWait(const std::atomic<uint32_t>& word, uint32_t expected, int64_t time_ns);

// Wakes at most `count` sleepers.
void FutexWake(const std::atomic<uint32_t>& word, int count);

// Lets timed sleeps of the calling thread end within about a microsecond of their time, where the
// system would let them end up to 50 us late.
void UseFineTimers();

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_BASE_FUTEX_H_
