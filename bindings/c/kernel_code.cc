// Reading of a kernel's code from its options; see kernel_code.h.

#include "bindings/c/kernel_code.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "bindings/c/convert.h"
#include "bindings/c/handles.h"
#include "bindings/c/options.h"
#include "src/core/base/limits.h"

namespace gpushare::abi {
namespace {

absl::StatusOr<core::TaskKind> ReadKind(const gpushare_kernel_options& options,
                                        core::TaskKind known) {
  switch (options.kind) {
    case GPUSHARE_TASK_DEFAULT:
      return known;
    case GPUSHARE_TASK_KERNEL:
      return core::TaskKind::kKernel;
    case GPUSHARE_TASK_GRAPH:
      return core::TaskKind::kGraph;
    case GPUSHARE_TASK_LIBRARY:
      return core::TaskKind::kLibrary;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("The kind of kernel '", options.name, "' is ", options.kind,
                       ", and a kernel is of kind 1 (kernel), 2 (graph) or 3 (library)."));
  }
}

absl::Status CheckPartsOfKind(const gpushare_kernel_options& options, core::TaskKind kind) {
  struct Part {
    bool given;
    core::TaskKind of_kind;
    absl::string_view what;
  };
  const bool functions = options.original_function != nullptr ||
                         options.worker_function != nullptr || options.slice_function != nullptr;
  const bool graph =
      options.graph != nullptr || options.graph_exec != nullptr || options.capture != nullptr;
  for (const Part& part :
       {Part{functions, core::TaskKind::kKernel, "a function"},
        Part{options.counters != nullptr, core::TaskKind::kKernel, "counters"},
        Part{graph, core::TaskKind::kGraph, "a graph or a capture callback"},
        Part{options.segment_ns != 0, core::TaskKind::kGraph, "a length of segments (segment_ns)"},
        Part{options.measure_nodes != 0, core::TaskKind::kGraph, "measure_nodes"},
        Part{options.measure_places != 0, core::TaskKind::kGraph, "measure_places"},
        Part{options.warm_memory_count != 0, core::TaskKind::kGraph, "warm memory"},
        Part{options.function_image_count != 0, core::TaskKind::kGraph, "images of functions"},
        Part{options.library != nullptr, core::TaskKind::kLibrary, "a library call"}}) {
    if (!part.given || part.of_kind == kind) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("'", options.name, "' has ", part.what, ", and it is not of kind ",
                     gpushare_task_kind_name(ToC(part.of_kind)), "."));
  }
  return absl::OkStatus();
}

absl::Status ReadWarmMemory(const gpushare_kernel_options& options, core::GraphCode& out) {
  if (options.warm_memory_count > core::kMaxWarmRanges) {
    return absl::InvalidArgumentError(absl::StrCat("kernel_options.warm_memory_count is ",
                                                   options.warm_memory_count, ", and the limit is ",
                                                   core::kMaxWarmRanges, "."));
  }
  if (options.warm_memory_count > 0) {
    GPUSHARE_RETURN_IF_ERROR(CheckNotNull("kernel_options.warm_memory", options.warm_memory));
  }
  for (uint32_t i = 0; i < options.warm_memory_count; ++i) {
    const gpushare_memory_range& range = options.warm_memory[i];
    out.warm_memory.push_back({reinterpret_cast<uintptr_t>(range.address), range.size_bytes});
  }
  return absl::OkStatus();
}

absl::Status ReadFunctionImages(const gpushare_kernel_options& options, core::GraphCode& out) {
  if (options.function_image_count > core::kMaxFunctionImages) {
    return absl::InvalidArgumentError(
        absl::StrCat("kernel_options.function_image_count is ", options.function_image_count,
                     ", and the limit is ", core::kMaxFunctionImages, "."));
  }
  if (options.function_image_count > 0) {
    GPUSHARE_RETURN_IF_ERROR(
        CheckNotNull("kernel_options.function_images", options.function_images));
  }
  out.function_images.reserve(options.function_image_count);
  for (uint32_t i = 0; i < options.function_image_count; ++i) {
    const gpushare_function_image& image = options.function_images[i];
    const bool complete = image.function != nullptr && image.image != nullptr &&
                          image.name != nullptr && image.name[0] != 0;
    if (!complete || image.image_bytes == 0 || image.image_bytes > core::kMaxFunctionImageBytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "kernel_options.function_images[", i, "] lacks its function, its image or its name, or ",
          image.image_bytes, " bytes are not 1 to ", core::kMaxFunctionImageBytes, "."));
    }
    out.function_images.push_back(
        {image.function,
         {static_cast<const char*>(image.image), static_cast<size_t>(image.image_bytes)},
         image.name});
  }
  return absl::OkStatus();
}

absl::StatusOr<core::GraphCode> ReadGraph(const gpushare_kernel_options& options) {
  if (options.graph_exec != nullptr && options.confinable == GPUSHARE_CHOICE_YES) {
    return absl::InvalidArgumentError(absl::StrCat(
        "kernel_options.confinable of '", options.name,
        "' is 1 (yes), and a graph that is instantiated already (graph_exec) runs on the whole "
        "device only."));
  }
  core::GraphCode out;
  out.capture = options.capture;
  out.capture_user = options.capture_user;
  out.graph = options.graph;
  out.graph_exec = options.graph_exec;
  out.segment_ns = options.segment_ns;
  out.measure_nodes = options.measure_nodes == 1;
  out.measure_places = options.measure_places == 1;
  GPUSHARE_RETURN_IF_ERROR(ReadWarmMemory(options, out));
  GPUSHARE_RETURN_IF_ERROR(ReadFunctionImages(options, out));
  return out;
}

// Enumerations with equal numbers on both sides, and operands that are copied as bytes.
static_assert(static_cast<int>(core::LibraryOperation::kMatmul) == GPUSHARE_LIBRARY_MATMUL);
static_assert(static_cast<int>(core::LibraryOperation::kConvolution) ==
              GPUSHARE_LIBRARY_CONVOLUTION);
static_assert(static_cast<int>(core::LibraryOperation::kPooling) == GPUSHARE_LIBRARY_POOLING);
static_assert(static_cast<int>(core::LibraryOperation::kActivation) == GPUSHARE_LIBRARY_ACTIVATION);
static_assert(static_cast<int>(core::LibraryOperation::kSoftmax) == GPUSHARE_LIBRARY_SOFTMAX);
static_assert(static_cast<int>(core::DataType::kFloat32) == GPUSHARE_FLOAT32);
static_assert(static_cast<int>(core::DataType::kFloat16) == GPUSHARE_FLOAT16);
static_assert(static_cast<int>(core::DataType::kBfloat16) == GPUSHARE_BFLOAT16);
static_assert(static_cast<int>(core::LibraryMode::kMaxPooling) == GPUSHARE_MODE_MAX_POOLING);
static_assert(static_cast<int>(core::LibraryMode::kAveragePooling) ==
              GPUSHARE_MODE_AVERAGE_POOLING);
static_assert(static_cast<int>(core::LibraryMode::kRelu) == GPUSHARE_MODE_RELU);
static_assert(static_cast<int>(core::LibraryMode::kTanh) == GPUSHARE_MODE_TANH);
static_assert(static_cast<int>(core::LibraryMode::kSigmoid) == GPUSHARE_MODE_SIGMOID);
static_assert(sizeof(gpushare_library_arguments) == sizeof(core::LibraryArguments));
static_assert(offsetof(gpushare_library_arguments, a) == offsetof(core::LibraryArguments, a));
static_assert(offsetof(gpushare_library_arguments, b) == offsetof(core::LibraryArguments, b));
static_assert(offsetof(gpushare_library_arguments, c) == offsetof(core::LibraryArguments, c));
static_assert(offsetof(gpushare_library_arguments, d) == offsetof(core::LibraryArguments, d));
static_assert(offsetof(gpushare_library_arguments, alpha) ==
              offsetof(core::LibraryArguments, alpha));
static_assert(offsetof(gpushare_library_arguments, beta) == offsetof(core::LibraryArguments, beta));

absl::Status CheckEnum(absl::string_view field, int32_t value, int32_t least, int32_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("library_call.", field, " is ", value,
                                                 ", and it must lie between ", least, " and ", most,
                                                 "."));
}

int64_t OneIfZero(int64_t value) { return value == 0 ? 1 : value; }

absl::StatusOr<core::LibraryCall> ReadLibraryCall(const gpushare_library_call& given) {
  gpushare_library_call call;
  GPUSHARE_RETURN_IF_ERROR(ReadOptions("library_call", &given, &call));
  GPUSHARE_RETURN_IF_ERROR(CheckReserved("library_call", call.reserved));
  GPUSHARE_RETURN_IF_ERROR(
      CheckEnum("operation", call.operation, GPUSHARE_LIBRARY_MATMUL, GPUSHARE_LIBRARY_SOFTMAX));
  GPUSHARE_RETURN_IF_ERROR(CheckEnum("type", call.type, GPUSHARE_FLOAT32, GPUSHARE_BFLOAT16));
  GPUSHARE_RETURN_IF_ERROR(
      CheckEnum("mode", call.mode, GPUSHARE_MODE_DEFAULT, GPUSHARE_MODE_SIGMOID));
  GPUSHARE_RETURN_IF_ERROR(CheckBool("library_call.channels_last", call.channels_last));
  GPUSHARE_RETURN_IF_ERROR(CheckBool("library_call.transpose_a", call.transpose_a));
  GPUSHARE_RETURN_IF_ERROR(CheckBool("library_call.transpose_b", call.transpose_b));
  core::LibraryCall out;
  out.operation = static_cast<core::LibraryOperation>(call.operation);
  out.type = static_cast<core::DataType>(call.type);
  out.mode = static_cast<core::LibraryMode>(call.mode);
  out.channels_last = call.channels_last == 1;
  out.transpose_a = call.transpose_a == 1;
  out.transpose_b = call.transpose_b == 1;
  out.m = call.m;
  out.n = call.n;
  out.k = call.k;
  out.batch = OneIfZero(call.batch);
  out.channels = call.channels;
  out.height = call.height;
  out.width = call.width;
  out.filters = call.filters;
  out.filter_height = call.filter_height;
  out.filter_width = call.filter_width;
  out.padding = call.padding;
  out.stride = OneIfZero(call.stride);
  out.dilation = OneIfZero(call.dilation);
  out.groups = OneIfZero(call.groups);
  return out;
}

}  // namespace

absl::Status ReadCode(const gpushare_kernel_options& options, core::KernelDesc& out) {
  GPUSHARE_RETURN_IF_ERROR(CheckBool("kernel_options.measure_nodes", options.measure_nodes));
  GPUSHARE_RETURN_IF_ERROR(CheckBool("kernel_options.measure_places", options.measure_places));
  const absl::StatusOr<core::TaskKind> kind = ReadKind(options, out.kind());
  if (!kind.ok()) return kind.status();
  GPUSHARE_RETURN_IF_ERROR(CheckPartsOfKind(options, *kind));
  if (*kind == core::TaskKind::kGraph) {
    absl::StatusOr<core::GraphCode> graph = ReadGraph(options);
    if (!graph.ok()) return graph.status();
    if (graph->graph_exec != nullptr) out.confinable = false;
    out.code = *std::move(graph);
  } else if (*kind == core::TaskKind::kLibrary) {
    absl::StatusOr<core::LibraryCall> call = core::LibraryCall();
    if (options.library != nullptr) call = ReadLibraryCall(*options.library);
    if (!call.ok()) return call.status();
    out.code = *call;
  } else {
    out.code = core::FunctionCode{options.original_function, options.worker_function,
                                  options.slice_function};
  }
  return absl::OkStatus();
}

}  // namespace gpushare::abi
