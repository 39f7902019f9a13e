// The verb "enqueue": the application's function of an opaque task runs behind a guard.
//
//   GuardedEnqueue guard(request, on_failure);
//   flow.device->Launch(request);          // calls the guard in place of the function
//
// The function fails by an exception, or by a call of Fail. The launch goes on: the task completes
// behind what was enqueued until then, and fails. Threads: any; one launch.

#ifndef GPUSHARE_SRC_CORE_FLOW_VERBS_GUARDED_ENQUEUE_H_
#define GPUSHARE_SRC_CORE_FLOW_VERBS_GUARDED_ENQUEUE_H_

#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "src/core/base/application_call.h"
#include "src/core/base/exhaustion.h"
#include "src/core/seams/device.h"

namespace gpushare::core {

class GuardedEnqueue {
 public:
  // Changes the request if it is opaque and has a function. `on_failure` gets "threw ..." or
  // "failed: ...", before the device counts the launch as made; "" if no memory is left for the
  // text. It must outlive the guard.
  GuardedEnqueue(LaunchRequest& request, absl::FunctionRef<void(const std::string&)> on_failure)
      : on_failure_(on_failure) {
    Work& work = request.parts[0].work;
    if (request.form != Form::kOpaque || work.host_function == nullptr) return;
    function_ = work.host_function;
    user_ = work.host_user;
    work.host_function = &Run;
    work.host_user = this;
  }
  GuardedEnqueue(const GuardedEnqueue&) = delete;
  GuardedEnqueue& operator=(const GuardedEnqueue&) = delete;

  // Fails the function that runs on this thread. Its first reason stays. False: none runs.
  static bool Fail(absl::string_view reason) {
    if (running_ == nullptr) return false;
    if (std::exchange(running_->failed, true)) return true;
    running_->text = TextOf(
        [&] { return reason.empty() ? std::string("failed") : absl::StrCat("failed: ", reason); });
    return true;
  }

 private:
  // One run of a function. A function that submits may have another one run inside it.
  struct Call {
    Call() : outer(std::exchange(running_, this)) {}
    ~Call() { running_ = outer; }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    Call* const outer;
    bool failed = false;
    std::string text;
  };

  static void Run(void* stream, void* user) {
    const GuardedEnqueue& self = *static_cast<const GuardedEnqueue*>(user);
    Call call;
    const std::string thrown = ThrownBy([&] { self.function_(stream, self.user_); });
    if (!thrown.empty() && !call.failed) {
      call.failed = true;
      call.text = TextOf([&] { return absl::StrCat("threw ", thrown); });
    }
    if (call.failed) self.on_failure_(call.text);
  }

  inline static thread_local Call* running_ = nullptr;

  absl::FunctionRef<void(const std::string&)> on_failure_;
  HostFunction function_ = nullptr;
  void* user_ = nullptr;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_VERBS_GUARDED_ENQUEUE_H_
