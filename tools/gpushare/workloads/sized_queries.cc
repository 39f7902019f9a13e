// The list of queries; see sized_queries.h.

#include "tools/gpushare/workloads/sized_queries.h"

#include <utility>

namespace gpushare::tool {

namespace {

// Batches and tokens: powers of two and sizes between them, as batches of a server are.
constexpr int64_t kBatches[] = {1,  2,  3,  4,  6,  8,   12,  16,  20,  24,
                                32, 40, 48, 64, 96, 128, 160, 192, 224, 256};
constexpr int64_t kDecodeBatches[] = {1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64};
constexpr int64_t kTokens[] = {64,   96,   128,  192,  256,  384,  512,  640, 768,
                               1024, 1280, 1536, 2048, 2560, 3072, 3584, 4096};

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
