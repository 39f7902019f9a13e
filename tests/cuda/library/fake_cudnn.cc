// See fake_cudnn.h. It never reads the descriptors of the immediate functions.

#include "tests/cuda/library/fake_cudnn.h"

#include <cudnn.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <string>
#include <utility>

namespace {

using gpushare::cuda::FakeCudnnControl;
using gpushare::cuda::FakeCudnnEngine;
using gpushare::cuda::FakeCudnnExecution;

// A descriptor of the graph interface, with its attributes as bytes.
struct Descriptor {
  cudnnBackendDescriptorType_t type{};
  bool finalised = false;
  std::map<int, std::string> attributes;
  FakeCudnnEngine engine;  // of an engine, and of a configuration or a plan with that engine
  int32_t target = 0;
  std::vector<int64_t> knobs;
  std::atomic<bool> executing{false};
};

Descriptor* Of(cudnnBackendDescriptor_t descriptor) { return static_cast<Descriptor*>(descriptor); }

template <class Value>
std::vector<Value> ValuesOf(const Descriptor& from, int name) {
  const auto found = from.attributes.find(name);
  if (found == from.attributes.end()) return {};
  std::vector<Value> out(found->second.size() / sizeof(Value));
  std::memcpy(out.data(), found->second.data(), found->second.size());
  return out;
}

template <class Value>
Value ValueOf(const Descriptor& from, int name, Value none = {}) {
  const std::vector<Value> values = ValuesOf<Value>(from, name);
  return values.empty() ? none : values[0];
}

size_t BytesOf(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    default:
      return 4;
  }
}

template <class Handle>
cudnnStatus_t Give(Handle* handle) {
  static char anything;
  *handle = reinterpret_cast<Handle>(&anything);
  return CUDNN_STATUS_SUCCESS;
}

template <class Value>
cudnnStatus_t Answer(const std::vector<Value>& values, int64_t requested, int64_t* count,
                     void* out) {
  *count = static_cast<int64_t>(values.size());
  std::memcpy(out, values.data(),
              std::min<size_t>(values.size(), static_cast<size_t>(requested)) * sizeof(Value));
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming,bugprone-macro-parentheses): cuDNN's names
extern "C" {

FakeCudnnControl fake_cudnn_control;

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* descriptor) {
  auto* const made = new Descriptor;
  made->type = type;
  *descriptor = made;
  ++fake_cudnn_control.descriptors_alive;
  if (type == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR) {
    ++fake_cudnn_control.packs_made;
    ++fake_cudnn_control.packs_alive;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  --fake_cudnn_control.descriptors_alive;
  if (Of(descriptor)->type == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR) {
    --fake_cudnn_control.packs_alive;
  }
  delete Of(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void* values) {
  if (Of(descriptor)->finalised) return CUDNN_STATUS_NOT_INITIALIZED;
  Of(descriptor)->attributes[name] =
      std::string(static_cast<const char*>(values), BytesOf(type) * static_cast<size_t>(count));
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t FinalizeEngine(Descriptor& one) {
  const auto index = ValueOf<int64_t>(one, CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  one.target = ValueOf<int32_t>(one, CUDNN_ATTR_ENGINE_SM_COUNT_TARGET);
  for (const auto* engines : {&fake_cudnn_control.engines, &fake_cudnn_control.fallback}) {
    for (const FakeCudnnEngine& engine : *engines) {
      if (engine.index == index) one.engine = engine;
    }
  }
  return one.target != 0 && !one.engine.takes_target ? CUDNN_STATUS_NOT_SUPPORTED
                                                     : CUDNN_STATUS_SUCCESS;
}

static void FinalizeConfiguration(Descriptor& one) {
  const Descriptor& engine = *Of(ValueOf<void*>(one, CUDNN_ATTR_ENGINECFG_ENGINE));
  one.engine = engine.engine;
  one.target = engine.target;
  for (void* const knob : ValuesOf<void*>(one, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES)) {
    one.knobs.push_back(Of(knob)->knobs.at(0));
  }
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  Descriptor& one = *Of(descriptor);
  if (one.type == fake_cudnn_control.refused_type) {
    return static_cast<cudnnStatus_t>(fake_cudnn_control.refusal);
  }
  one.finalised = true;
  switch (one.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      fake_cudnn_control.tensors.push_back({ValueOf<int64_t>(one, CUDNN_ATTR_TENSOR_UNIQUE_ID),
                                            ValueOf<int64_t>(one, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT),
                                            ValuesOf<int64_t>(one, CUDNN_ATTR_TENSOR_DIMENSIONS),
                                            ValuesOf<int64_t>(one, CUDNN_ATTR_TENSOR_STRIDES)});
      break;
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      fake_cudnn_control.heuristics_targets.push_back(
          ValueOf<int32_t>(one, CUDNN_ATTR_ENGINEHEUR_SM_COUNT_TARGET));
      break;
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
      return FinalizeEngine(one);
    case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:
      FinalizeConfiguration(one);
      break;
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: {
      const Descriptor& chosen = *Of(ValueOf<void*>(one, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG));
      one.engine = chosen.engine;
      one.target = chosen.target;
      one.knobs = chosen.knobs;
      break;
    }
    default:
      break;
  }
  return CUDNN_STATUS_SUCCESS;
}

static void FillConfigurations(const Descriptor& heuristics, int64_t requested, int64_t* count,
                               void* out) {
  const bool fallback =
      ValueOf<int>(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_FALLBACK;
  const auto& engines = fallback ? fake_cudnn_control.fallback : fake_cudnn_control.engines;
  *count = std::min(requested, static_cast<int64_t>(engines.size()));
  for (int64_t i = 0; i < *count; ++i) {
    Descriptor& one = *Of(static_cast<void**>(out)[i]);
    one.engine = engines[static_cast<size_t>(i)];
    one.knobs = one.engine.knobs;
    if (one.engine.heuristics_set_target) {
      one.target = ValueOf<int32_t>(heuristics, CUDNN_ATTR_ENGINEHEUR_SM_COUNT_TARGET);
    }
    one.finalised = true;
  }
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t, int64_t requested,
                                       int64_t* count, void* out) {
  const Descriptor& one = *Of(descriptor);
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
      FillConfigurations(one, requested, count, out);
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINECFG_ENGINE: {
      Descriptor& engine = *Of(*static_cast<void**>(out));
      engine.engine = one.engine;
      engine.target = one.target;
      *count = 1;
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_ENGINECFG_KNOB_CHOICES:
      *count = static_cast<int64_t>(one.knobs.size());
      for (size_t i = 0; i < one.knobs.size(); ++i) {
        Of(static_cast<void**>(out)[i])->knobs = {one.knobs[i]};
      }
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
      return Answer<int64_t>({one.engine.index}, requested, count, out);
    case CUDNN_ATTR_ENGINE_SM_COUNT_TARGET:
      return Answer<int32_t>({one.target}, requested, count, out);
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      return Answer<int32_t>(one.engine.notes, requested, count, out);
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      return Answer<int64_t>({one.engine.workspace}, requested, count, out);
    default:
      return CUDNN_STATUS_BAD_PARAM;
  }
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t, cudnnBackendDescriptor_t plan_given,
                                  cudnnBackendDescriptor_t pack_given) {
  Descriptor& plan = *Of(plan_given);
  const Descriptor& pack = *Of(pack_given);
  if (plan.executing.exchange(true)) ++fake_cudnn_control.shared_plans;
  if (fake_cudnn_control.keeps_executions) {
    FakeCudnnExecution done;
    done.plan = plan_given;
    done.engine = plan.engine.index;
    done.target = plan.target;
    done.knobs = plan.knobs;
    done.ids = ValuesOf<int64_t>(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    done.pointers = ValuesOf<void*>(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    done.workspace = ValueOf<void*>(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
    fake_cudnn_control.executions.push_back(std::move(done));
  }
  if (fake_cudnn_control.during_execution) fake_cudnn_control.during_execution();
  plan.executing = false;
  return static_cast<cudnnStatus_t>(fake_cudnn_control.execution);
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) { return Give(handle); }
cudnnStatus_t cudnnDestroy(cudnnHandle_t) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnSetStream(cudnnHandle_t, cudaStream_t) { return CUDNN_STATUS_SUCCESS; }
const char* cudnnGetErrorString(cudnnStatus_t) { return "as the test asked"; }

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t, const void*, cudnnTensorDescriptor_t,
                                      const void*, cudnnFilterDescriptor_t, const void*,
                                      cudnnConvolutionDescriptor_t, cudnnConvolutionFwdAlgo_t,
                                      void*, size_t, const void*, cudnnTensorDescriptor_t, void*) {
  ++fake_cudnn_control.immediate_calls;
  return static_cast<cudnnStatus_t>(fake_cudnn_control.immediate);
}
cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t, cudnnTensorDescriptor_t,
                                                     cudnnFilterDescriptor_t,
                                                     cudnnConvolutionDescriptor_t,
                                                     cudnnTensorDescriptor_t, const int, int* count,
                                                     cudnnConvolutionFwdAlgoPerf_t* found) {
  *count = 1;
  found[0] = cudnnConvolutionFwdAlgoPerf_t{};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t, cudnnTensorDescriptor_t,
                                                      cudnnFilterDescriptor_t,
                                                      cudnnConvolutionDescriptor_t,
                                                      cudnnTensorDescriptor_t,
                                                      cudnnConvolutionFwdAlgo_t, size_t* bytes) {
  *bytes = 0;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetConvolution2dForwardOutputDim(cudnnConvolutionDescriptor_t,
                                                    cudnnTensorDescriptor_t,
                                                    cudnnFilterDescriptor_t, int* n, int* c, int* h,
                                                    int* w) {
  *n = 2;
  *c = 16;
  *h = 5;
  *w = 7;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetPooling2dForwardOutputDim(cudnnPoolingDescriptor_t, cudnnTensorDescriptor_t,
                                                int* n, int* c, int* h, int* w) {
  *n = *c = *h = *w = 1;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnPoolingForward(cudnnHandle_t, cudnnPoolingDescriptor_t, const void*,
                                  cudnnTensorDescriptor_t, const void*, const void*,
                                  cudnnTensorDescriptor_t, void*) {
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnActivationForward(cudnnHandle_t, cudnnActivationDescriptor_t, const void*,
                                     cudnnTensorDescriptor_t, const void*, const void*,
                                     cudnnTensorDescriptor_t, void*) {
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t, cudnnSoftmaxAlgorithm_t, cudnnSoftmaxMode_t,
                                  const void*, cudnnTensorDescriptor_t, const void*, const void*,
                                  cudnnTensorDescriptor_t, void*) {
  return CUDNN_STATUS_SUCCESS;
}

#define FAKE_DESCRIPTOR(create, destroy, type)            \
  cudnnStatus_t create(type* made) { return Give(made); } \
  cudnnStatus_t destroy(type) { return CUDNN_STATUS_SUCCESS; }
FAKE_DESCRIPTOR(cudnnCreateActivationDescriptor, cudnnDestroyActivationDescriptor,
                cudnnActivationDescriptor_t)
FAKE_DESCRIPTOR(cudnnCreateConvolutionDescriptor, cudnnDestroyConvolutionDescriptor,
                cudnnConvolutionDescriptor_t)
FAKE_DESCRIPTOR(cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor, cudnnFilterDescriptor_t)
FAKE_DESCRIPTOR(cudnnCreatePoolingDescriptor, cudnnDestroyPoolingDescriptor,
                cudnnPoolingDescriptor_t)
FAKE_DESCRIPTOR(cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor, cudnnTensorDescriptor_t)
#undef FAKE_DESCRIPTOR

cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t, cudnnActivationMode_t,
                                           cudnnNanPropagation_t, double) {
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t, int, int, int, int, int,
                                              int, cudnnConvolutionMode_t, cudnnDataType_t) {
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t, int) {
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t, cudnnMathType_t) {
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t, cudnnDataType_t,
                                         cudnnTensorFormat_t, int, int, int, int) {
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t, cudnnPoolingMode_t,
                                          cudnnNanPropagation_t, int, int, int, int, int, int) {
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t, cudnnTensorFormat_t,
                                         cudnnDataType_t, int, int, int, int) {
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming,bugprone-macro-parentheses)
