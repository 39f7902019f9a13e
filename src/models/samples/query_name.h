// How a whole query of one input size is named in a samples file: "chain@48" is the query "chain"
// with an input of size 48. Each size is a graph of its own, so its name tells the size, as the
// name of a library call tells its shape. Pure. Threads: any.

#ifndef GPUSHARE_SRC_MODELS_SAMPLES_QUERY_NAME_H_
#define GPUSHARE_SRC_MODELS_SAMPLES_QUERY_NAME_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace gpushare::models {

struct QueryName {
  absl::string_view query;  // without the size
  int64_t input_size = 0;   // 0: the name tells none
};

QueryName ParseQueryName(absl::string_view kernel);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_SAMPLES_QUERY_NAME_H_
