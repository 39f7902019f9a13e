// The injected monotonic clock. Everything in core that needs the time asks a Clock; only a device
// or a test makes one, so that the same code runs in real and in virtual time.

#ifndef GPUSHARE_SRC_CORE_BASE_CLOCK_H_
#define GPUSHARE_SRC_CORE_BASE_CLOCK_H_

#include <chrono>

#include "src/core/base/types.h"

namespace gpushare::core {

class Clock {
 public:
  virtual ~Clock() = default;
  // Threads: any. Never goes backwards.
  virtual TimeNs NowNs() const = 0;
};

class SteadyClock final : public Clock {
 public:
  TimeNs NowNs() const override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_BASE_CLOCK_H_
