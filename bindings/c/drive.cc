// Driving and stopping a runtime: poll, drain, quiesce, resume, shutdown, policy, clock.
//
// Threads: as gpushare.h says for each. Inside a callback only the clock, the policy and resume are
// allowed.

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bindings/c/errors.h"
#include "bindings/c/handles.h"
#include "bindings/c/objects.h"
#include "bindings/c/options.h"
#include "src/core/policies/registry.h"

using gpushare::abi::CallbackScope;
using gpushare::abi::CheckDeadline;
using gpushare::abi::CheckNotNull;
using gpushare::abi::Enter;

gpushare_status gpushare_runtime_shutdown(gpushare_runtime* runtime, int64_t deadline_ns) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, runtime);
    GPUSHARE_RETURN_IF_ERROR(CallbackScope::Refuse("gpushare_runtime_shutdown"));
    GPUSHARE_RETURN_IF_ERROR(CheckDeadline(deadline_ns));
    absl::Status status = object->scheduler->Shutdown(deadline_ns);
    object->shut_down.store(true);
    return status;
  });
}

gpushare_status gpushare_runtime_drain(gpushare_runtime* runtime, int64_t deadline_ns) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, runtime);
    GPUSHARE_RETURN_IF_ERROR(CallbackScope::Refuse("gpushare_runtime_drain"));
    GPUSHARE_RETURN_IF_ERROR(CheckDeadline(deadline_ns));
    return object->scheduler->Drain(deadline_ns);
  });
}

gpushare_status gpushare_runtime_quiesce(gpushare_runtime* runtime, int64_t deadline_ns) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, runtime);
    GPUSHARE_RETURN_IF_ERROR(CallbackScope::Refuse("gpushare_runtime_quiesce"));
    GPUSHARE_RETURN_IF_ERROR(CheckDeadline(deadline_ns));
    return object->scheduler->Quiesce(deadline_ns);
  });
}

gpushare_status gpushare_runtime_resume(gpushare_runtime* runtime) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, runtime);
    return object->scheduler->Resume();
  });
}

gpushare_status gpushare_poll(gpushare_runtime* runtime, gpushare_bool* out_progress) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, runtime);
    GPUSHARE_RETURN_IF_ERROR(CallbackScope::Refuse("gpushare_poll"));
    const absl::StatusOr<bool> progress = object->scheduler->Poll();
    if (!progress.ok()) return progress.status();
    if (out_progress != nullptr) *out_progress = *progress ? 1 : 0;
    return absl::OkStatus();
  });
}

gpushare_status gpushare_poll_until(gpushare_runtime* runtime, int64_t time_ns) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, runtime);
    GPUSHARE_RETURN_IF_ERROR(CallbackScope::Refuse("gpushare_poll_until"));
    if (time_ns < 0 || time_ns == GPUSHARE_NEVER) {
      return absl::InvalidArgumentError(
          absl::StrCat("The time to poll until is ", time_ns,
                       " ns, and it must be one that the clock reaches."));
    }
    return object->scheduler->PollUntil(time_ns);
  });
}

gpushare_status gpushare_now_ns(gpushare_runtime* runtime, int64_t* out_time_ns) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, runtime);
    GPUSHARE_RETURN_IF_ERROR(CheckNotNull("out_time_ns", out_time_ns));
    *out_time_ns = object->scheduler->NowNs();
    return absl::OkStatus();
  });
}

gpushare_status gpushare_set_policy(gpushare_runtime* runtime, const char* name) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, runtime);
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::CheckName("The policy's name", name));
    absl::StatusOr<std::unique_ptr<gpushare::core::Policy>> policy =
        gpushare::core::MakePolicy(name);
    if (!policy.ok()) return policy.status();
    return object->scheduler->SetPolicy(*std::move(policy));
  });
}

gpushare_status gpushare_policy_names(char* buffer, size_t buffer_size_bytes,
                                      size_t* out_size_bytes) noexcept {
  return Enter([&] {
    return gpushare::abi::CopyText(absl::StrJoin(gpushare::core::PolicyNames(), "\n"), buffer,
                                   buffer_size_bytes, out_size_bytes);
  });
}
