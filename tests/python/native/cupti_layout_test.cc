// What driver_arguments.h says of CUPTI, compared with its headers where the build finds them.

#include <cuda.h>
#include <cupti.h>  // with the arguments of the driver's calls

#include <cstddef>

#include "bindings/python/native/driver_arguments.h"
#include "gtest/gtest.h"

namespace gpushare::python {
namespace {

static_assert(kDriverDomain == CUPTI_CB_DOMAIN_DRIVER_API && kEnter == CUPTI_API_ENTER);
static_assert(offsetof(CallbackData, site) == offsetof(CUpti_CallbackData, callbackSite));
static_assert(offsetof(CallbackData, arguments) == offsetof(CUpti_CallbackData, functionParams));

static_assert(offsetof(LaunchShape, shared_bytes) == offsetof(CUlaunchConfig, sharedMemBytes));
static_assert(offsetof(LaunchShape, stream) == offsetof(CUlaunchConfig, hStream));
constexpr size_t kShape = offsetof(LaunchArguments, shape);
static_assert(kShape == offsetof(cuLaunchKernel_params, gridDimX));
static_assert(kShape + offsetof(LaunchShape, stream) == offsetof(cuLaunchKernel_params, hStream));
static_assert(kShape + offsetof(LaunchShape, stream) ==
              offsetof(cuLaunchCooperativeKernel_params, hStream));
static_assert(offsetof(LaunchExArguments, config) == offsetof(cuLaunchKernelEx_params, config));
static_assert(offsetof(LaunchExArguments, function) == offsetof(cuLaunchKernelEx_params, f));
static_assert(offsetof(GraphArguments, stream) == offsetof(cuGraphLaunch_params, hStream));

template <class Given>
constexpr bool IsCopy() {
  return offsetof(CopyArguments, size_bytes) == offsetof(Given, ByteCount) &&
         offsetof(CopyArguments, stream) == offsetof(Given, hStream);
}
static_assert(IsCopy<cuMemcpyAsync_params>() && IsCopy<cuMemcpyHtoDAsync_v2_params>() &&
              IsCopy<cuMemcpyDtoHAsync_v2_params>() && IsCopy<cuMemcpyDtoDAsync_v2_params>());
constexpr size_t kShapedCopyStream = offsetof(ShapedCopyArguments, stream);
static_assert(kShapedCopyStream == offsetof(cuMemcpy2DAsync_v2_params, hStream));
static_assert(kShapedCopyStream == offsetof(cuMemcpy3DAsync_v2_params, hStream));

template <class Given>
constexpr bool IsFill() {
  return offsetof(FillArguments, count) == offsetof(Given, N) &&
         offsetof(FillArguments, stream) == offsetof(Given, hStream);
}
static_assert(IsFill<cuMemsetD8Async_params>() && IsFill<cuMemsetD16Async_params>() &&
              IsFill<cuMemsetD32Async_params>());
template <class Given>
constexpr bool IsFill2d() {
  return offsetof(Fill2dArguments, height) == offsetof(Given, Height) &&
         offsetof(Fill2dArguments, stream) == offsetof(Given, hStream);
}
static_assert(IsFill2d<cuMemsetD2D8Async_params>() && IsFill2d<cuMemsetD2D16Async_params>() &&
              IsFill2d<cuMemsetD2D32Async_params>());

// The numbers, in the order of kHookedCalls.
constexpr std::array kNumbers = {
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD16Async,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync,
    CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpy2DAsync_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpy3DAsync_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD2D8Async,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD2D16Async,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD2D32Async,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD16Async_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpy2DAsync_v2_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpy3DAsync_v2_ptsz,
};

TEST(CuptiLayoutTest, TheNumbersOfTheCallsAreThoseOfTheHeaders) {
  ASSERT_EQ(kNumbers.size(), kHookedCalls.size());
  for (size_t i = 0; i < kNumbers.size(); ++i) {
    EXPECT_EQ(kHookedCalls[i].call, static_cast<uint32_t>(kNumbers[i])) << "at " << i;
  }
}

}  // namespace
}  // namespace gpushare::python
