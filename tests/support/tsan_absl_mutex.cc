// Tells the thread sanitizer about absl::Mutex.
//
// Debian's Abseil is compiled without the sanitizer, so a lock that an absl::Mutex takes is
// invisible to it and every access under one looks like a race. These definitions come before
// Abseil's in the search order of the dynamic linker (the tsan preset links this library first);
// each calls Abseil's own and reports what it did. Used by the tsan preset only; never installed.
//
// Not covered: absl::Condition. Abseil evaluates a condition on whichever thread unlocks, which the
// sanitizer would take for a race; the project waits on absl::CondVar instead.

#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

#include <cstdio>
#include <cstdlib>

#include "absl/base/config.h"
#include "absl/synchronization/mutex.h"

namespace absl {
ABSL_NAMESPACE_BEGIN
namespace {

// Abseil's own definition, which the dynamic linker finds after this one.
// `name` is mangled, from the class on: Abseil's versioned namespace differs between distributions.
#define GPUSHARE_STRING_OF(text) #text
#define GPUSHARE_STRING(text) GPUSHARE_STRING_OF(text)
template <class Function>
Function Next(const char* name) {
  constexpr char kNamespace[] = GPUSHARE_STRING(ABSL_OPTION_INLINE_NAMESPACE_NAME);
  char symbol[256];
  std::snprintf(symbol, sizeof(symbol), "_ZN4absl%zu%s%s", sizeof(kNamespace) - 1, kNamespace,
                name);
  void* const found = dlsym(RTLD_NEXT, symbol);
  if (found == nullptr) {
    std::fprintf(stderr, "tsan_absl_mutex: Abseil has no %s.\n", symbol);
    std::abort();
  }
  return reinterpret_cast<Function>(found);
}

using MutexCall = void (*)(Mutex*);
using TryCall = bool (*)(Mutex*);

void Locked(Mutex* mutex, MutexCall call, unsigned flags) {
  __tsan_mutex_pre_lock(mutex, flags);
  call(mutex);
  __tsan_mutex_post_lock(mutex, flags, 0);
}

void Unlocked(Mutex* mutex, MutexCall call, unsigned flags) {
  __tsan_mutex_pre_unlock(mutex, flags);
  call(mutex);
  __tsan_mutex_post_unlock(mutex, flags);
}

bool Tried(Mutex* mutex, TryCall call, unsigned flags) {
  __tsan_mutex_pre_lock(mutex, flags | __tsan_mutex_try_lock);
  const bool taken = call(mutex);
  __tsan_mutex_post_lock(
      mutex, flags | __tsan_mutex_try_lock | (taken ? 0 : __tsan_mutex_try_lock_failed), 0);
  return taken;
}

// A wait on a condition variable is an unlock and, at its end, a lock.
template <class Wait>
auto Waited(Mutex* mutex, Wait wait) {
  __tsan_mutex_pre_unlock(mutex, 0);
  __tsan_mutex_post_unlock(mutex, 0);
  struct Relock {
    Mutex* mutex;
    ~Relock() {
      __tsan_mutex_pre_lock(mutex, 0);
      __tsan_mutex_post_lock(mutex, 0, 0);
    }
  } relock{mutex};
  return wait();
}

}  // namespace

Mutex::~Mutex() {
  static const auto kNext = Next<MutexCall>("5MutexD1Ev");
  __tsan_mutex_destroy(this, 0);
  kNext(this);
}

void Mutex::Lock() {
  static const auto kNext = Next<MutexCall>("5Mutex4LockEv");
  Locked(this, kNext, 0);
}

void Mutex::Unlock() {
  static const auto kNext = Next<MutexCall>("5Mutex6UnlockEv");
  Unlocked(this, kNext, 0);
}

bool Mutex::TryLock() {
  static const auto kNext = Next<TryCall>("5Mutex7TryLockEv");
  return Tried(this, kNext, 0);
}

void Mutex::ReaderLock() {
  static const auto kNext = Next<MutexCall>("5Mutex10ReaderLockEv");
  Locked(this, kNext, __tsan_mutex_read_lock);
}

void Mutex::ReaderUnlock() {
  static const auto kNext = Next<MutexCall>("5Mutex12ReaderUnlockEv");
  Unlocked(this, kNext, __tsan_mutex_read_lock);
}

bool Mutex::ReaderTryLock() {
  static const auto kNext = Next<TryCall>("5Mutex13ReaderTryLockEv");
  return Tried(this, kNext, __tsan_mutex_read_lock);
}

void CondVar::Wait(Mutex* mutex) {
  using Call = void (*)(CondVar*, Mutex*);
  static const auto kNext = Next<Call>("7CondVar4WaitEPNS0_5MutexE");
  Waited(mutex, [&] { kNext(this, mutex); });
}

bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  using Call = bool (*)(CondVar*, Mutex*, Duration);
  static const auto kNext = Next<Call>("7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE");
  return Waited(mutex, [&] { return kNext(this, mutex, timeout); });
}

bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  using Call = bool (*)(CondVar*, Mutex*, Time);
  static const auto kNext = Next<Call>("7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE");
  return Waited(mutex, [&] { return kNext(this, mutex, deadline); });
}

ABSL_NAMESPACE_END
}  // namespace absl
