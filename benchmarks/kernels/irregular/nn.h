// Parameters of the nearest neighbour: of a block task's records (latitude, longitude) the one that
// is closest to the query; of equally close ones the first.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_IRREGULAR_NN_H_
#define GPUSHARE_BENCHMARKS_KERNELS_IRREGULAR_NN_H_

#include <cmath>
#include <cstdint>

#include "benchmarks/kernels/hash.h"

namespace gpushare::kernels {

constexpr uint32_t kNnRecordsPerPass = 1024;  // two 16-byte loads a thread, two records each

struct NnQuery {
  float latitude;
  float longitude;
};

// The square of the distance, with the same roundings on either side.
GPUSHARE_HOST_DEVICE inline float NnDistance(const NnQuery& query, float latitude,
                                             float longitude) {
  const float north = latitude - query.latitude;
  const float east = longitude - query.longitude;
#ifdef __CUDA_ARCH__
  return fmaf(north, north, __fmul_rn(east, east));
#else
  return std::fma(north, north, east * east);
#endif
}

struct NnParams {
  const float* records;  // latitude, longitude
  uint32_t* out;         // of each chunk: the record's index, the bits of its distance
  uint32_t passes;       // a chunk is passes * 1024 records
  uint32_t ring;         // block task b searches chunk b % ring
  NnQuery query;
};

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_IRREGULAR_NN_H_
