// Bounds of the models of library calls and of queries.

#ifndef GPUSHARE_SRC_MODELS_LIBRARY_LIBRARY_LIMITS_H_
#define GPUSHARE_SRC_MODELS_LIBRARY_LIBRARY_LIMITS_H_

#include <cstddef>

namespace gpushare::models {

// Samples of one fit; more are left out. Three times the shapes that calibrations measure; their
// features take 0.6 MB.
inline constexpr size_t kLibrarySamplesMax = 4096;
// Fewer samples of a class of calls predict nothing: the line has some forty weights, which ridge
// regression keeps small, and leaving one out must still say how far off it is.
inline constexpr size_t kLibrarySamplesMin = 24;
// Samples of one class that are kept, in memory and in a profile (20 to 40 bytes each there). The
// largest class of an H200's samples has less.
inline constexpr size_t kLibraryRowsMax = 1024;
// Neighbours that predict a call (Baymax 7.1: k = 5).
inline constexpr size_t kLibraryNeighbours = 5;

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_LIBRARY_LIBRARY_LIMITS_H_
