// Calls of the application's functions: callbacks, enqueue and capture functions, user policies.
//
//   if (const std::string thrown = ThrownBy([&] { callback(user, record); }); !thrown.empty()) {
//     Report(absl::StrCat("The callback threw ", thrown, "."));
//   }
//
// An exception ends here and is described. A forced unwind (pthread_exit, pthread_cancel) passes:
// it must run to the thread's end. Threads: any. Allocates only for an exception.

#ifndef GPUSHARE_SRC_CORE_BASE_APPLICATION_CALL_H_
#define GPUSHARE_SRC_CORE_BASE_APPLICATION_CALL_H_

#include <cxxabi.h>

#include <string>

namespace gpushare::core {

// How many of the application's functions are on this thread's stack. They must not wait.
inline thread_local int callback_depth = 0;

class InsideCallback {
 public:
  InsideCallback() { ++callback_depth; }
  ~InsideCallback() { --callback_depth; }
  InsideCallback(const InsideCallback&) = delete;
  InsideCallback& operator=(const InsideCallback&) = delete;
};

// Called in a catch block: "std::runtime_error: boom", or "a value of type int".
std::string DescribeException() noexcept;

// Runs `function`. Returns what it threw, or "" if it returned. A forced unwind has no object, so
// libstdc++ binds the handler's reference to null, which the undefined-behaviour sanitizer reports.
template <class Function>
__attribute__((no_sanitize("null"))) std::string ThrownBy(const Function& function) {
  const InsideCallback inside;
  try {
    function();
#ifdef __GLIBCXX__  // elsewhere a forced unwind is no C++ exception
  } catch (::abi::__forced_unwind&) {
    throw;
#endif
  } catch (...) {
    return DescribeException();
  }
  return std::string();
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_BASE_APPLICATION_CALL_H_
