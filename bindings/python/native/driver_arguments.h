// The layout of CUPTI's callback data for driver calls, from CUDA's headers (for launch_hook.cc):
// the numbers of the calls that enqueue work, and their arguments up to the stream.
//
// Reading: CallbackData -> its call and site -> As<...Arguments>(arguments). A name here says which
// calls share the layout. Nothing else of CUPTI is used.

#ifndef GPUSHARE_BINDINGS_PYTHON_NATIVE_DRIVER_ARGUMENTS_H_
#define GPUSHARE_BINDINGS_PYTHON_NATIVE_DRIVER_ARGUMENTS_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace gpushare::python {

constexpr int kDriverDomain = 1;  // CUPTI_CB_DOMAIN_DRIVER_API
constexpr int kEnter = 0;         // CUPTI_API_ENTER

// CUpti_CallbackData, as far as it is read.
struct CallbackData {
  int site;
  const char* name;
  const void* arguments;
};

// CUlaunchConfig; behind the function also the arguments of cuLaunchKernel.
struct LaunchShape {
  std::array<unsigned, 3> grid;
  std::array<unsigned, 3> block;
  unsigned shared_bytes;
  void* stream;
};
struct LaunchArguments {  // cuLaunchKernel, cuLaunchCooperativeKernel
  void* function;
  LaunchShape shape;
};
struct LaunchExArguments {  // cuLaunchKernelEx
  const LaunchShape* config;
  void* function;
};
struct GraphArguments {  // cuGraphLaunch
  void* graph;
  void* stream;
};
struct CopyArguments {  // cuMemcpyAsync, cuMemcpyHtoDAsync_v2, ...DtoH..., ...DtoD...
  uint64_t to;
  uint64_t from;
  size_t size_bytes;
  void* stream;
};
struct ShapedCopyArguments {  // cuMemcpy2DAsync_v2, cuMemcpy3DAsync_v2
  const void* copy;
  void* stream;
};
struct FillArguments {  // cuMemsetD8Async, ...D16..., ...D32...
  uint64_t to;
  unsigned value;  // or a smaller number at the same place
  size_t count;
  void* stream;
};
struct Fill2dArguments {  // cuMemsetD2D8Async, ...D2D16..., ...D2D32...
  uint64_t to;
  size_t pitch_bytes;
  unsigned value;
  size_t width;
  size_t height;
  void* stream;
};

enum class DriverCall { kKernel, kKernelEx, kGraph, kCopy, kShapedCopy, kFill, kFill2d };

struct HookedCall {
  uint32_t call;  // CUPTI_DRIVER_TRACE_CBID_..., and with its form for per-thread default streams
  DriverCall kind;
  bool required;  // every CUPTI has it
};

// By how often a training loop makes them.
inline constexpr std::array kHookedCalls = {
    HookedCall{307, DriverCall::kKernel, true},      // cuLaunchKernel
    HookedCall{652, DriverCall::kKernelEx, false},   // cuLaunchKernelEx
    HookedCall{442, DriverCall::kKernel, true},      // cuLaunchKernel_ptsz
    HookedCall{653, DriverCall::kKernelEx, false},   // cuLaunchKernelEx_ptsz
    HookedCall{216, DriverCall::kFill, true},        // cuMemsetD8Async
    HookedCall{220, DriverCall::kFill, true},        // cuMemsetD32Async
    HookedCall{218, DriverCall::kFill, true},        // cuMemsetD16Async
    HookedCall{281, DriverCall::kCopy, true},        // cuMemcpyDtoDAsync_v2
    HookedCall{277, DriverCall::kCopy, true},        // cuMemcpyHtoDAsync_v2
    HookedCall{279, DriverCall::kCopy, true},        // cuMemcpyDtoHAsync_v2
    HookedCall{306, DriverCall::kCopy, true},        // cuMemcpyAsync
    HookedCall{514, DriverCall::kGraph, true},       // cuGraphLaunch
    HookedCall{477, DriverCall::kKernel, true},      // cuLaunchCooperativeKernel
    HookedCall{289, DriverCall::kShapedCopy, true},  // cuMemcpy2DAsync_v2
    HookedCall{291, DriverCall::kShapedCopy, true},  // cuMemcpy3DAsync_v2
    HookedCall{222, DriverCall::kFill2d, true},      // cuMemsetD2D8Async
    HookedCall{224, DriverCall::kFill2d, true},      // cuMemsetD2D16Async
    HookedCall{226, DriverCall::kFill2d, true},      // cuMemsetD2D32Async
    HookedCall{428, DriverCall::kFill, true},        // cuMemsetD8Async_ptsz
    HookedCall{430, DriverCall::kFill, true},        // cuMemsetD32Async_ptsz
    HookedCall{429, DriverCall::kFill, true},        // cuMemsetD16Async_ptsz
    HookedCall{423, DriverCall::kCopy, true},        // cuMemcpyDtoDAsync_v2_ptsz
    HookedCall{421, DriverCall::kCopy, true},        // cuMemcpyHtoDAsync_v2_ptsz
    HookedCall{422, DriverCall::kCopy, true},        // cuMemcpyDtoHAsync_v2_ptsz
    HookedCall{418, DriverCall::kCopy, true},        // cuMemcpyAsync_ptsz
    HookedCall{515, DriverCall::kGraph, true},       // cuGraphLaunch_ptsz
    HookedCall{478, DriverCall::kKernel, true},      // cuLaunchCooperativeKernel_ptsz
    HookedCall{424, DriverCall::kShapedCopy, true},  // cuMemcpy2DAsync_v2_ptsz
    HookedCall{425, DriverCall::kShapedCopy, true},  // cuMemcpy3DAsync_v2_ptsz
};

}  // namespace gpushare::python

#endif  // GPUSHARE_BINDINGS_PYTHON_NATIVE_DRIVER_ARGUMENTS_H_
