// Ranges of values in profile files and in learned text. A value outside its range is a unit error
// or a corrupt file.

#ifndef GPUSHARE_SRC_MODELS_PROFILE_PROFILE_LIMITS_H_
#define GPUSHARE_SRC_MODELS_PROFILE_PROFILE_LIMITS_H_

#include <cstdint>

#include "src/core/base/limits.h"

namespace gpushare::models {

// Of a profile file: 1,024 kernels with full speed tables take 3 MB; the rest is for graphs of
// thousands of nodes.
inline constexpr int64_t kProfileBytesMax = int64_t{16} << 20;
// Of its learned text: the parameters of 1,024 kernels take about 0.3 MB, the lines of a checkpoint
// the rest.
inline constexpr int64_t kLearnedBytesMax = int64_t{5} << 20;

// Field tables give ranges as double.
inline constexpr double kDurationMaxNs = static_cast<double>(core::kMaxDurationNs);
// A latency of more than a second is a unit error on every device.
inline constexpr double kLatencyMaxNs = 1e9;
inline constexpr double kSmsMax = 4096;
inline constexpr double kWorkersOfSmMax = 4096;
// Counters of a kernel. An SM of 4 GHz that issues 4 instructions a cycle needs 17 hours for so
// many; 32 threads that read 16 bytes each across sectors ask for 64 sectors.
inline constexpr double kCountedInstructionsMax = 1e15;
inline constexpr double kSectorsPerRequestMax = 1024;
// A copy that takes more of a kernel's speed than nine tenths.
inline constexpr double kCopySlowdownMax = 10;

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_PROFILE_PROFILE_LIMITS_H_
