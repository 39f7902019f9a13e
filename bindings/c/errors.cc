// Status across the ABI; see errors.h.

#include "bindings/c/errors.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>

#include "absl/strings/str_cat.h"

namespace gpushare::abi {
namespace {

// The documented length of a message with its NUL.
constexpr size_t kMessageBytes = 1024;
constexpr absl::string_view kExhausted = "The process has no memory left for this call.";
thread_local char last_message[kMessageBytes] = "";

// Process-wide, as a fork is.
std::atomic<bool> forked{false};

// The ABI's codes are Abseil's. A code that a later Abseil adds becomes UNKNOWN.
gpushare_status CodeOf(absl::StatusCode code) {
  const int value = static_cast<int>(code);
  return value >= GPUSHARE_OK && value <= GPUSHARE_UNAUTHENTICATED ? value : GPUSHARE_UNKNOWN;
}

}  // namespace

thread_local int RegistrationScope::depth_ = 0;
thread_local const char* TableScope::refusal_ = nullptr;

gpushare_status TableScope::Fail() noexcept {
  SetLastError(refusal_);
  return GPUSHARE_FAILED_PRECONDITION;
}

absl::Status CallbackScope::Refuse(absl::string_view what) {
  if (!Active()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(what, " is called from a callback, where it would wait for its own thread."));
}

absl::Status RegistrationScope::Refuse(absl::string_view what) {
  if (depth_ == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      what, " is called from a capture callback, where it would wait for its own registration."));
}

void SetLastError(absl::string_view message) noexcept {
  const size_t length = std::min(message.size(), kMessageBytes - 1);
  std::memcpy(last_message, message.data(), length);
  last_message[length] = '\0';
}

const char* LastError() noexcept { return last_message; }

gpushare_status Fail(const absl::Status& status) noexcept {
  // A status without a message is one that had no memory for it (src/core/base/exhaustion.h).
  SetLastError(status.message().empty() ? kExhausted : status.message());
  return CodeOf(status.code());
}

gpushare_status FailWithException() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    SetLastError(kExhausted);
    return GPUSHARE_RESOURCE_EXHAUSTED;
  } catch (const std::exception& error) {
    SetLastError(error.what());
    return GPUSHARE_INTERNAL;
  } catch (...) {
    SetLastError("An exception of an unknown type was thrown inside the library.");
    return GPUSHARE_INTERNAL;
  }
}

bool IsForkedChild() noexcept { return forked.load(std::memory_order_relaxed); }

void WatchForks() {
  static std::once_flag once;
  std::call_once(once, [] {
    const auto in_child = [] { forked.store(true, std::memory_order_relaxed); };
    if (pthread_atfork(nullptr, nullptr, in_child) != 0) throw std::bad_alloc();
  });
}

gpushare_status FailForked() noexcept {
  SetLastError(
      "This process was forked from one that uses gpushare; the child may only exec or exit.");
  return GPUSHARE_FAILED_PRECONDITION;
}

}  // namespace gpushare::abi
