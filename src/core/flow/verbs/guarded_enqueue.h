// The verb "enqueue": the application's function of an opaque task runs behind a guard.
//
//   GuardedEnqueue guard(request, on_throw);
//   flow.device->Launch(request);          // calls the guard in place of the function
//
// After an exception the launch goes on: the task completes behind what was enqueued until then,
// and fails. Threads: any; one launch.

#ifndef GPUSHARE_SRC_CORE_FLOW_VERBS_GUARDED_ENQUEUE_H_
#define GPUSHARE_SRC_CORE_FLOW_VERBS_GUARDED_ENQUEUE_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "src/core/base/application_call.h"
#include "src/core/seams/device.h"

namespace gpushare::core {

class GuardedEnqueue {
 public:
  // Changes the request if it is opaque and has a function. `on_throw` gets what the function
  // threw, before the device counts the launch as made. It must outlive the guard.
  GuardedEnqueue(LaunchRequest& request, absl::FunctionRef<void(const std::string&)> on_throw)
      : on_throw_(on_throw) {
    Work& work = request.parts[0].work;
    if (request.form != Form::kOpaque || work.host_function == nullptr) return;
    function_ = work.host_function;
    user_ = work.host_user;
    work.host_function = &Run;
    work.host_user = this;
  }
  GuardedEnqueue(const GuardedEnqueue&) = delete;
  GuardedEnqueue& operator=(const GuardedEnqueue&) = delete;

 private:
  static void Run(void* stream, void* user) {
    const GuardedEnqueue& self = *static_cast<const GuardedEnqueue*>(user);
    const std::string thrown = ThrownBy([&] { self.function_(stream, self.user_); });
    if (!thrown.empty()) self.on_throw_(thrown);
  }

  absl::FunctionRef<void(const std::string&)> on_throw_;
  HostFunction function_ = nullptr;
  void* user_ = nullptr;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_VERBS_GUARDED_ENQUEUE_H_
