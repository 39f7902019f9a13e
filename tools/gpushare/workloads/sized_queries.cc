// The list of queries; see sized_queries.h.

#include "tools/gpushare/workloads/sized_queries.h"

#include <utility>

namespace gpushare::tool {

namespace {

// Batches and tokens, as batches of a server are: all small ones, then in steps of an eighth or
// less, because cuBLAS changes its kernels with the size and time is no smooth function of it.
constexpr int64_t kBatches[] = {1,  2,  3,  4,   5,   6,   7,   8,   10,  12,  14,  16,  18,  20,
                                22, 24, 26, 28,  32,  36,  40,  44,  48,  52,  56,  60,  64,  72,
                                80, 88, 96, 104, 112, 120, 128, 144, 160, 176, 192, 208, 224, 256};
constexpr int64_t kDecodeBatches[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14,
                                      15, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 40,
                                      42, 44, 46, 48, 50, 52, 54, 56, 58, 60, 62, 64};
constexpr int64_t kTokens[] = {64,   80,   96,   112,  128,  144,  160,  176,  192,  224,  256,
                               288,  320,  352,  384,  416,  448,  480,  512,  576,  640,  704,
                               768,  832,  896,  960,  1024, 1152, 1280, 1408, 1536, 1664, 1792,
                               2048, 2304, 2560, 2816, 3072, 3328, 3584, 3840, 4096};

using Steps = std::vector<QueryStep>;

Steps Repeated(const Steps& layer, int layers) {
  Steps steps;
  for (int i = 0; i < layers; ++i) steps.insert(steps.end(), layer.begin(), layer.end());
  return steps;
}

// The chain of the LC app chain1: 24 layers of two products and a GELU.
Steps Chain(int64_t rows) {
  return Repeated({{rows, 8192, 2048}, {rows, 8192, 0}, {rows, 2048, 8192}}, 24);
}

// 16 products whose weights fill 2.1 GB: bound by DRAM at every batch.
Steps Decode(int64_t rows) { return Repeated({{rows, 8192, 8192}}, 16); }

// Three products of a prompt, bound by the Tensor cores.
Steps Prefill(int64_t tokens) { return Repeated({{tokens, 4096, 4096}}, 3); }

// 12 layers of an encoder of width 768 over sequences of 128 tokens: short kernels.
Steps Encoder(int64_t sequences) {
  const int64_t rows = 128 * sequences;
  return Repeated(
      {{rows, 2304, 768}, {rows, 768, 768}, {rows, 3072, 768}, {rows, 3072, 0}, {rows, 768, 3072}},
      12);
}

// Two layers of multi-query attention, 32 heads of width 128 over shared keys and values: scores
// and sums grow with the square of the tokens. A GELU of the scores stands for the softmax.
Steps Attention(int64_t tokens) {
  constexpr int64_t kHeads = 32;
  constexpr int64_t kWidth = 128;
  const int64_t rows = kHeads * tokens;
  return Repeated({{tokens, 4096 + 2 * kWidth, 4096},
                   {rows, tokens, kWidth},
                   {rows, tokens, 0},
                   {rows, kWidth, tokens},
                   {tokens, 4096, 4096}},
                  2);
}

}  // namespace

std::vector<SizedQuery> ListSizedQueries() {
  std::vector<SizedQuery> all;
  const auto add = [&](const std::string& query, int64_t size, Steps steps) {
    all.push_back({query + "@" + std::to_string(size), size, std::move(steps)});
  };
  for (const int64_t size : kBatches) add("chain", size, Chain(size));
  for (const int64_t size : kDecodeBatches) add("decode", size, Decode(size));
  for (const int64_t size : kTokens) add("prefill", size, Prefill(size));
  for (const int64_t size : kDecodeBatches) add("encoder", size, Encoder(size));
  for (const int64_t size : kTokens) add("attention", size, Attention(size));
  return all;
}

}  // namespace gpushare::tool
