// Memory that is exhausted, as a status.
//
// A status with a message allocates. A call that may fail without memory left therefore needs a
// status without one; the C ABI says the sentence (errors.cc). Threads: any.

#ifndef GPUSHARE_SRC_CORE_BASE_EXHAUSTION_H_
#define GPUSHARE_SRC_CORE_BASE_EXHAUSTION_H_

#include <new>
#include <string>
#include <utility>

#include "absl/status/status.h"

namespace gpushare::core {

// Allocates nothing.
inline absl::Status MemoryExhausted() { return {absl::StatusCode::kResourceExhausted, ""}; }

// Returns what `call` returns, a Status or a StatusOr, or MemoryExhausted() if an allocation in it
// fails.
template <class Call>
auto CatchExhaustion(Call&& call) -> decltype(call()) {
  try {
    return std::forward<Call>(call)();
  } catch (const std::bad_alloc&) {
    return MemoryExhausted();
  }
}

// A status with the text that `message` makes. Without memory for it the code is the same, and the
// message is empty.
template <class Message>
absl::Status StatusOf(absl::StatusCode code, Message&& message) {
  try {
    return {code, std::forward<Message>(message)()};
  } catch (const std::bad_alloc&) {
    return {code, ""};
  }
}

// The text that `message` makes, or "" without memory for it.
template <class Message>
std::string TextOf(Message&& message) {
  try {
    return std::forward<Message>(message)();
  } catch (const std::bad_alloc&) {
    return {};
  }
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_BASE_EXHAUSTION_H_
