// Reading the caller's option structs and writing its result structs, by struct_size.
//
// Read: zeros first, then the smaller of both sizes. A size below that of version 1 is
// INVALID_ARGUMENT; a non-zero tail that this library does not know is UNIMPLEMENTED. Write: at
// most the caller's size; the tail of a larger struct is zeroed. Threads: any; pure.

#ifndef GPUSHARE_BINDINGS_C_OPTIONS_H_
#define GPUSHARE_BINDINGS_C_OPTIONS_H_

#include <gpushare/gpushare.h>
#include <gpushare/gpushare_cost_model.h>
#include <gpushare/gpushare_policy.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace gpushare::abi {

// A larger struct_size is taken for memory that was never initialised.
inline constexpr uint32_t kStructSizeMax = 4096;

// Size of each struct in ABI version 1, the first frozen one; never changes. A struct that is added
// later has the size that it is added with.
template <class Struct>
inline constexpr uint32_t kFirstSize = 0;
#define GPUSHARE_FIRST_SIZE(type, bytes) \
  template <>                            \
  inline constexpr uint32_t kFirstSize<type> = bytes
GPUSHARE_FIRST_SIZE(gpushare_runtime_options, 112);
GPUSHARE_FIRST_SIZE(gpushare_app_options, 64);
GPUSHARE_FIRST_SIZE(gpushare_app_update_options, 48);
GPUSHARE_FIRST_SIZE(gpushare_reservation_options, 16);
GPUSHARE_FIRST_SIZE(gpushare_partition_options, 24);
GPUSHARE_FIRST_SIZE(gpushare_partition_plan, 16);
GPUSHARE_FIRST_SIZE(gpushare_simulation_record, 120);
GPUSHARE_FIRST_SIZE(gpushare_library_call, 144);
GPUSHARE_FIRST_SIZE(gpushare_kernel_options, 144);
GPUSHARE_FIRST_SIZE(gpushare_kernel_info, 104);
GPUSHARE_FIRST_SIZE(gpushare_fused_kernel_options, 64);
GPUSHARE_FIRST_SIZE(gpushare_completion_record, 160);
GPUSHARE_FIRST_SIZE(gpushare_task_options, 184);
GPUSHARE_FIRST_SIZE(gpushare_query_options, 24);
GPUSHARE_FIRST_SIZE(gpushare_region_options, 16);
GPUSHARE_FIRST_SIZE(gpushare_device_info, 112);
GPUSHARE_FIRST_SIZE(gpushare_runtime_stats, 168);
GPUSHARE_FIRST_SIZE(gpushare_app_stats, 128);
GPUSHARE_FIRST_SIZE(gpushare_app_guarantee, 344);
GPUSHARE_FIRST_SIZE(gpushare_trace_options, 32);
GPUSHARE_FIRST_SIZE(gpushare_trace_summary, 32);
GPUSHARE_FIRST_SIZE(gpushare_event, 80);
GPUSHARE_FIRST_SIZE(gpushare_replay_result, 40);
GPUSHARE_FIRST_SIZE(gpushare_policy_table, 40);
GPUSHARE_FIRST_SIZE(gpushare_kernel_calibration, 120);
GPUSHARE_FIRST_SIZE(gpushare_calibration_progress, 40);
GPUSHARE_FIRST_SIZE(gpushare_calibration_options, 136);
GPUSHARE_FIRST_SIZE(gpushare_profile_train_options, 32);
GPUSHARE_FIRST_SIZE(gpushare_profile_like_options, 48);
GPUSHARE_FIRST_SIZE(gpushare_cost_model_table, 72);
GPUSHARE_FIRST_SIZE(gpushare_ptx_code, 32);
GPUSHARE_FIRST_SIZE(gpushare_kernel_counters, 128);
GPUSHARE_FIRST_SIZE(gpushare_pre_run_options, 40);
GPUSHARE_FIRST_SIZE(gpushare_place_options, 64);
GPUSHARE_FIRST_SIZE(gpushare_place_gpu, 24);
GPUSHARE_FIRST_SIZE(gpushare_place_lc, 64);
GPUSHARE_FIRST_SIZE(gpushare_place_be, 40);
GPUSHARE_FIRST_SIZE(gpushare_place_pair, 64);
GPUSHARE_FIRST_SIZE(gpushare_place_result, 72);
GPUSHARE_FIRST_SIZE(gpushare_pair_launch, 24);
#undef GPUSHARE_FIRST_SIZE

// `name` is the struct's, for messages. `given` starts with a uint32_t struct_size.
absl::Status ReadStruct(absl::string_view name, const void* given, uint32_t first_size,
                        uint32_t known_size, void* out);
absl::Status WriteStruct(absl::string_view name, const void* full, uint32_t first_size,
                         uint32_t known_size, void* given);
// What WriteStruct refuses.
absl::Status CheckStructSize(absl::string_view name, const void* given, uint32_t first_size);

// A null `given` is INVALID_ARGUMENT. On success *out has this library's struct_size.
template <class Struct>
absl::Status ReadOptions(absl::string_view name, const Struct* given, Struct* out) {
  static_assert(kFirstSize<Struct> != 0 && kFirstSize<Struct> <= sizeof(Struct));
  return ReadStruct(name, given, kFirstSize<Struct>, sizeof(Struct), out);
}

template <class Struct>
absl::Status WriteResult(absl::string_view name, const Struct& full, Struct* given) {
  static_assert(kFirstSize<Struct> != 0 && kFirstSize<Struct> <= sizeof(Struct));
  return WriteStruct(name, &full, kFirstSize<Struct>, sizeof(Struct), given);
}

// Before a computation whose result WriteResult writes.
template <class Struct>
absl::Status CheckResult(absl::string_view name, const Struct* given) {
  return CheckStructSize(name, given, kFirstSize<Struct>);
}

absl::Status CheckBool(absl::string_view field, gpushare_bool value);
absl::Status CheckReserved(absl::string_view where, int64_t value,
                           absl::string_view field = "reserved");
absl::Status CheckNotNull(absl::string_view what, const void* pointer);
// Checks a name: not null, not empty, shorter than kMaxNameBytes, UTF-8, because names stand in
// JSON files. `what` is the field, for messages.
absl::Status CheckName(absl::string_view what, const char* name);
// Checks a path or spec: not null, not empty, at most 4095 bytes.
absl::Status CheckText(absl::string_view what, const char* text);
absl::Status CheckDeadline(int64_t deadline_ns);

// For text functions: writes as much as fits with a NUL, and sets the size of the whole text.
absl::Status CopyText(absl::string_view text, char* buffer, size_t buffer_size_bytes,
                      size_t* out_size_bytes);

}  // namespace gpushare::abi

#endif  // GPUSHARE_BINDINGS_C_OPTIONS_H_
