// Parameters of the md5 kernel: each thread hashes its 16-byte digest again and again.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_MD5_H_
#define GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_MD5_H_

#include <cstdint>

namespace gpushare::kernels {

struct Md5Params {
  uint32_t* out;        // four words a warp, the xor of its digests, ring * 8
  uint32_t ring;        // block task b computes slot b % ring
  uint32_t iterations;  // hashes in a row, one 64-byte block each
  uint32_t seed;        // word w of the first message of thread t is Hash(seed, 4 t + w)
};

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_MD5_H_
