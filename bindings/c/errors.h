// Status across the ABI: absl::Status inside, a code and a thread-local sentence outside.
//
// Where in the flow: every entry of the ABI runs its body through Enter(), which catches exceptions
// and refuses calls in a forked child. Invariants: an entry that fails sets the thread's message;
// an entry that succeeds leaves it unchanged; the OK path allocates nothing. Threads: any.

#ifndef GPUSHARE_BINDINGS_C_ERRORS_H_
#define GPUSHARE_BINDINGS_C_ERRORS_H_

#include <gpushare/gpushare.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "src/core/base/application_call.h"

namespace gpushare::abi {

// The message of this thread, cut at 1023 bytes.
void SetLastError(absl::string_view message) noexcept;
const char* LastError() noexcept;

// The code of a failed status. Its message becomes this thread's message.
gpushare_status Fail(const absl::Status& status) noexcept;
// Called in a catch block: converts the exception to a code.
gpushare_status FailWithException() noexcept;

// Whether this process is the child of a fork() after the first runtime was made. Threads and locks
// of the parent do not exist in the child. Cached: costs one relaxed load.
bool IsForkedChild() noexcept;
void WatchForks();
gpushare_status FailForked() noexcept;

// Marks a thread inside a function of the application. Blocking calls are refused there.
class CallbackScope {
 public:
  static bool Active() { return core::callback_depth > 0; }
  // FAILED_PRECONDITION in a callback; `what` names the call.
  static absl::Status Refuse(absl::string_view what);

 private:
  const core::InsideCallback inside_;
};

// Marks a thread inside a registration, whose capture callback may call gpushare. The flow does one
// registration at a time, so a second one from inside the callback would wait for itself.
class RegistrationScope {
 public:
  RegistrationScope() { ++depth_; }
  ~RegistrationScope() { --depth_; }
  RegistrationScope(const RegistrationScope&) = delete;
  RegistrationScope& operator=(const RegistrationScope&) = delete;
  // FAILED_PRECONDITION in a capture callback; `what` names the call.
  static absl::Status Refuse(absl::string_view what);

 private:
  static thread_local int depth_;
  const CallbackScope callback_;
};

// Marks a thread inside a function of a user policy or a user cost model. The flow's lock is held
// there, so every entry is refused, with `refusal` as its message.
class TableScope {
 public:
  explicit TableScope(const char* refusal) { refusal_ = refusal; }
  ~TableScope() { refusal_ = nullptr; }
  TableScope(const TableScope&) = delete;
  TableScope& operator=(const TableScope&) = delete;
  static bool Active() { return refusal_ != nullptr; }
  static gpushare_status Fail() noexcept;

 private:
  static thread_local const char* refusal_;
};

// Runs the body of one entry.
template <class Body>
gpushare_status Enter(Body&& body) noexcept {
  if (IsForkedChild()) return FailForked();
  if (TableScope::Active()) return TableScope::Fail();
  try {
    const absl::Status status = body();
    if (status.ok()) return GPUSHARE_OK;
    return Fail(status);
  } catch (...) {
    return FailWithException();
  }
}

}  // namespace gpushare::abi

#endif  // GPUSHARE_BINDINGS_C_ERRORS_H_
