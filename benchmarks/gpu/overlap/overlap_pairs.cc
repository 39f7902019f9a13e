#include "benchmarks/gpu/overlap/overlap_pairs.h"

#include <cstddef>

#include "benchmarks/harness/arguments.h"

namespace gpushare::benchmarks {
namespace {

struct Kind {
  const char* cuda;
  const char* bottleneck;
};

constexpr Kind kKinds[] = {
    {"sincos", "special"},
    {"mriq", "special"},
    {"ffma", "ffma"},
    {"cutcp", "ffma"},
    {"sgemm", "ffma"},
    {"md5", "integer"},
    {"tea", "integer"},
    {"streaming", "dram"},
    {"vector_add", "dram"},
    {"stencil", "dram"},
    {"black_scholes", "dram"},
    {"lbm", "dram"},
    {"softmax", "dram"},
    {"batch_norm", "dram"},
    {"gemm_skinny", "dram"},
    {"gemm_skinny_compact", "dram"},
    {"pointer_chase", "latency or shared"},
    {"histogram", "latency or shared"},
    {"spmv", "latency or shared"},
    {"fft", "latency or shared"},
};

// Of decode the form that fits beside it in an SM.
constexpr const char* kBesideRoomy[] = {
    "sincos",    "mriq",       "ffma", "cutcp",     "md5",           "tea",
    "streaming", "vector_add", "lbm",  "histogram", "pointer_chase", "gemm_skinny_compact"};
constexpr const char* kBesideFull[] = {"sincos", "ffma", "md5", "streaming", "pointer_chase"};
constexpr const char* kBesideMma[] = {"sincos", "ffma", "md5", "streaming", "histogram"};
// Decode is bound by DRAM, so what computes may fit beside it.
constexpr const char* kBesideSkinny[] = {"sincos", "mriq", "ffma",      "cutcp",
                                         "md5",    "tea",  "streaming", "histogram"};

template <size_t kCount>
void Add(const char* tensor, const char* const (&cuda)[kCount], std::vector<Pair>* pairs) {
  for (const char* name : cuda) pairs->push_back({tensor, name});
}

}  // namespace

std::string BottleneckOf(const std::string& cuda) {
  for (const Kind& kind : kKinds) {
    if (cuda == kind.cuda) return kind.bottleneck;
  }
  return "other";
}

std::vector<Pair> DefaultPairs() {
  std::vector<Pair> pairs;
  Add("gemm_roomy", kBesideRoomy, &pairs);
  Add("gemm_wgmma", kBesideFull, &pairs);
  Add("gemm_mma", kBesideMma, &pairs);
  Add("gemm_skinny", kBesideSkinny, &pairs);
  return pairs;
}

std::vector<Pair> CurvePairs() {
  return {{"gemm_roomy", "sincos"},  {"gemm_roomy", "streaming"}, {"gemm_roomy", "md5"},
          {"gemm_skinny", "sincos"}, {"gemm_skinny", "ffma"},     {"gemm_skinny", "md5"},
          {"gemm_mma", "sincos"},    {"gemm_mma", "streaming"}};
}

bool ParsePairs(const std::string& text, std::vector<Pair>* pairs) {
  pairs->clear();
  for (const std::string& item : Split(text)) {
    const size_t plus = item.find('+');
    if (plus == std::string::npos || plus == 0 || plus + 1 == item.size()) return false;
    pairs->push_back({item.substr(0, plus), item.substr(plus + 1)});
  }
  return !pairs->empty();
}

ProductShape ShapeOf(const std::string& tensor) {
  if (tensor == "gemm_wgmma" || tensor == "gemm_roomy") return {8192, 8192, 8192};
  if (tensor == "gemm_mma") return {8192, 8192, 4096};
  if (tensor == "gemm_skinny" || tensor == "gemm_skinny_compact") return {32, 262144, 8192};
  return {};
}

ProductShape ProductShapeOf(const std::string& tensor) {
  const ProductShape shape = ShapeOf(tensor);
  if (shape.m == 0) Fail("The pair's first kernel makes no matrix product.");
  return shape;
}

}  // namespace gpushare::benchmarks
