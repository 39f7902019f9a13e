// What cupti.h says of CUPTI, compared with its headers where the build finds them.

#include <cuda.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_result.h>
#include <cupti_target.h>

#include <cstddef>
#include <string>

#include "gtest/gtest.h"
#include "src/cuda/counters/cupti.h"

namespace gpushare::cuda::cupti {
namespace {

static_assert(kSuccess == CUPTI_SUCCESS && kInvalidMetricName == CUPTI_ERROR_INVALID_METRIC_NAME &&
              kHardwareBusy == CUPTI_ERROR_HARDWARE_BUSY &&
              kNotSupported == CUPTI_ERROR_NOT_SUPPORTED &&
              kVirtualDevice == CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED &&
              kInsufficientPrivileges == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES &&
              kOldProfilerInitialised == CUPTI_ERROR_OLD_PROFILER_API_INITIALIZED &&
              kMultipleSubscribers == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED &&
              kVirtualDevicePrivileges == CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES &&
              kConfidentialComputing == CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED &&
              kCmpDevice == CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED &&
              kMigDevice == CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED &&
              kWslDevice == CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED &&
              kInvalidChipName == CUPTI_ERROR_INVALID_CHIP_NAME);
static_assert(kRangeProfiler == CUPTI_PROFILER_TYPE_RANGE_PROFILER &&
              kUserRange == CUPTI_UserRange && kUserReplay == CUPTI_UserReplay);

#define SAME_FIELD(Ours, field, Theirs, their_field)                      \
  static_assert(offsetof(Ours, field) == offsetof(Theirs, their_field) && \
                sizeof(Ours::field) == sizeof(Theirs::their_field))
#define SAME_SIZE(Ours, Theirs) static_assert(kBytes<Ours> == Theirs##_STRUCT_SIZE)

SAME_SIZE(InitializeParams, CUpti_Profiler_Initialize_Params);
SAME_SIZE(InitializeParams, CUpti_Profiler_DeInitialize_Params);

SAME_SIZE(ChipNameParams, CUpti_Device_GetChipName_Params);
SAME_FIELD(ChipNameParams, device_ordinal, CUpti_Device_GetChipName_Params, deviceIndex);
SAME_FIELD(ChipNameParams, name, CUpti_Device_GetChipName_Params, pChipName);

SAME_SIZE(AvailabilityParams, CUpti_Profiler_GetCounterAvailability_Params);
SAME_FIELD(AvailabilityParams, context, CUpti_Profiler_GetCounterAvailability_Params, ctx);
SAME_FIELD(AvailabilityParams, image_bytes, CUpti_Profiler_GetCounterAvailability_Params,
           counterAvailabilityImageSize);
SAME_FIELD(AvailabilityParams, image, CUpti_Profiler_GetCounterAvailability_Params,
           pCounterAvailabilityImage);

SAME_SIZE(HostInitializeParams, CUpti_Profiler_Host_Initialize_Params);
SAME_FIELD(HostInitializeParams, profiler_type, CUpti_Profiler_Host_Initialize_Params,
           profilerType);
SAME_FIELD(HostInitializeParams, chip, CUpti_Profiler_Host_Initialize_Params, pChipName);
SAME_FIELD(HostInitializeParams, availability, CUpti_Profiler_Host_Initialize_Params,
           pCounterAvailabilityImage);
SAME_FIELD(HostInitializeParams, host, CUpti_Profiler_Host_Initialize_Params, pHostObject);

SAME_SIZE(HostParams, CUpti_Profiler_Host_Deinitialize_Params);
SAME_FIELD(HostParams, host, CUpti_Profiler_Host_Deinitialize_Params, pHostObject);

SAME_SIZE(AddMetricsParams, CUpti_Profiler_Host_ConfigAddMetrics_Params);
SAME_FIELD(AddMetricsParams, host, CUpti_Profiler_Host_ConfigAddMetrics_Params, pHostObject);
SAME_FIELD(AddMetricsParams, names, CUpti_Profiler_Host_ConfigAddMetrics_Params, ppMetricNames);
SAME_FIELD(AddMetricsParams, count, CUpti_Profiler_Host_ConfigAddMetrics_Params, numMetrics);

SAME_SIZE(ConfigSizeParams, CUpti_Profiler_Host_GetConfigImageSize_Params);
SAME_FIELD(ConfigSizeParams, bytes, CUpti_Profiler_Host_GetConfigImageSize_Params, configImageSize);

SAME_SIZE(ConfigImageParams, CUpti_Profiler_Host_GetConfigImage_Params);
SAME_FIELD(ConfigImageParams, bytes, CUpti_Profiler_Host_GetConfigImage_Params, configImageSize);
SAME_FIELD(ConfigImageParams, image, CUpti_Profiler_Host_GetConfigImage_Params, pConfigImage);

SAME_SIZE(EvaluateParams, CUpti_Profiler_Host_EvaluateToGpuValues_Params);
SAME_FIELD(EvaluateParams, host, CUpti_Profiler_Host_EvaluateToGpuValues_Params, pHostObject);
SAME_FIELD(EvaluateParams, counter_data, CUpti_Profiler_Host_EvaluateToGpuValues_Params,
           pCounterDataImage);
SAME_FIELD(EvaluateParams, counter_data_bytes, CUpti_Profiler_Host_EvaluateToGpuValues_Params,
           counterDataImageSize);
SAME_FIELD(EvaluateParams, range, CUpti_Profiler_Host_EvaluateToGpuValues_Params, rangeIndex);
SAME_FIELD(EvaluateParams, names, CUpti_Profiler_Host_EvaluateToGpuValues_Params, ppMetricNames);
SAME_FIELD(EvaluateParams, count, CUpti_Profiler_Host_EvaluateToGpuValues_Params, numMetrics);
SAME_FIELD(EvaluateParams, values, CUpti_Profiler_Host_EvaluateToGpuValues_Params, pMetricValues);

SAME_SIZE(EnableParams, CUpti_RangeProfiler_Enable_Params);
SAME_FIELD(EnableParams, context, CUpti_RangeProfiler_Enable_Params, ctx);
SAME_FIELD(EnableParams, profiler, CUpti_RangeProfiler_Enable_Params, pRangeProfilerObject);

SAME_SIZE(ProfilerParams, CUpti_RangeProfiler_Disable_Params);
SAME_SIZE(ProfilerParams, CUpti_RangeProfiler_Start_Params);
SAME_SIZE(ProfilerParams, CUpti_RangeProfiler_PopRange_Params);
SAME_FIELD(ProfilerParams, profiler, CUpti_RangeProfiler_Start_Params, pRangeProfilerObject);

SAME_SIZE(DataSizeParams, CUpti_RangeProfiler_GetCounterDataSize_Params);
SAME_FIELD(DataSizeParams, names, CUpti_RangeProfiler_GetCounterDataSize_Params, pMetricNames);
SAME_FIELD(DataSizeParams, count, CUpti_RangeProfiler_GetCounterDataSize_Params, numMetrics);
SAME_FIELD(DataSizeParams, ranges_max, CUpti_RangeProfiler_GetCounterDataSize_Params,
           maxNumOfRanges);
SAME_FIELD(DataSizeParams, nodes_max, CUpti_RangeProfiler_GetCounterDataSize_Params,
           maxNumRangeTreeNodes);
SAME_FIELD(DataSizeParams, bytes, CUpti_RangeProfiler_GetCounterDataSize_Params, counterDataSize);

SAME_SIZE(DataImageParams, CUpti_RangeProfiler_CounterDataImage_Initialize_Params);
SAME_FIELD(DataImageParams, bytes, CUpti_RangeProfiler_CounterDataImage_Initialize_Params,
           counterDataSize);
SAME_FIELD(DataImageParams, image, CUpti_RangeProfiler_CounterDataImage_Initialize_Params,
           pCounterData);

SAME_SIZE(SetConfigParams, CUpti_RangeProfiler_SetConfig_Params);
SAME_FIELD(SetConfigParams, config_bytes, CUpti_RangeProfiler_SetConfig_Params, configSize);
SAME_FIELD(SetConfigParams, config, CUpti_RangeProfiler_SetConfig_Params, pConfig);
SAME_FIELD(SetConfigParams, counter_data_bytes, CUpti_RangeProfiler_SetConfig_Params,
           counterDataImageSize);
SAME_FIELD(SetConfigParams, counter_data, CUpti_RangeProfiler_SetConfig_Params, pCounterDataImage);
SAME_FIELD(SetConfigParams, range, CUpti_RangeProfiler_SetConfig_Params, range);
SAME_FIELD(SetConfigParams, replay, CUpti_RangeProfiler_SetConfig_Params, replayMode);
SAME_FIELD(SetConfigParams, ranges_a_pass_max, CUpti_RangeProfiler_SetConfig_Params,
           maxRangesPerPass);
SAME_FIELD(SetConfigParams, nesting_levels, CUpti_RangeProfiler_SetConfig_Params, numNestingLevels);
SAME_FIELD(SetConfigParams, nesting_level_least, CUpti_RangeProfiler_SetConfig_Params,
           minNestingLevel);
SAME_FIELD(SetConfigParams, pass, CUpti_RangeProfiler_SetConfig_Params, passIndex);
SAME_FIELD(SetConfigParams, nesting_level_wanted, CUpti_RangeProfiler_SetConfig_Params,
           targetNestingLevel);

SAME_SIZE(StopParams, CUpti_RangeProfiler_Stop_Params);
SAME_FIELD(StopParams, pass, CUpti_RangeProfiler_Stop_Params, passIndex);
SAME_FIELD(StopParams, all_passes_done, CUpti_RangeProfiler_Stop_Params, isAllPassSubmitted);

SAME_SIZE(PushRangeParams, CUpti_RangeProfiler_PushRange_Params);
SAME_FIELD(PushRangeParams, name, CUpti_RangeProfiler_PushRange_Params, pRangeName);

SAME_SIZE(DecodeParams, CUpti_RangeProfiler_DecodeData_Params);
SAME_FIELD(DecodeParams, dropped, CUpti_RangeProfiler_DecodeData_Params, numOfRangeDropped);

TEST(CuptiLayoutTest, TheFileIsThatOfTheHeaders) {
  EXPECT_EQ(std::string(kFile), "libcupti.so.13") << "cupti.h is written for CUDA 13";
  EXPECT_EQ(CUDA_VERSION / 1000, 13);
}

}  // namespace
}  // namespace gpushare::cuda::cupti
