// Declarations of what tensorrt_graph.cc uses of NvInfer.h; see cuda_runtime_api.h.
#ifndef GPUSHARE_EXAMPLES_SERVERS_FRAMEWORKS_NV_INFER_H_
#define GPUSHARE_EXAMPLES_SERVERS_FRAMEWORKS_NV_INFER_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace nvinfer1 {

using AsciiChar = char;
enum class DataType : int32_t { kFLOAT = 0, kHALF = 1, kINT8 = 2 };
struct Dims {
  int32_t nbDims;
  int64_t d[8];
};
class ILogger {
 public:
  enum class Severity : int32_t { kINTERNAL_ERROR = 0, kERROR = 1 };
  virtual void log(Severity severity, AsciiChar const* message) noexcept = 0;
  virtual ~ILogger() = default;
};
class IExecutionContext {
 public:
  bool setTensorAddress(char const* name, void* data) noexcept;
  bool enqueueV3(cudaStream_t stream) noexcept;
};
class ICudaEngine {
 public:
  IExecutionContext* createExecutionContext() noexcept;
  int32_t getNbIOTensors() const noexcept;
  char const* getIOTensorName(int32_t index) const noexcept;
  DataType getTensorDataType(char const* name) const noexcept;
  Dims getTensorShape(char const* name) const noexcept;
};
class IRuntime {
 public:
  ICudaEngine* deserializeCudaEngine(void const* data, size_t bytes) noexcept;
};
IRuntime* createInferRuntime(ILogger& logger) noexcept;

}  // namespace nvinfer1

#endif  // GPUSHARE_EXAMPLES_SERVERS_FRAMEWORKS_NV_INFER_H_
