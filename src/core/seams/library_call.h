// A registered cuBLAS or cuDNN call: its operation and shapes, which are also the features that
// the duration model sees (Baymax table 1).
//
// The device finds the algorithm at registration, with a workspace and a handle per lane; the
// operands come with each task, as LibraryArguments.

#ifndef GPUSHARE_SRC_CORE_SEAMS_LIBRARY_CALL_H_
#define GPUSHARE_SRC_CORE_SEAMS_LIBRARY_CALL_H_

#include <cstdint>

#include "src/core/base/types.h"

namespace gpushare::core {

enum class LibraryOperation : uint8_t {
  kNone = 0,
  kMatmul = 1,       // d = alpha a b + beta c, row-major, cuBLASLt
  kConvolution = 2,  // cross-correlation, NCHW or NHWC, cuDNN
  kPooling = 3,
  kActivation = 4,
  kSoftmax = 5,
};

enum class DataType : uint8_t { kFloat32 = 0, kFloat16 = 1, kBfloat16 = 2 };

// Rows of the pooling and the activation operation.
enum class LibraryMode : uint8_t {
  kDefault = 0,
  kMaxPooling = 1,
  kAveragePooling = 2,
  kRelu = 3,
  kTanh = 4,
  kSigmoid = 5,
};

struct LibraryCall {
  static constexpr TaskKind kKind = TaskKind::kLibrary;

  LibraryOperation operation = LibraryOperation::kNone;
  DataType type = DataType::kFloat32;
  LibraryMode mode = LibraryMode::kDefault;
  bool channels_last = false;  // NHWC
  bool transpose_a = false;
  bool transpose_b = false;
  int64_t m = 0, n = 0, k = 0;                               // matmul
  int64_t batch = 1;                                         // matrices, or images
  int64_t channels = 0, height = 0, width = 0;               // of the input
  int64_t filters = 0, filter_height = 0, filter_width = 0;  // or the pooling window
  int64_t padding = 0, stride = 1, dilation = 1, groups = 1;
};

// The packed arguments of a library task. Operands in device memory.
struct LibraryArguments {
  const void* a = nullptr;  // or the input
  const void* b = nullptr;  // or the filters
  const void* c = nullptr;  // may be null
  void* d = nullptr;        // or the output
  float alpha = 1;
  float beta = 0;
};
static_assert(sizeof(LibraryArguments) == 40);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_SEAMS_LIBRARY_CALL_H_
