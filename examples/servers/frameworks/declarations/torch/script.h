// Declarations of what libtorch_region.cc uses of torch/script.h; see cuda_runtime_api.h.
#ifndef GPUSHARE_EXAMPLES_SERVERS_FRAMEWORKS_TORCH_SCRIPT_H_
#define GPUSHARE_EXAMPLES_SERVERS_FRAMEWORKS_TORCH_SCRIPT_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace c10 {
class InferenceMode {
 public:
  explicit InferenceMode(bool enabled = true);
  ~InferenceMode();
};
enum class DeviceType : int8_t { CUDA = 1 };
class Device {
 public:
  Device(DeviceType type);  // NOLINT: implicit there too
};
}  // namespace c10

namespace torch {
constexpr c10::DeviceType kCUDA = c10::DeviceType::CUDA;
class Tensor {};
class TensorOptions {
 public:
  TensorOptions(c10::DeviceType type);  // NOLINT: implicit there too
};
class IValue {
 public:
  IValue(Tensor tensor);  // NOLINT: implicit there too
  Tensor toTensor() const;
};
Tensor rand(std::initializer_list<int64_t> size, TensorOptions options);
Tensor mm(const Tensor& left, const Tensor& right);
namespace jit {
class Module {
 public:
  IValue forward(std::vector<IValue> inputs);
};
Module load(const std::string& path, std::optional<c10::Device> device);
}  // namespace jit
}  // namespace torch

#endif  // GPUSHARE_EXAMPLES_SERVERS_FRAMEWORKS_TORCH_SCRIPT_H_
