// Builds the graph form of a convolution: descriptors, engine, packs. See
// cudnn_convolution_graph.h.

#if __has_include(<cudnn.h>)

#include "src/cuda/library/cudnn_convolution_graph.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/cuda/library/library_backend.h"

namespace gpushare::cuda {
namespace {

// Identifiers that connect the tensors of the graph with the pointers of a pack.
enum TensorId : int64_t { kX = 1, kW = 2, kY = 3 };

// Configurations that one mode of the heuristics may return: cuDNN 9.19 returns 40 for a
// convolution.
constexpr int64_t kConfigurationsMax = 64;

// An attribute whose value is another descriptor.
GraphAttribute Reference(cudnnBackendAttributeName_t name, const cudnnBackendDescriptor_t& value) {
  return {name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value};
}

bool LosesDigits(cudnnBackendNumericalNote_t note) {
  return note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE ||
         note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS ||
         note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
}

}  // namespace

absl::Status ConvolutionGraph::Make(cudnnHandle_t handle, const CudnnDimensions& output,
                                    int32_t sm_target) {
  if (absl::Status status = Describe(handle, output); !status.ok()) return status;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    if (FindEngine(handle, mode, sm_target)) return absl::OkStatus();
  }
  return absl::NotFoundError(
      absl::StrCat("cuDNN's graph interface has no engine for this convolution that needs at most ",
                   kWorkspaceBytes, " bytes of workspace",
                   sm_target > 0 ? absl::StrCat(" and takes ", sm_target, " SMs.") : "."));
}

absl::Status ConvolutionGraph::DescribeTensor(int64_t id, const CudnnDimensions& dimensions,
                                              GraphDescriptor& out) {
  const cudnnDataType_t type = CudnnTypeOf(call_.type);
  const int64_t alignment = kGraphAlignment;
  const std::array<int64_t, 4> sizes = {dimensions[0], dimensions[1], dimensions[2], dimensions[3]};
  const int64_t image = sizes[1] * sizes[2] * sizes[3];
  const std::array<int64_t, 4> strides =
      call_.channels_last ? std::array<int64_t, 4>{image, 1, sizes[3] * sizes[1], sizes[1]}
                          : std::array<int64_t, 4>{image, sizes[2] * sizes[3], sizes[3], 1};
  return MakeGraphDescriptor(api_, CUDNN_BACKEND_TENSOR_DESCRIPTOR,
                             {{CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id},
                              {CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type},
                              {CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, sizes.data()},
                              {CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides.data()},
                              {CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment}},
                             out);
}

absl::Status ConvolutionGraph::Describe(cudnnHandle_t handle, const CudnnDimensions& output) {
  // cuDNN derives the groups: the filters have fewer channels than the input.
  const CudnnDimensions filters = {Int(call_.filters), Int(call_.channels / call_.groups),
                                   Int(call_.filter_height), Int(call_.filter_width)};
  for (const absl::Status& status :
       {DescribeTensor(kX, CudnnInputOf(call_), x_), DescribeTensor(kW, filters, w_),
        DescribeTensor(kY, output, y_)}) {
    if (!status.ok()) return status;
  }
  const int64_t dimensions = 2;
  const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  const std::array<int64_t, 2> padding = {call_.padding, call_.padding};
  const std::array<int64_t, 2> stride = {call_.stride, call_.stride};
  const std::array<int64_t, 2> dilation = {call_.dilation, call_.dilation};
  absl::Status status = MakeGraphDescriptor(
      api_, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR,
      {{CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &dimensions},
       {CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute},
       {CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode},
       {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, padding.data()},
       {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, padding.data()},
       {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, stride.data()},
       {CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, dilation.data()}},
      convolution_);
  if (!status.ok()) return status;
  const float alpha = 1;
  const float beta = 0;
  const std::array<cudnnBackendDescriptor_t, 4> parts = {x_.get(), w_.get(), y_.get(),
                                                         convolution_.get()};
  status = MakeGraphDescriptor(
      api_, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
      {Reference(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, parts[0]),
       Reference(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, parts[1]),
       Reference(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, parts[2]),
       Reference(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, parts[3]),
       {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1, &alpha},
       {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 1, &beta}},
      operation_);
  if (!status.ok()) return status;
  cudnnBackendDescriptor_t operation = operation_.get();
  return MakeGraphDescriptor(api_, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR,
                             {{CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle},
                              Reference(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation)},
                             graph_);
}

// Takes the first usable engine that this mode of the heuristics returns.
bool ConvolutionGraph::FindEngine(cudnnHandle_t handle, cudnnBackendHeurMode_t mode,
                                  int32_t sm_target) {
  for (GraphDescriptor& found : Configurations(mode, sm_target)) {
    if (UseConfiguration(handle, std::move(found), sm_target)) return true;
  }
  return false;
}

// Configurations, best first; empty if the heuristics fail.
std::vector<GraphDescriptor> ConvolutionGraph::Configurations(cudnnBackendHeurMode_t mode,
                                                              int32_t sm_target) {
  cudnnBackendDescriptor_t graph = graph_.get();
  std::vector<GraphAttribute> attributes = {
      Reference(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph),
      {CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode}};
  if (sm_target > 0) {
    attributes.push_back({CUDNN_ATTR_ENGINEHEUR_SM_COUNT_TARGET, CUDNN_TYPE_INT32, 1, &sm_target});
  }
  GraphDescriptor heuristics;
  if (!MakeGraphDescriptor(api_, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, attributes, heuristics)
           .ok()) {
    return {};
  }
  std::vector<GraphDescriptor> out(kConfigurationsMax);
  std::vector<cudnnBackendDescriptor_t> to_fill;
  for (GraphDescriptor& one : out) {
    if (!CreateGraphDescriptor(api_, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, one).ok()) return {};
    to_fill.push_back(one.get());
  }
  int64_t count = 0;
  if (api_.cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                    CUDNN_TYPE_BACKEND_DESCRIPTOR, kConfigurationsMax, &count,
                                    to_fill.data()) != CUDNN_STATUS_SUCCESS) {
    return {};
  }
  out.resize(static_cast<size_t>(std::clamp<int64_t>(count, 0, kConfigurationsMax)));
  return out;
}

// Returns false for an engine that fails in any way. The caller then tries the next one, and at
// last the immediate function.
bool ConvolutionGraph::UseConfiguration(cudnnHandle_t handle, GraphDescriptor found,
                                        int32_t sm_target) {
  GraphDescriptor engine;
  if (!CreateGraphDescriptor(api_, CUDNN_BACKEND_ENGINE_DESCRIPTOR, engine).ok()) return false;
  cudnnBackendDescriptor_t to_fill = engine.get();
  int64_t count = 0;
  if (api_.cudnnBackendGetAttribute(found.get(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                    CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                                    &to_fill) != CUDNN_STATUS_SUCCESS) {
    return false;
  }
  if (!KeepsPrecision(engine)) return false;
  // The heuristics return engines that carry the SM count already, but cuDNN does not promise that.
  const bool has_target = sm_target == 0 || TargetOf(engine) == sm_target;
  if (!has_target && !Retarget(engine, found, sm_target)) return false;
  if (!MakePlan(handle, has_target ? found : configuration_)) return false;
  found_ = std::move(found);
  return true;
}

bool ConvolutionGraph::KeepsPrecision(const GraphDescriptor& engine) const {
  if (call_.type != core::DataType::kFloat32) return true;
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
  int64_t count = 0;
  if (api_.cudnnBackendGetAttribute(engine.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                    CUDNN_TYPE_NUMERICAL_NOTE, notes.size(), &count,
                                    notes.data()) != CUDNN_STATUS_SUCCESS) {
    return false;
  }
  const int64_t known = std::clamp<int64_t>(count, 0, notes.size());
  return std::none_of(notes.begin(), notes.begin() + known, LosesDigits);
}

// The SM count of the engine; 0 if cuDNN does not say.
int32_t ConvolutionGraph::TargetOf(const GraphDescriptor& engine) const {
  int32_t target = 0;
  int64_t count = 0;
  const cudnnStatus_t code = api_.cudnnBackendGetAttribute(
      engine.get(), CUDNN_ATTR_ENGINE_SM_COUNT_TARGET, CUDNN_TYPE_INT32, 1, &count, &target);
  return code == CUDNN_STATUS_SUCCESS && count == 1 ? target : 0;
}

// Sets configuration_ to a copy of `found` whose engine has the SM count.
bool ConvolutionGraph::Retarget(const GraphDescriptor& engine, const GraphDescriptor& found,
                                int32_t sm_target) {
  configuration_.reset();  // from an earlier engine; destroyed before its parts
  int64_t index = 0;
  int64_t count = 0;
  if (api_.cudnnBackendGetAttribute(engine.get(), CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64,
                                    1, &count, &index) != CUDNN_STATUS_SUCCESS) {
    return false;
  }
  cudnnBackendDescriptor_t graph = graph_.get();
  if (!MakeGraphDescriptor(api_, CUDNN_BACKEND_ENGINE_DESCRIPTOR,
                           {Reference(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph),
                            {CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &index},
                            {CUDNN_ATTR_ENGINE_SM_COUNT_TARGET, CUDNN_TYPE_INT32, 1, &sm_target}},
                           engine_)
           .ok()) {
    return false;
  }
  std::vector<GraphDescriptor> knobs(CUDNN_KNOB_TYPE_COUNTS);
  std::vector<cudnnBackendDescriptor_t> choices;
  for (GraphDescriptor& knob : knobs) {
    if (!CreateGraphDescriptor(api_, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, knob).ok()) return false;
    choices.push_back(knob.get());
  }
  if (api_.cudnnBackendGetAttribute(found.get(), CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                    CUDNN_TYPE_BACKEND_DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS, &count,
                                    choices.data()) != CUDNN_STATUS_SUCCESS) {
    return false;
  }
  count = std::clamp<int64_t>(count, 0, CUDNN_KNOB_TYPE_COUNTS);
  cudnnBackendDescriptor_t retargeted = engine_.get();
  std::vector<GraphAttribute> attributes = {Reference(CUDNN_ATTR_ENGINECFG_ENGINE, retargeted)};
  if (count > 0) {
    attributes.push_back(
        {CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, choices.data()});
  }
  knobs.resize(static_cast<size_t>(count));
  knobs_ = std::move(knobs);
  return MakeGraphDescriptor(api_, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, attributes, configuration_)
      .ok();
}

bool ConvolutionGraph::MakePlan(cudnnHandle_t handle, const GraphDescriptor& configuration) {
  cudnnBackendDescriptor_t chosen = configuration.get();
  GraphDescriptor plan;
  if (!MakeGraphDescriptor(api_, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
                           {{CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle},
                            Reference(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, chosen)},
                           plan)
           .ok()) {
    return false;
  }
  int64_t bytes = 0;
  int64_t count = 0;
  if (api_.cudnnBackendGetAttribute(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                    CUDNN_TYPE_INT64, 1, &count, &bytes) != CUDNN_STATUS_SUCCESS ||
      bytes > static_cast<int64_t>(kWorkspaceBytes)) {
    return false;
  }
  plan_ = std::move(plan);
  return true;
}

const ConvolutionGraph::Pack* ConvolutionGraph::Find(const Pointers& pointers) const {
  for (const Pack& pack : packs_) {
    if (pack.descriptor != nullptr && pack.pointers == pointers) return &pack;
  }
  return nullptr;
}

absl::Status ConvolutionGraph::MakePack(const Pointers& pointers, Pack& out) const {
  const std::array<int64_t, 3> ids = {kX, kW, kY};
  absl::Status status = MakeGraphDescriptor(
      api_, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
      {{CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 3, ids.data()},
       {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, pointers.data()},
       {CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &pointers[3]}},
      out.descriptor);
  if (status.ok()) out.pointers = pointers;
  return status;
}

absl::Status ConvolutionGraph::Execute(cudnnHandle_t handle, void* workspace,
                                       const core::LibraryArguments& arguments) {
  const Pointers pointers = {arguments.a, arguments.b, arguments.d, workspace};
  const Pack* pack = Find(pointers);
  if (pack == nullptr) {
    if (absl::Status status = MakePack(pointers, packs_[oldest_]); !status.ok()) return status;
    pack = &packs_[oldest_];
    oldest_ = (oldest_ + 1) % kPacks;
  }
  return GPUSHARE_CUDNN(api_, cudnnBackendExecute(handle, plan_.get(), pack->descriptor.get()));
}

}  // namespace gpushare::cuda

#endif
