// A CUPTI that profiles nothing: it plays the range profiler's part for launch_counter_test.cc, as
// a shared library with CUPTI's name. It checks the sizes of structs against those of CUDA 13.0.

#include "tests/cuda/counters/fake_cupti.h"

#include <cstdint>
#include <cstring>
#include <utility>

#include "src/cuda/counters/cupti.h"

namespace gpushare::cuda {
namespace {

using namespace cupti;  // NOLINT(google-build-using-namespace): the whole file is about it

FakeCupti& State() {
  static FakeCupti state;
  return state;
}

// Bytes of a session's objects that the caller only hands back.
int host_object = 0;
int profiler_object = 0;

// CUPTI_PROFILER_STRUCT_SIZE of each struct in the headers of CUDA 13.0.
int Answer(const char* call, size_t bytes, size_t expected) {
  State().calls.emplace_back(call);
  if (bytes != expected) State().wrong_size = call;
  const auto answer = State().answers.find(call);
  return answer == State().answers.end() ? kSuccess : answer->second;
}

// CUPTI refuses calls out of their order: pass in session, range in pass.
void Require(bool right, const char* call) {
  if (!right) State().wrong_order = call;
}

}  // namespace

extern "C" {

FakeCupti* FakeCuptiState() { return &State(); }

int cuptiProfilerInitialize(InitializeParams* params) {
  const int answer = Answer("Initialize", params->head.bytes, 16);
  if (answer == kSuccess) State().initialised = true;
  return answer;
}

// Not counted, as in CUPTI: one call undoes all of Initialize.
int cuptiProfilerDeInitialize(InitializeParams* params) {
  State().initialised = false;
  return Answer("DeInitialize", params->head.bytes, 16);
}

int cuptiDeviceGetChipName(ChipNameParams* params) {
  State().ordinal = static_cast<int>(params->device_ordinal);
  params->name = "GH100";
  return Answer("GetChipName", params->head.bytes, 32);
}

int cuptiProfilerGetCounterAvailability(AvailabilityParams* params) {
  State().context = params->context;
  if (params->image == nullptr) {
    params->image_bytes = 5;
  } else {
    std::memset(params->image, 7, params->image_bytes);
  }
  return Answer("GetCounterAvailability", params->head.bytes, 40);
}

int cuptiProfilerHostInitialize(HostInitializeParams* params) {
  const int answer = Answer("HostInitialize", params->head.bytes, 48);
  const bool right = params->profiler_type == 0 && std::strcmp(params->chip, "GH100") == 0 &&
                     params->availability[4] == 7;
  if (!right) return kInvalidChipName;
  if (answer != kSuccess) return answer;
  ++State().open_sessions;
  params->host = &host_object;
  return kSuccess;
}

int cuptiProfilerHostDeinitialize(HostParams* params) {
  --State().open_sessions;
  return Answer("HostDeinitialize", params->head.bytes, 24);
}

int cuptiProfilerHostConfigAddMetrics(AddMetricsParams* params) {
  for (size_t i = 0; i < params->count; ++i) {
    if (params->names[i] == State().missing_metric) return State().missing_answer;
  }
  State().metrics.assign(params->names, params->names + params->count);
  return Answer("ConfigAddMetrics", params->head.bytes, 40);
}

int cuptiProfilerHostGetConfigImageSize(ConfigSizeParams* params) {
  params->bytes = 11;
  return Answer("GetConfigImageSize", params->head.bytes, 32);
}

int cuptiProfilerHostGetConfigImage(ConfigImageParams* params) {
  std::memset(params->image, 9, params->bytes);
  return Answer("GetConfigImage", params->head.bytes, 40);
}

int cuptiProfilerHostEvaluateToGpuValues(EvaluateParams* params) {
  for (size_t i = 0; i < params->count; ++i) {
    const auto value = State().values.find(params->names[i]);
    params->values[i] = value == State().values.end() ? 0 : value->second;
  }
  return Answer("EvaluateToGpuValues", params->head.bytes, 72);
}

int cuptiRangeProfilerEnable(EnableParams* params) {
  const int answer = Answer("Enable", params->head.bytes, 32);
  if (answer != kSuccess) return answer;
  ++State().open_sessions;
  params->profiler = &profiler_object;
  return kSuccess;
}

int cuptiRangeProfilerDisable(ProfilerParams* params) {
  Require(!State().in_pass && !State().in_range, "Disable");
  --State().open_sessions;
  return Answer("Disable", params->head.bytes, 24);
}

int cuptiRangeProfilerGetCounterDataSize(DataSizeParams* params) {
  params->bytes = 13;
  return Answer("GetCounterDataSize", params->head.bytes, 64);
}

int cuptiRangeProfilerCounterDataImageInitialize(DataImageParams* params) {
  std::memset(params->image, 0, params->bytes);
  return Answer("CounterDataImageInitialize", params->head.bytes, 40);
}

int cuptiRangeProfilerSetConfig(SetConfigParams* params) {
  const bool right = params->config_bytes == 11 && params->config[10] == 9 &&
                     params->counter_data_bytes == 13 && params->range == 2 &&
                     params->replay == 3 && params->ranges_a_pass_max == 1 &&
                     params->nesting_levels == 1 && params->nesting_level_least == 1 &&
                     params->pass == 0 && params->nesting_level_wanted == 1;
  const int answer = Answer("SetConfig", params->head.bytes, 90);
  return right ? answer : kNotSupported;
}

int cuptiRangeProfilerStart(ProfilerParams* params) {
  Require(!State().in_pass, "Start");
  const int answer = Answer("Start", params->head.bytes, 24);
  if (answer != kSuccess) return answer;
  State().in_pass = true;
  ++State().passes_begun;
  return kSuccess;
}

int cuptiRangeProfilerStop(StopParams* params) {
  Require(State().in_pass && !State().in_range, "Stop");
  State().in_pass = false;
  params->all_passes_done = State().passes_begun >= State().passes ? 1 : 0;
  return Answer("Stop", params->head.bytes, 41);
}

int cuptiRangeProfilerPushRange(PushRangeParams* params) {
  Require(State().in_pass && !State().in_range, "PushRange");
  const int answer = Answer("PushRange", params->head.bytes, 32);
  if (answer == kSuccess) State().in_range = true;
  return answer;
}

int cuptiRangeProfilerPopRange(ProfilerParams* params) {
  Require(State().in_range, "PopRange");
  State().in_range = false;
  return Answer("PopRange", params->head.bytes, 24);
}

int cuptiRangeProfilerDecodeData(DecodeParams* params) {
  return Answer("DecodeData", params->head.bytes, 32);
}

int cuptiGetResultString(int result, const char** text) {
  *text = result == kInsufficientPrivileges ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" : nullptr;
  return kSuccess;
}

}  // extern "C"

}  // namespace gpushare::cuda
