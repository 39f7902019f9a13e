// CUPTI's range profiler: its functions, opened at run time, and the structs that they take.
//
// The library is built without CUPTI's headers, so what it needs of them stands here. Every struct
// begins with its own size, by which CUPTI knows which fields the caller has.
// tests/cuda/counters/cupti_layout_test.cc compares all with the headers where a build finds them.
// Threads: any.

#ifndef GPUSHARE_SRC_CUDA_COUNTERS_CUPTI_H_
#define GPUSHARE_SRC_CUDA_COUNTERS_CUPTI_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gpushare::cuda::cupti {

// Of CUDA 13, whose driver the device needs anyway.
inline constexpr char kFile[] = "libcupti.so.13";

// CUptiResult.
inline constexpr int kSuccess = 0;
inline constexpr int kInvalidParameter = 1;  // of CUPTI 13.0 for an unknown metric too
inline constexpr int kInvalidMetricName = 17;
inline constexpr int kHardwareBusy = 26;
inline constexpr int kNotSupported = 27;
inline constexpr int kVirtualDevice = 33;
inline constexpr int kInsufficientPrivileges = 35;
inline constexpr int kOldProfilerInitialised = 36;
inline constexpr int kMultipleSubscribers = 39;
inline constexpr int kVirtualDevicePrivileges = 40;
inline constexpr int kConfidentialComputing = 41;
inline constexpr int kCmpDevice = 42;
inline constexpr int kMigDevice = 43;
inline constexpr int kWslDevice = 45;
inline constexpr int kInvalidChipName = 46;

// CUpti_ProfilerType, CUpti_ProfilerRange, CUpti_ProfilerReplayMode.
inline constexpr int kRangeProfiler = 0;
inline constexpr int kUserRange = 2;
inline constexpr int kUserReplay = 3;

// The head of every struct.
struct Head {
  size_t bytes = 0;  // as kBytes below has it
  void* unused = nullptr;
};

struct InitializeParams {  // also those of DeInitialize
  Head head;
};

struct ChipNameParams {
  Head head;
  size_t device_ordinal = 0;
  const char* name = nullptr;  // out
};

struct AvailabilityParams {
  Head head;
  void* context = nullptr;
  size_t image_bytes = 0;  // in and out
  uint8_t* image = nullptr;
};

struct HostInitializeParams {
  Head head;
  int profiler_type = kRangeProfiler;
  const char* chip = nullptr;
  const uint8_t* availability = nullptr;
  void* host = nullptr;  // out
};

struct HostParams {  // of HostDeinitialize
  Head head;
  void* host = nullptr;
};

struct AddMetricsParams {
  Head head;
  void* host = nullptr;
  const char** names = nullptr;
  size_t count = 0;
};

struct ConfigSizeParams {
  Head head;
  void* host = nullptr;
  size_t bytes = 0;  // out
};

struct ConfigImageParams {
  Head head;
  void* host = nullptr;
  size_t bytes = 0;
  uint8_t* image = nullptr;
};

struct EvaluateParams {
  Head head;
  void* host = nullptr;
  const uint8_t* counter_data = nullptr;
  size_t counter_data_bytes = 0;
  size_t range = 0;
  const char** names = nullptr;
  size_t count = 0;
  double* values = nullptr;
};

struct EnableParams {
  Head head;
  void* context = nullptr;
  void* profiler = nullptr;  // out
};

struct ProfilerParams {  // of Disable, Start and PopRange
  Head head;
  void* profiler = nullptr;
};

struct DataSizeParams {
  Head head;
  void* profiler = nullptr;
  const char** names = nullptr;
  size_t count = 0;
  size_t ranges_max = 0;
  uint32_t nodes_max = 0;
  size_t bytes = 0;  // out
};

struct DataImageParams {
  Head head;
  void* profiler = nullptr;
  size_t bytes = 0;
  uint8_t* image = nullptr;
};

struct SetConfigParams {
  Head head;
  void* profiler = nullptr;
  size_t config_bytes = 0;
  const uint8_t* config = nullptr;
  size_t counter_data_bytes = 0;
  uint8_t* counter_data = nullptr;
  int range = kUserRange;
  int replay = kUserReplay;
  size_t ranges_a_pass_max = 1;
  uint16_t nesting_levels = 1;
  uint16_t nesting_level_least = 1;
  size_t pass = 0;
  uint16_t nesting_level_wanted = 1;
};

struct StopParams {
  Head head;
  void* profiler = nullptr;
  size_t pass = 0;                  // out
  size_t nesting_level_wanted = 0;  // out
  uint8_t all_passes_done = 0;      // out
};

struct PushRangeParams {
  Head head;
  void* profiler = nullptr;
  const char* name = nullptr;
};

struct DecodeParams {
  Head head;
  void* profiler = nullptr;
  size_t dropped = 0;  // out
};

// CUPTI's size of a struct: up to its last field, without the padding behind it.
template <class Params>
inline constexpr size_t kBytes = sizeof(Params);
template <>
inline constexpr size_t kBytes<SetConfigParams> = offsetof(SetConfigParams, nesting_level_wanted) +
                                                  sizeof(uint16_t);
template <>
inline constexpr size_t kBytes<StopParams> = offsetof(StopParams, all_passes_done) +
                                             sizeof(uint8_t);

template <class Params>
Params Make() {
  Params params;
  params.head.bytes = kBytes<Params>;
  return params;
}

struct Calls {
  int (*initialize)(InitializeParams*) = nullptr;
  int (*deinitialize)(InitializeParams*) = nullptr;
  int (*chip_name)(ChipNameParams*) = nullptr;
  int (*availability)(AvailabilityParams*) = nullptr;
  int (*host_initialize)(HostInitializeParams*) = nullptr;
  int (*host_deinitialize)(HostParams*) = nullptr;
  int (*add_metrics)(AddMetricsParams*) = nullptr;
  int (*config_size)(ConfigSizeParams*) = nullptr;
  int (*config_image)(ConfigImageParams*) = nullptr;
  int (*evaluate)(EvaluateParams*) = nullptr;
  int (*enable)(EnableParams*) = nullptr;
  int (*disable)(ProfilerParams*) = nullptr;
  int (*data_size)(DataSizeParams*) = nullptr;
  int (*data_image)(DataImageParams*) = nullptr;
  int (*set_config)(SetConfigParams*) = nullptr;
  int (*start)(ProfilerParams*) = nullptr;
  int (*stop)(StopParams*) = nullptr;
  int (*push_range)(PushRangeParams*) = nullptr;
  int (*pop_range)(ProfilerParams*) = nullptr;
  int (*decode)(DecodeParams*) = nullptr;
  int (*result_string)(int, const char**) = nullptr;
};

// The library stays open until the process ends. UNAVAILABLE: it is not installed, or of another
// version.
absl::StatusOr<Calls> Open(const char* file = kFile);

// OK for kSuccess, else what the failure of `call` means for somebody who wants counters.
// PERMISSION_DENIED, UNAVAILABLE, FAILED_PRECONDITION or INTERNAL.
absl::Status StatusOf(const Calls& calls, int result, const char* call);

}  // namespace gpushare::cuda::cupti

#endif  // GPUSHARE_SRC_CUDA_COUNTERS_CUPTI_H_
