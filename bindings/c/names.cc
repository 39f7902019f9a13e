// Version and words of the ABI. Threads: any; static text only.

#include <gpushare/gpushare.h>

#include "bindings/c/errors.h"

#define GPUSHARE_TEXT_OF(number) #number
#define GPUSHARE_VERSION_TEXT(major, minor, patch) \
  GPUSHARE_TEXT_OF(major) "." GPUSHARE_TEXT_OF(minor) "." GPUSHARE_TEXT_OF(patch)

uint32_t gpushare_abi_version(void) noexcept { return GPUSHARE_ABI_VERSION; }

const char* gpushare_version_string(void) noexcept {
  return GPUSHARE_VERSION_TEXT(GPUSHARE_VERSION_MAJOR, GPUSHARE_VERSION_MINOR,
                               GPUSHARE_VERSION_PATCH);
}

const char* gpushare_last_error_message(void) noexcept { return gpushare::abi::LastError(); }

const char* gpushare_status_name(gpushare_status status) noexcept {
  switch (status) {
    case GPUSHARE_OK:
      return "OK";
    case GPUSHARE_CANCELLED:
      return "CANCELLED";
    case GPUSHARE_UNKNOWN:
      return "UNKNOWN";
    case GPUSHARE_INVALID_ARGUMENT:
      return "INVALID_ARGUMENT";
    case GPUSHARE_DEADLINE_EXCEEDED:
      return "DEADLINE_EXCEEDED";
    case GPUSHARE_NOT_FOUND:
      return "NOT_FOUND";
    case GPUSHARE_ALREADY_EXISTS:
      return "ALREADY_EXISTS";
    case GPUSHARE_PERMISSION_DENIED:
      return "PERMISSION_DENIED";
    case GPUSHARE_RESOURCE_EXHAUSTED:
      return "RESOURCE_EXHAUSTED";
    case GPUSHARE_FAILED_PRECONDITION:
      return "FAILED_PRECONDITION";
    case GPUSHARE_ABORTED:
      return "ABORTED";
    case GPUSHARE_OUT_OF_RANGE:
      return "OUT_OF_RANGE";
    case GPUSHARE_UNIMPLEMENTED:
      return "UNIMPLEMENTED";
    case GPUSHARE_INTERNAL:
      return "INTERNAL";
    case GPUSHARE_UNAVAILABLE:
      return "UNAVAILABLE";
    case GPUSHARE_DATA_LOSS:
      return "DATA_LOSS";
    case GPUSHARE_UNAUTHENTICATED:
      return "UNAUTHENTICATED";
    default:
      return "UNKNOWN_STATUS";
  }
}

const char* gpushare_app_class_name(gpushare_app_class app_class) noexcept {
  switch (app_class) {
    case GPUSHARE_CLASS_LATENCY_CRITICAL:
      return "latency_critical";
    case GPUSHARE_CLASS_BEST_EFFORT:
      return "best_effort";
    default:
      return "unknown";
  }
}

const char* gpushare_task_kind_name(gpushare_task_kind kind) noexcept {
  switch (kind) {
    case GPUSHARE_TASK_DEFAULT:
      return "default";
    case GPUSHARE_TASK_KERNEL:
      return "kernel";
    case GPUSHARE_TASK_GRAPH:
      return "graph";
    case GPUSHARE_TASK_LIBRARY:
      return "library";
    case GPUSHARE_TASK_MEMCPY:
      return "memcpy";
    case GPUSHARE_TASK_OPAQUE:
      return "opaque";
    default:
      return "unknown";
  }
}

const char* gpushare_form_name(gpushare_form form) noexcept {
  switch (form) {
    case GPUSHARE_FORM_ORIGINAL:
      return "original";
    case GPUSHARE_FORM_WORKERS:
      return "workers";
    case GPUSHARE_FORM_SLICE:
      return "slice";
    case GPUSHARE_FORM_FUSED:
      return "fused";
    case GPUSHARE_FORM_GRAPH:
      return "graph";
    case GPUSHARE_FORM_LIBRARY:
      return "library";
    case GPUSHARE_FORM_MEMCPY:
      return "memcpy";
    case GPUSHARE_FORM_OPAQUE:
      return "opaque";
    default:
      return "unknown";
  }
}

const char* gpushare_verdict_name(gpushare_verdict verdict) noexcept {
  switch (verdict) {
    case GPUSHARE_VERDICT_PENDING:
      return "pending";
    case GPUSHARE_VERDICT_OK:
      return "ok";
    case GPUSHARE_VERDICT_FAILED:
      return "failed";
    case GPUSHARE_VERDICT_CANCELLED:
      return "cancelled";
    case GPUSHARE_VERDICT_DROPPED:
      return "dropped";
    case GPUSHARE_VERDICT_TIMED_OUT:
      return "timed_out";
    case GPUSHARE_VERDICT_DEVICE_LOST:
      return "device_lost";
    case GPUSHARE_VERDICT_SHUTDOWN:
      return "shutdown";
    default:
      return "unknown";
  }
}

const char* gpushare_reason_name(gpushare_reason reason) noexcept {
  switch (reason) {
    case GPUSHARE_REASON_NONE:
      return "none";
    case GPUSHARE_REASON_LC_FIRST:
      return "lc_first";
    case GPUSHARE_REASON_FAST_PATH:
      return "fast_path";
    case GPUSHARE_REASON_BASELINE:
      return "baseline";
    case GPUSHARE_REASON_IDLE_DEVICE:
      return "idle_device";
    case GPUSHARE_REASON_FITS_HEADROOM:
      return "fits_headroom";
    case GPUSHARE_REASON_FITS_BLOCKING_BUDGET:
      return "fits_blocking_budget";
    case GPUSHARE_REASON_BESIDE_PARTITION:
      return "beside_partition";
    case GPUSHARE_REASON_ELASTIC_RETURN:
      return "elastic_return";
    case GPUSHARE_REASON_RESUME:
      return "resume";
    case GPUSHARE_REASON_QUOTA:
      return "quota";
    case GPUSHARE_REASON_FILLS_GAP:
      return "fills_gap";
    case GPUSHARE_REASON_HOLD_HEADROOM:
      return "hold_headroom";
    case GPUSHARE_REASON_HOLD_BLOCKING:
      return "hold_blocking";
    case GPUSHARE_REASON_HOLD_LC_ACTIVE:
      return "hold_lc_active";
    case GPUSHARE_REASON_HOLD_QUEUED_TIME:
      return "hold_queued_time";
    case GPUSHARE_REASON_HOLD_COPIES:
      return "hold_copies";
    case GPUSHARE_REASON_HOLD_WINDOW:
      return "hold_window";
    case GPUSHARE_REASON_HOLD_CAPSM:
      return "hold_capsm";
    case GPUSHARE_REASON_HOLD_HYSTERESIS:
      return "hold_hysteresis";
    case GPUSHARE_REASON_HOLD_QUIESCED:
      return "hold_quiesced";
    case GPUSHARE_REASON_EVICT_FOR_LC:
      return "evict_for_lc";
    case GPUSHARE_REASON_EVICT_FOR_RESERVATION:
      return "evict_for_reservation";
    case GPUSHARE_REASON_EVICT_FOR_LAYOUT:
      return "evict_for_layout";
    case GPUSHARE_REASON_EVICT_FOR_QUOTA:
      return "evict_for_quota";
    case GPUSHARE_REASON_USER_POLICY:
      return "user_policy";
    default:
      return "unknown";
  }
}

const char* gpushare_event_type_name(gpushare_event_type type) noexcept {
  switch (type) {
    case GPUSHARE_EVENT_NONE:
      return "none";
    case GPUSHARE_EVENT_APP_CREATED:
      return "app_created";
    case GPUSHARE_EVENT_SUBMITTED:
      return "submitted";
    case GPUSHARE_EVENT_ADMITTED:
      return "admitted";
    case GPUSHARE_EVENT_REJECTED:
      return "rejected";
    case GPUSHARE_EVENT_LAUNCHED:
      return "launched";
    case GPUSHARE_EVENT_FAST_PATH_LAUNCHED:
      return "fast_path_launched";
    case GPUSHARE_EVENT_EVICTED:
      return "evicted";
    case GPUSHARE_EVENT_PART_DONE:
      return "part_done";
    case GPUSHARE_EVENT_COMPLETED:
      return "completed";
    case GPUSHARE_EVENT_HELD:
      return "held";
    case GPUSHARE_EVENT_QUERY_BEGUN:
      return "query_begun";
    case GPUSHARE_EVENT_QUERY_ENDED:
      return "query_ended";
    case GPUSHARE_EVENT_QUEUE_DEPTH:
      return "queue_depth";
    case GPUSHARE_EVENT_QUOTA_CHANGED:
      return "quota_changed";
    case GPUSHARE_EVENT_DEVICE_LOST:
      return "device_lost";
    case GPUSHARE_EVENT_LANE_ABANDONED:
      return "lane_abandoned";
    default:
      return "unknown";
  }
}
