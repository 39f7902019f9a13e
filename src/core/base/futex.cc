// System calls of Linux. See futex.h.

#include "src/core/base/futex.h"

#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

#include "src/core/base/types.h"

namespace gpushare::core {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

// The kernel reads the word as a plain 32-bit integer.
static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));
static_assert(std::atomic<uint32_t>::is_always_lock_free);

}  // namespace

void FutexWait(const std::atomic<uint32_t>& word, uint32_t expected, int64_t time_ns) {
  if (time_ns <= 0) return;
  timespec limit = {};
  limit.tv_sec = time_ns / kSecondNs;
  limit.tv_nsec = time_ns % kSecondNs;
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, time_ns == kNever ? nullptr : &limit,
          nullptr, 0);
}

void FutexWake(const std::atomic<uint32_t>& word, int count) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

void UseFineTimers() {
  constexpr unsigned long kSlackNs = 1;  // 0 would restore the default
  prctl(PR_SET_TIMERSLACK, kSlackNs, 0, 0, 0);
}

}  // namespace gpushare::core
