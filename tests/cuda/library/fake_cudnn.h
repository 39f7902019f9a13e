// A fake cuDNN: a shared library of that name whose convolutions have the engines that a test
// chooses, and which records its arguments. A test finds the control by its name,
// `fake_cudnn_control`, in the opened library.

#ifndef GPUSHARE_TESTS_CUDA_LIBRARY_FAKE_CUDNN_H_
#define GPUSHARE_TESTS_CUDA_LIBRARY_FAKE_CUDNN_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

namespace gpushare::cuda {

struct FakeCudnnEngine {
  int64_t index = 0;
  bool takes_target = true;  // its finalisation accepts an SM count
  int64_t workspace = 0;
  std::vector<int32_t> notes;          // cudnnBackendNumericalNote_t
  std::vector<int64_t> knobs;          // values of the configuration that the heuristics return
  bool heuristics_set_target = false;  // its configuration carries the SM count of the heuristics
};

struct FakeCudnnTensor {
  int64_t id = 0;
  int64_t alignment = 0;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
};

struct FakeCudnnExecution {
  const void* plan = nullptr;
  int64_t engine = -1;
  int32_t target = 0;
  std::vector<int64_t> knobs;
  std::vector<int64_t> ids;
  std::vector<void*> pointers;
  void* workspace = nullptr;
};

struct FakeCudnnControl {
  std::vector<FakeCudnnEngine> engines;   // of mode A
  std::vector<FakeCudnnEngine> fallback;  // of the fallback mode
  int refused_type = -1;                  // finalising a descriptor of this type answers `refusal`
  int refusal = 0;                        // a cudnnStatus_t
  int execution = 0;                      // answer of an execution of a plan
  int immediate = 0;                      // answer of the immediate convolution
  std::function<void()> during_execution;

  std::vector<int32_t> heuristics_targets;  // SM count of each query, 0 for none
  std::vector<FakeCudnnTensor> tensors;     // as finalised
  std::vector<FakeCudnnExecution> executions;
  std::atomic<int> immediate_calls{0};
  std::atomic<int> packs_made{0};
  std::atomic<int> packs_alive{0};
  std::atomic<int> descriptors_alive{0};
  std::atomic<int> shared_plans{0};  // executions of a plan that another thread was executing
  bool keeps_executions = true;      // set false before several threads execute
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_TESTS_CUDA_LIBRARY_FAKE_CUDNN_H_
