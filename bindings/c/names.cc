// Version and names of the ABI. Threads: any; static text only.

#include "src/core/log/names.h"

#include <gpushare/gpushare.h>

#include <iterator>

#include "bindings/c/errors.h"

namespace core = gpushare::core;

#define GPUSHARE_TEXT_OF(number) #number
#define GPUSHARE_VERSION_TEXT(major, minor, patch) \
  GPUSHARE_TEXT_OF(major) "." GPUSHARE_TEXT_OF(minor) "." GPUSHARE_TEXT_OF(patch)

uint32_t gpushare_abi_version(void) noexcept { return GPUSHARE_ABI_VERSION; }

const char* gpushare_version_string(void) noexcept {
  return GPUSHARE_VERSION_TEXT(GPUSHARE_VERSION_MAJOR, GPUSHARE_VERSION_MINOR,
                               GPUSHARE_VERSION_PATCH);
}

const char* gpushare_last_error_message(void) noexcept { return gpushare::abi::LastError(); }

namespace {

// Status codes are Abseil's; the other enumerations have their tables in src/core/log/names.cc.
constexpr const char* kStatusNames[] = {
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
};
static_assert(std::size(kStatusNames) == GPUSHARE_UNAUTHENTICATED + 1);

}  // namespace

const char* gpushare_status_name(gpushare_status status) noexcept {
  if (status < 0 || status > GPUSHARE_UNAUTHENTICATED) return "UNKNOWN_STATUS";
  return kStatusNames[status];
}

// The ABI numbers classes and kinds from 1, the core from 0 (convert.h).
const char* gpushare_app_class_name(gpushare_app_class app_class) noexcept {
  return core::AppClassName(int64_t{app_class} - 1);
}

const char* gpushare_task_kind_name(gpushare_task_kind kind) noexcept {
  return kind == GPUSHARE_TASK_DEFAULT ? "default" : core::TaskKindName(int64_t{kind} - 1);
}

const char* gpushare_form_name(gpushare_form form) noexcept { return core::FormName(form); }

const char* gpushare_verdict_name(gpushare_verdict verdict) noexcept {
  return core::VerdictName(verdict);
}

const char* gpushare_reason_name(gpushare_reason reason) noexcept {
  return core::ReasonName(reason);
}

const char* gpushare_event_type_name(gpushare_event_type type) noexcept {
  return core::EventTypeName(type);
}
