// Bounds of a samples file. A value beyond them is a corrupt file.

#ifndef GPUSHARE_SRC_MODELS_SAMPLES_SAMPLES_LIMITS_H_
#define GPUSHARE_SRC_MODELS_SAMPLES_SAMPLES_LIMITS_H_

#include <cstdint>

namespace gpushare::models {

inline constexpr int64_t kSamplesBytesMax = int64_t{256} << 20;
inline constexpr int64_t kSampleLineBytesMax = int64_t{64} << 10;
inline constexpr int64_t kSampleRepeatsMax = 1024;          // of one row
inline constexpr int64_t kSampleCountersMax = 64;           // of one row
inline constexpr int64_t kInputSizeMax = int64_t{1} << 40;  // of a query, in any unit

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_SAMPLES_SAMPLES_LIMITS_H_
