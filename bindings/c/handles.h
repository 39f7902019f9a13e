// The handle table: finds the object behind an opaque handle of the ABI.
//
// A handle is not an address. It is a packed word {kind, generation, slot} in the shape of a
// pointer, and one process-wide table looks it up. Slots are reused and never freed. So a handle
// that was released, is of another kind or is garbage is recognised without touching freed memory.
// The table counts the references of the caller. Objects hold each other by shared_ptr, so that an
// extra release by the caller cannot destroy an object that others still need.
//
// Invariants: a slot's word is 0 while the slot is free; its generation (40 bits) grows with each
// reuse. Threads: look-ups are lock-free; create and release take a mutex. The caller must keep its
// reference during a call with the handle.

#ifndef GPUSHARE_BINDINGS_C_HANDLES_H_
#define GPUSHARE_BINDINGS_C_HANDLES_H_

#include <gpushare/gpushare.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gpushare::abi {

enum class HandleKind : uint8_t {
  kRuntime = 1,
  kApp = 2,
  kQueue = 3,
  kKernel = 4,
  kFusedKernel = 5,
  kEventLog = 6,
};

struct RuntimeObject;
struct AppObject;
struct QueueObject;
struct KernelObject;
struct FusedKernelObject;
struct EventLogObject;

// The object type and the kind of a handle type.
template <class Handle>
struct HandleTraits;
template <>
struct HandleTraits<gpushare_runtime> {
  using Object = RuntimeObject;
  static constexpr HandleKind kKind = HandleKind::kRuntime;
};
template <>
struct HandleTraits<gpushare_app> {
  using Object = AppObject;
  static constexpr HandleKind kKind = HandleKind::kApp;
};
template <>
struct HandleTraits<gpushare_queue> {
  using Object = QueueObject;
  static constexpr HandleKind kKind = HandleKind::kQueue;
};
template <>
struct HandleTraits<gpushare_kernel> {
  using Object = KernelObject;
  static constexpr HandleKind kKind = HandleKind::kKernel;
};
template <>
struct HandleTraits<gpushare_fused_kernel> {
  using Object = FusedKernelObject;
  static constexpr HandleKind kKind = HandleKind::kFusedKernel;
};
template <>
struct HandleTraits<gpushare_event_log> {
  using Object = EventLogObject;
  static constexpr HandleKind kKind = HandleKind::kEventLog;
};

// Called with the last reference to an object. If it fails, the reference stays.
using LastReference = absl::FunctionRef<absl::Status()>;

absl::StatusOr<uintptr_t> CreateHandle(HandleKind kind, std::shared_ptr<void> object);
// Null for a word that is not a live handle of this kind.
void* FindHandle(HandleKind kind, uintptr_t word) noexcept;
absl::Status RetainHandle(HandleKind kind, uintptr_t word);
absl::Status ReleaseHandle(HandleKind kind, uintptr_t word, LastReference on_last);
// "The app handle 0x... is not live: it was released, or never came from gpushare."
absl::Status BadHandle(HandleKind kind, uintptr_t word);

template <class Handle>
absl::StatusOr<Handle*> MakeHandle(std::shared_ptr<typename HandleTraits<Handle>::Object> object) {
  absl::StatusOr<uintptr_t> word = CreateHandle(HandleTraits<Handle>::kKind, std::move(object));
  if (!word.ok()) return word.status();
  return reinterpret_cast<Handle*>(*word);  // NOLINT(performance-no-int-to-ptr): never dereferenced
}

template <class Handle>
typename HandleTraits<Handle>::Object* Find(const Handle* handle) noexcept {
  return static_cast<typename HandleTraits<Handle>::Object*>(
      FindHandle(HandleTraits<Handle>::kKind, reinterpret_cast<uintptr_t>(handle)));
}

template <class Handle>
absl::Status Bad(const Handle* handle) {
  return BadHandle(HandleTraits<Handle>::kKind, reinterpret_cast<uintptr_t>(handle));
}

template <class Handle>
absl::Status Retain(const Handle* handle) {
  return RetainHandle(HandleTraits<Handle>::kKind, reinterpret_cast<uintptr_t>(handle));
}

template <class Handle>
absl::Status Release(const Handle* handle, LastReference on_last) {
  return ReleaseHandle(HandleTraits<Handle>::kKind, reinterpret_cast<uintptr_t>(handle), on_last);
}

// A handle that is released again unless it is kept. Make it before anything that cannot be undone:
// a registration without a handle would occupy its name for ever.
template <class Handle>
class NewHandle {
 public:
  NewHandle() = default;
  ~NewHandle() {
    if (handle_ == nullptr) return;
    Release(handle_, [] { return absl::OkStatus(); }).IgnoreError();
  }
  NewHandle(const NewHandle&) = delete;
  NewHandle& operator=(const NewHandle&) = delete;

  absl::Status Make(std::shared_ptr<typename HandleTraits<Handle>::Object> object) {
    absl::StatusOr<Handle*> handle = MakeHandle<Handle>(std::move(object));
    if (!handle.ok()) return handle.status();
    handle_ = *handle;
    return absl::OkStatus();
  }
  Handle* Keep() { return std::exchange(handle_, nullptr); }

 private:
  Handle* handle_ = nullptr;
};

}  // namespace gpushare::abi

// Looks a handle up; if it is not live, returns INVALID_ARGUMENT from the enclosing function.
// NOLINTBEGIN(bugprone-macro-parentheses): `object` is a name that is declared.
#define GPUSHARE_FIND(object, handle)               \
  auto* const object = gpushare::abi::Find(handle); \
  if (object == nullptr) return gpushare::abi::Bad(handle)
// NOLINTEND(bugprone-macro-parentheses)

#define GPUSHARE_RETURN_IF_ERROR(expression)                                \
  do {                                                                      \
    if (absl::Status status_ = (expression); !status_.ok()) return status_; \
  } while (false)

#endif  // GPUSHARE_BINDINGS_C_HANDLES_H_
