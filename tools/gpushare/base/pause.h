// The pause of a spinning thread between two checks.

#ifndef GPUSHARE_TOOLS_GPUSHARE_BASE_PAUSE_H_
#define GPUSHARE_TOOLS_GPUSHARE_BASE_PAUSE_H_

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace gpushare::tool {

inline void Pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_BASE_PAUSE_H_
