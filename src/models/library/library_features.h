// What the duration of a library call depends on, from its parameters alone (Baymax table 1: "all
// the parameters"): the least time that the device could need, and features that say how far from
// it the library's kernel stays.
//
// A convolution counts as the product of matrices that it is: images x outputs, filters, window x
// channels. Pure; nothing allocates. Threads: any.

#ifndef GPUSHARE_SRC_MODELS_LIBRARY_LIBRARY_FEATURES_H_
#define GPUSHARE_SRC_MODELS_LIBRARY_LIBRARY_FEATURES_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/core/seams/library_call.h"

namespace gpushare::models {

// Peak rates of the device, in units a ns. Only their quotients matter much, because what a model
// learns is the ratio to the least time.
struct LibraryDevice {
  int32_t sm_count = 132;
  // What the largest products of benchmarks/samples/h200.jsonl.gz reach.
  double half_flops_per_ns = 690e3;
  double single_flops_per_ns = 50e3;
  double bytes_per_ns = 4.8e3;  // DRAM of an H200 (docs/hardware.md)
};

// Features in this order; sizes as log2, so that a distance is a ratio.
enum LibraryFeature : uint8_t {
  kLogM,
  kLogN,
  kLogK,
  kLogBatch,
  kLogBalance,  // time of the arithmetic over time of the bytes
  kLogLeast,    // the least time
  kWaveLarge,   // share of the last waves that 128 x 256 tiles fill
  kWaveMedium,  // 128 x 128
  kLogWindow,   // elements of a filter or of a pooling window
  kLogStride,
  kTransposeA,  // 0 or 1, as the next
  kTransposeB,
  kLogAlignment,  // of the rows of a product, in bytes
  kBfloat16,
  kChannelsLast,
  kLibraryFeatures  // their number
};

// Calls of one class share a model: an operation in half or in single precision, with rows at
// multiples of 16 bytes, which TMA and vector loads need, or not.
inline constexpr size_t kLibraryOperations = 6;
inline constexpr size_t kLibraryClasses = kLibraryOperations * 2 * 2;

struct LibraryFeatures {
  bool known = false;  // false: no operation, or a size that is not positive
  size_t call_class = 0;
  double least_ns = 0;
  std::array<double, kLibraryFeatures> values = {};
};

LibraryFeatures FeaturesOf(const LibraryDevice& device, const core::LibraryCall& call);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_LIBRARY_LIBRARY_FEATURES_H_
