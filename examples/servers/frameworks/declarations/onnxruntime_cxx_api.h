// Declarations of what onnxruntime_region.cc uses of onnxruntime_cxx_api.h; see cuda_runtime_api.h.
#ifndef GPUSHARE_EXAMPLES_SERVERS_FRAMEWORKS_ONNXRUNTIME_H_
#define GPUSHARE_EXAMPLES_SERVERS_FRAMEWORKS_ONNXRUNTIME_H_

#include <cstddef>
#include <cstdint>

struct OrtCUDAProviderOptionsV2;
enum OrtAllocatorType { OrtDeviceAllocator = 0, OrtArenaAllocator = 1 };
enum OrtMemType { OrtMemTypeDefault = 0 };

namespace Ort {

struct Env {
  Env();
};
struct CUDAProviderOptions {
  CUDAProviderOptions();
  void UpdateWithValue(const char* key, void* value);
  operator OrtCUDAProviderOptionsV2*() const noexcept;
};
struct SessionOptions {
  SessionOptions();
  SessionOptions& AppendExecutionProvider_CUDA_V2(const OrtCUDAProviderOptionsV2& options);
};
struct RunOptions {
  RunOptions();
  RunOptions& AddConfigEntry(const char* key, const char* value);
};
struct MemoryInfo {
  MemoryInfo(const char* name, OrtAllocatorType type, int id, OrtMemType memory);
  static MemoryInfo CreateCpu(OrtAllocatorType type, OrtMemType memory);
};
struct Value {
  template <class T>
  static Value CreateTensor(const MemoryInfo& info, T* data, size_t count, const int64_t* shape,
                            size_t dims);
};
struct IoBinding;
struct Session {
  Session(const Env& env, const char* path, const SessionOptions& options);
  void Run(const RunOptions& options, const IoBinding& binding);
};
struct IoBinding {
  explicit IoBinding(Session& session);
  void BindInput(const char* name, const Value& value);
  void BindOutput(const char* name, const MemoryInfo& info);
};

// Defined elsewhere there; here it is only compiled.
template <>
Value Value::CreateTensor<float>(const MemoryInfo& info, float* data, size_t count,
                                 const int64_t* shape, size_t dims);

}  // namespace Ort

#endif  // GPUSHARE_EXAMPLES_SERVERS_FRAMEWORKS_ONNXRUNTIME_H_
