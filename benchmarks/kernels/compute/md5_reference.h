// MD5 of a message of 16 bytes, on the CPU, as RFC 1321 writes it down: the reference of the md5
// kernel shares no code with it.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_MD5_REFERENCE_H_
#define GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_MD5_REFERENCE_H_

#include <array>
#include <cstdint>

namespace gpushare::kernels {

// Words are little-endian, of the message and of the digest.
std::array<uint32_t, 4> Md5Of16Bytes(const std::array<uint32_t, 4>& message);

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_MD5_REFERENCE_H_
