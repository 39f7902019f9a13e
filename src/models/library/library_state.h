// What a fit to library calls leaves: the rows that predict and how. A profile keeps it.
//
// Plain data; library_model.h fills and uses it, json_library.h writes it.

#ifndef GPUSHARE_SRC_MODELS_LIBRARY_LIBRARY_STATE_H_
#define GPUSHARE_SRC_MODELS_LIBRARY_LIBRARY_STATE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/core/seams/library_call.h"

namespace gpushare::models {

enum class LibraryMethod : uint8_t {
  kNone = 0,  // too few samples
  kLine = 1,
  kNeighbours = 2,
  kLineAndNeighbours = 3,
};

struct LibraryRow {
  core::LibraryCall call;
  double value = 0;  // log2 of duration over least time; of kLineAndNeighbours, of the rest
};

struct LibraryClass {
  size_t call_class = 0;  // LibraryFeatures::call_class
  LibraryMethod method = LibraryMethod::kNone;
  double error = 1;  // one standard deviation of the relative error
  double reach = 0;  // distance of the nearest row within which a call is like the rows
  // The least and the most log ratio of a sample; no call is predicted beyond them.
  double least_ratio = 0;
  double most_ratio = 0;
  std::vector<double> weights;  // of the line; empty without one
  std::vector<LibraryRow> rows;
};

struct LibraryState {
  std::vector<LibraryClass> classes;  // each call_class at most once
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_LIBRARY_LIBRARY_STATE_H_
