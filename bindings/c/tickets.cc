// Tickets: wait, poll, record, callback, eventfd, cancel, release. Threads: any; see gpushare.h.

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bindings/c/convert.h"
#include "bindings/c/errors.h"
#include "bindings/c/handles.h"
#include "bindings/c/objects.h"
#include "bindings/c/options.h"

namespace gpushare::abi {
namespace {

core::TicketId IdOf(gpushare_ticket ticket) { return core::TicketId{ticket.value}; }

// A descriptor that is closed again unless it is kept.
class OwnDescriptor {
 public:
  explicit OwnDescriptor(int descriptor) : descriptor_(descriptor) {}
  ~OwnDescriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  OwnDescriptor(const OwnDescriptor&) = delete;
  OwnDescriptor& operator=(const OwnDescriptor&) = delete;
  int get() const { return descriptor_; }
  int Keep() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_;
};

// Attaches a callback slot to a ticket. On failure the slot is given back and no callback runs.
absl::Status Attach(RuntimeObject& runtime, gpushare_ticket ticket,
                    gpushare_completion_callback callback, void* user, int event_fd) {
  CallbackPool::Slot* const slot = runtime.callbacks.Take(callback, user, event_fd);
  if (slot == nullptr) {
    return absl::ResourceExhaustedError("Every callback slot of the runtime is taken.");
  }
  absl::Status status = runtime.scheduler->SetCallback(IdOf(ticket), &CallbackPool::Run, slot);
  if (!status.ok()) runtime.callbacks.Give(slot);
  return status;
}

absl::Status DescriptorError() {
  return absl::ResourceExhaustedError(
      absl::StrCat("The system makes no event descriptor: ", std::strerror(errno), "."));
}

absl::Status AttachEvent(RuntimeObject& runtime, gpushare_ticket ticket, int* out_fd) {
  OwnDescriptor callers(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (callers.get() < 0) return DescriptorError();
  // The library writes to a duplicate, because the caller may close its descriptor at any time.
  OwnDescriptor own(::dup(callers.get()));
  if (own.get() < 0) return DescriptorError();
  GPUSHARE_RETURN_IF_ERROR(Attach(runtime, ticket, nullptr, nullptr, own.get()));
  own.Keep();
  *out_fd = callers.Keep();
  return absl::OkStatus();
}

}  // namespace
}  // namespace gpushare::abi

using gpushare::abi::CheckNotNull;
using gpushare::abi::Enter;
using gpushare::abi::IdOf;

gpushare_status gpushare_ticket_wait(gpushare_runtime* runtime, gpushare_ticket ticket,
                                     int64_t deadline_ns) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, runtime);
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::CallbackScope::Refuse("gpushare_ticket_wait"));
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::CheckDeadline(deadline_ns));
    return object->scheduler->Wait(IdOf(ticket), deadline_ns);
  });
}

gpushare_status gpushare_ticket_poll(gpushare_runtime* runtime, gpushare_ticket ticket,
                                     gpushare_bool* out_complete) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, runtime);
    GPUSHARE_RETURN_IF_ERROR(CheckNotNull("out_complete", out_complete));
    const absl::StatusOr<bool> complete = object->scheduler->IsComplete(IdOf(ticket));
    if (!complete.ok()) return complete.status();
    *out_complete = *complete ? 1 : 0;
    return absl::OkStatus();
  });
}

gpushare_status gpushare_ticket_record(gpushare_runtime* runtime, gpushare_ticket ticket,
                                       gpushare_completion_record* out_record) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, runtime);
    const auto record = object->scheduler->Record(IdOf(ticket));
    if (!record.ok()) return record.status();
    return gpushare::abi::WriteResult("completion_record", gpushare::abi::ToC(*record), out_record);
  });
}

gpushare_status gpushare_ticket_set_callback(gpushare_runtime* runtime, gpushare_ticket ticket,
                                             gpushare_completion_callback callback,
                                             void* user) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, runtime);
    if (callback == nullptr) return absl::InvalidArgumentError("The callback is null.");
    return gpushare::abi::Attach(*object, ticket, callback, user, -1);
  });
}

gpushare_status gpushare_ticket_eventfd(gpushare_runtime* runtime, gpushare_ticket ticket,
                                        int* out_fd) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, runtime);
    GPUSHARE_RETURN_IF_ERROR(CheckNotNull("out_fd", out_fd));
    *out_fd = -1;
    return gpushare::abi::AttachEvent(*object, ticket, out_fd);
  });
}

gpushare_status gpushare_ticket_cancel(gpushare_runtime* runtime, gpushare_ticket ticket) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, runtime);
    return object->scheduler->Cancel(IdOf(ticket));
  });
}

gpushare_status gpushare_ticket_release(gpushare_runtime* runtime,
                                        gpushare_ticket ticket) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, runtime);
    return object->scheduler->ReleaseTicket(IdOf(ticket));
  });
}
