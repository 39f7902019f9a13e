// Ctrl-C (SIGINT) and SIGTERM: a flag that long loops read.
//
// The handler only sets the flag. A second signal of the same kind ends the process at once,
// because the first one restores the default action.

#ifndef GPUSHARE_TOOLS_GPUSHARE_BASE_INTERRUPT_H_
#define GPUSHARE_TOOLS_GPUSHARE_BASE_INTERRUPT_H_

#include <array>
#include <csignal>
#include <cstdint>

#include "tools/gpushare/base/errors.h"

namespace gpushare::tool {

// A signal asked the command to end. The exit code is 128 + the signal's number.
class Interrupted : public RunError {
 public:
  Interrupted(int signal, const std::string& text) : RunError(text), signal_(signal) {}
  int signal() const { return signal_; }

 private:
  int signal_;
};

// While this object lives, signals set the flag. A signal that the parent process ignores stays
// ignored (nohup). One at a time; its thread is the caller's.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  std::array<struct sigaction, 2> before_;
};

// Any thread: throws Interrupted once a signal came.
void ThrowIfInterrupted();

// Any thread: the number of the signal that came, 0: none. `InterruptSignal` for callers of the
// library, which reads the same flag through a pointer.
int InterruptSignal();
const volatile int32_t* InterruptFlag();

// "SIGINT" or "SIGTERM".
const char* SignalName(int signal);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_BASE_INTERRUPT_H_
