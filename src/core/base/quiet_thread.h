// Starts the library's own threads with signals blocked.
//
// A signal to the process goes to any thread that does not block it. The application chooses which
// of its threads take signals (sigwait, a handler), so a thread of the library takes none: neither
// one that the application waits for elsewhere, nor one whose handler would delay launches. What a
// fault raises on the thread itself stays open, because a blocked fault ends the process without
// the application's crash handler.
// Threads: any.

#ifndef GPUSHARE_SRC_CORE_BASE_QUIET_THREAD_H_
#define GPUSHARE_SRC_CORE_BASE_QUIET_THREAD_H_

#include <csignal>
#include <initializer_list>
#include <thread>
#include <utility>

namespace gpushare::core {

// Blocks signals on the calling thread in a scope; threads that it starts inherit that.
class ScopedSignalBlock {
 public:
  ScopedSignalBlock() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) {
      sigdelset(&blocked, fault);
    }
    pthread_sigmask(SIG_BLOCK, &blocked, &before_);
  }
  ~ScopedSignalBlock() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  ScopedSignalBlock(const ScopedSignalBlock&) = delete;
  ScopedSignalBlock& operator=(const ScopedSignalBlock&) = delete;

 private:
  sigset_t before_;
};

// Throws what std::thread throws.
template <class Function>
std::thread StartQuietThread(Function&& function) {
  const ScopedSignalBlock block;
  return std::thread(std::forward<Function>(function));
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_BASE_QUIET_THREAD_H_
