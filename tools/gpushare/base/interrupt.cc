#include "tools/gpushare/base/interrupt.h"

#include <atomic>
#include <string>

namespace gpushare::tool {

namespace {

constexpr std::array<int, 2> kSignals = {SIGINT, SIGTERM};

// A signal handler needs a variable of the whole process.
std::atomic<int32_t> interrupt_signal{0};
static_assert(std::atomic<int32_t>::is_always_lock_free, "the handler must not take a lock");
static_assert(sizeof(interrupt_signal) == sizeof(int32_t), "the library reads it as an int32_t");

void Note(int signal) { interrupt_signal.store(signal, std::memory_order_relaxed); }

}  // namespace

InterruptGuard::InterruptGuard() {
  interrupt_signal = 0;
  struct sigaction action = {};
  action.sa_handler = &Note;
  // System calls go on; the loops read the flag.
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

InterruptGuard::~InterruptGuard() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

int InterruptSignal() { return interrupt_signal.load(std::memory_order_relaxed); }

const volatile int32_t* InterruptFlag() {
  return reinterpret_cast<const volatile int32_t*>(&interrupt_signal);
}

const char* SignalName(int signal) { return signal == SIGINT ? "SIGINT" : "SIGTERM"; }

void ThrowIfInterrupted() {
  const int signal = InterruptSignal();
  if (signal == 0) return;
  throw Interrupted(signal,
                    std::string("The command was interrupted by ") + SignalName(signal) + ".");
}

}  // namespace gpushare::tool
