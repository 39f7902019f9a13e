// Whole queries at several input sizes, which `gpushare calibrate --queries` measures: what each is
// made of, without operands.
//
// A query is a list of operations on buffers that all queries share. Each size is a graph of its
// own, and its name ends with @ and the size (src/models/samples/query_name.h). Pure, and the same
// on every call. Threads: any.

#ifndef GPUSHARE_TOOLS_GPUSHARE_WORKLOADS_SIZED_QUERIES_H_
#define GPUSHARE_TOOLS_GPUSHARE_WORKLOADS_SIZED_QUERIES_H_

#include <cstdint>
#include <string>
#include <vector>

namespace gpushare::tool {

// A product of m x k values and n x k weights, or, with k = 0, a GELU of m x n values.
struct QueryStep {
  int64_t m = 0, n = 0, k = 0;
  bool is_gelu() const { return k == 0; }
};

struct SizedQuery {
  std::string name;  // "chain@48"
  int64_t size = 0;  // rows: images of a batch, or tokens
  std::vector<QueryStep> steps;
};

// Five queries at 16 to 20 sizes each, from one that is bound by launches to one whose time grows
// with the square of its tokens.
std::vector<SizedQuery> ListSizedQueries();

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_WORKLOADS_SIZED_QUERIES_H_
