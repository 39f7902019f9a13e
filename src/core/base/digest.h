// FNV-1a with 64 bits. Two different texts have the same digest only by a rare accident, or because
// somebody wants it.
//
// It is no signature: where equal digests of different texts would do harm, compare the texts too.
// Pure; threads: any.

#ifndef GPUSHARE_SRC_CORE_BASE_DIGEST_H_
#define GPUSHARE_SRC_CORE_BASE_DIGEST_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace gpushare::core {

inline constexpr uint64_t kEmptyDigest = 0xCBF29CE484222325u;

// `digest` is kEmptyDigest, or that of what comes before `text`.
inline uint64_t Fnv1a(uint64_t digest, absl::string_view text) {
  for (const char c : text) {
    digest ^= static_cast<unsigned char>(c);
    digest *= 0x100000001B3u;
  }
  return digest;
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_BASE_DIGEST_H_
