// The list of library calls; see library_shapes.h. First the shapes of the first samples, one by
// one, then those of grids of layers.

#include "tools/gpushare/workloads/library_shapes.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include "tools/gpushare/base/text.h"

namespace gpushare::tool {

namespace {

// Rows x columns x depth of a linear layer: rows are images or tokens.
constexpr Matmul kHalfMatmuls[] = {
    // BERT-base and GPT-2 small: 1 to 32 sequences of 128
    {128, 768, 768},
    {128, 3072, 768},
    {128, 768, 3072},
    {512, 768, 768},
    {512, 2304, 768},
    {512, 3072, 768},
    {512, 768, 3072},
    {1024, 2304, 768},
    {2048, 3072, 768},
    {2048, 768, 3072},
    {4096, 768, 768},
    {4096, 2304, 768},
    {4096, 3072, 768},
    {4096, 768, 3072},
    {4096, 50304, 768},
    // a decoder of 8B parameters: one to 64 new tokens, then a prompt of 512
    {1, 6144, 4096},
    {1, 4096, 4096},
    {1, 28672, 4096},
    {1, 4096, 14336},
    {8, 6144, 4096},
    {16, 4096, 4096},
    {16, 28672, 4096},
    {16, 4096, 14336},
    {64, 6144, 4096},
    {64, 28672, 4096},
    {512, 6144, 4096},
    {512, 4096, 4096},
    {512, 28672, 4096},
    {512, 4096, 14336},
    // training with plain layers, and squares
    {1792, 4096, 4096},
    {3072, 4096, 4096},
    {6144, 4096, 4096},
    {256, 256, 256},
    {512, 512, 512},
    {1024, 1024, 1024},
    {1536, 1536, 1536},
    {2048, 2048, 2048},
    {3072, 3072, 3072},
    {4096, 4096, 4096},
    {6144, 6144, 6144},
    {8192, 8192, 8192},
    // long and flat
    {128, 128, 16384},
    {256, 1024, 8192},
    {16384, 256, 256},
    {16384, 1024, 512},
    {300, 1000, 700},
    {777, 1555, 3111},
    {32, 1000, 2048},
};

constexpr Matmul kFloatMatmuls[] = {
    {128, 768, 768},   {512, 3072, 768},   {2048, 768, 3072},  {32, 1000, 2048},
    {512, 512, 512},   {1024, 1024, 1024}, {2048, 2048, 2048}, {4096, 4096, 4096},
    {256, 1024, 8192}, {16384, 256, 256},  {777, 1555, 3111},  {1536, 1536, 1536},
};

// Layers of ResNet-50, VGG-16 and DenseNet-121.
constexpr Convolution kConvolutions[] = {
    {1, 64, 56, 64, 3, 1},     {1, 128, 28, 128, 3, 1},   {1, 256, 14, 256, 3, 1},
    {1, 512, 7, 512, 3, 1},    {1, 64, 56, 256, 1, 1},    {1, 512, 28, 1024, 1, 2},
    {1, 1024, 14, 256, 1, 1},  {1, 2048, 7, 512, 1, 1},   {1, 64, 224, 64, 3, 1},
    {1, 256, 56, 256, 3, 1},   {1, 512, 28, 512, 3, 1},   {8, 64, 56, 64, 3, 1},
    {8, 128, 28, 128, 3, 1},   {8, 256, 14, 256, 3, 1},   {8, 512, 7, 512, 3, 1},
    {8, 256, 56, 64, 1, 1},    {8, 512, 28, 1024, 1, 2},  {8, 128, 56, 32, 3, 1},
    {32, 64, 56, 64, 3, 1},    {32, 128, 28, 128, 3, 1},  {32, 256, 14, 256, 3, 1},
    {32, 512, 7, 512, 3, 1},   {32, 64, 56, 256, 1, 1},   {32, 256, 56, 64, 1, 1},
    {32, 1024, 14, 256, 1, 1}, {32, 512, 28, 1024, 1, 2}, {16, 64, 112, 128, 3, 1},
    {16, 128, 112, 128, 3, 1}, {16, 256, 56, 256, 3, 1},  {16, 512, 14, 512, 3, 1},
};

// Weights of the linear layers of BERT, GPT-2, Llama and Qwen of 0.1 to 70 billion parameters.
struct Layer {
  int64_t n, k;
};
constexpr Layer kLayers[] = {
    {768, 768},    {2304, 768},   {3072, 768},   {768, 3072},   {1024, 1024},  {3072, 1024},
    {4096, 1024},  {1024, 4096},  {3840, 1280},  {5120, 1280},  {1280, 5120},  {4800, 1600},
    {6400, 1600},  {1600, 6400},  {2048, 2048},  {2560, 2048},  {8192, 2048},  {2048, 8192},
    {11008, 2048}, {4096, 4096},  {6144, 4096},  {12288, 4096}, {14336, 4096}, {28672, 4096},
    {4096, 14336}, {4096, 11008}, {5120, 5120},  {13824, 5120}, {5120, 13824}, {8192, 8192},
    {10240, 8192}, {8192, 28672}, {32000, 4096}, {16384, 4096}, {4096, 16384},
};
// Weights whose rows do not begin at multiples of 16 bytes: vocabularies and odd widths. They get
// slower kernels.
constexpr Layer kUnalignedLayers[] = {
    {50257, 768}, {30522, 768}, {50257, 1600}, {1001, 4096},
    {4097, 4096}, {3001, 3001}, {2050, 2050},
};
constexpr int64_t kRows[] = {1,   8,    16,   32,   64,   128,  192,  256,  384,   512,
                             768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384};
constexpr int64_t kUnalignedRows[] = {64, 256, 512, 1000, 1536, 2048, 3000, 4096};

// Scores and sums of attention: sequences x heads, tokens, width of a head.
struct Attention {
  int64_t batch, tokens, width;
};
constexpr Attention kAttentions[] = {
    {96, 512, 64},   {192, 512, 64},  {384, 512, 64},   {12, 1024, 64},  {48, 1024, 64},
    {96, 1024, 64},  {192, 1024, 64}, {384, 128, 64},   {768, 128, 64},  {768, 256, 64},
    {32, 1024, 128}, {64, 1024, 128}, {128, 1024, 128}, {32, 2048, 128}, {64, 2048, 128},
    {16, 4096, 128}, {32, 4096, 128}, {256, 512, 128},
};

// A convolution without its batch.
struct Filter {
  int64_t channels, size, filters, filter, stride;
};
constexpr Filter kFilters[] = {
    // ResNet-50
    {64, 56, 64, 3, 1},
    {128, 28, 128, 3, 1},
    {256, 14, 256, 3, 1},
    {512, 7, 512, 3, 1},
    {64, 56, 256, 1, 1},
    {256, 56, 64, 1, 1},
    {256, 56, 128, 1, 1},
    {512, 28, 128, 1, 1},
    {128, 28, 512, 1, 1},
    {512, 28, 256, 1, 1},
    {256, 14, 1024, 1, 1},
    {1024, 14, 256, 1, 1},
    {1024, 14, 512, 1, 1},
    {512, 7, 2048, 1, 1},
    {2048, 7, 512, 1, 1},
    {128, 56, 128, 3, 2},
    {256, 28, 256, 3, 2},
    {512, 14, 512, 3, 2},
    {256, 56, 512, 1, 2},
    {512, 28, 1024, 1, 2},
    {3, 224, 64, 7, 2},
    // VGG-16
    {64, 224, 64, 3, 1},
    {64, 112, 128, 3, 1},
    {128, 112, 128, 3, 1},
    {128, 56, 256, 3, 1},
    {256, 56, 256, 3, 1},
    {256, 28, 512, 3, 1},
    {512, 28, 512, 3, 1},
    {512, 14, 512, 3, 1},
    // DenseNet-121
    {64, 56, 128, 1, 1},
    {160, 56, 128, 1, 1},
    {224, 56, 128, 1, 1},
    {128, 56, 32, 3, 1},
    {256, 28, 128, 1, 1},
    {384, 28, 128, 1, 1},
    {128, 28, 32, 3, 1},
    {512, 14, 128, 1, 1},
    {896, 14, 128, 1, 1},
};
constexpr int64_t kBatches[] = {8, 16, 32, 64, 128};

// Which estimates of LeastNs a generated shape may have. Convolutions reach half of it.
constexpr double kMatmulNsMin = 22e3;
constexpr double kConvolutionNsMin = 10e3;
constexpr double kNsMax = 2.6e6;

bool TakesBetween(const LibraryShape& shape, double least_ns) {
  const double ns = LeastNs(shape.call);
  return ns >= least_ns && ns <= kNsMax;
}

std::string TypeName(gpushare_data_type type) {
  if (type == GPUSHARE_FLOAT32) return "f32";
  return type == GPUSHARE_BFLOAT16 ? "bf16" : "f16";
}

std::string Extents(int64_t a, int64_t b, int64_t c) {
  return Format("%lldx%lldx%lld", static_cast<long long>(a), static_cast<long long>(b),
                static_cast<long long>(c));
}

// Collects shapes, each once.
class Shapes {
 public:
  void Add(LibraryShape shape) {
    if (names_.insert(shape.name).second) all_.push_back(std::move(shape));
  }
  void AddIfBetween(LibraryShape shape, double least_ns) {
    if (TakesBetween(shape, least_ns)) Add(std::move(shape));
  }
  std::vector<LibraryShape> Take() { return std::move(all_); }

 private:
  std::vector<LibraryShape> all_;
  std::set<std::string> names_;
};

// Two of three batches of tokens are powers of two or in their middle; the third is some other
// multiple of 8, because prompts have any length.
int64_t RowsOf(size_t layer, size_t row) {
  const int64_t rows = kRows[row];
  if (rows < 128 || (layer + row) % 3 != 0) return rows;
  const auto shift = static_cast<int64_t>(1 + (5 * layer + 3 * row) % 7);  // eighths of a quarter
  return (rows + rows * shift / 32) / 8 * 8;
}

// Half of the grid of layers and rows in half precision, a fifth of it in single.
void AddLinearLayers(Shapes& shapes) {
  for (size_t layer = 0; layer < std::size(kLayers); ++layer) {
    const auto [n, k] = kLayers[layer];
    for (size_t row = 0; row < std::size(kRows); ++row) {
      const int64_t m = RowsOf(layer, row);
      if ((layer + row) % 5 == 0) {
        shapes.AddIfBetween(MatmulShape({m, n, k, GPUSHARE_FLOAT32, row % 2 == 0}), kMatmulNsMin);
      }
      if ((layer + row) % 7 > 4) continue;
      const gpushare_data_type type =
          (2 * layer + row) % 4 == 0 ? GPUSHARE_BFLOAT16 : GPUSHARE_FLOAT16;
      shapes.AddIfBetween(MatmulShape({m, n, k, type, (layer + row) % 2 == 0}), kMatmulNsMin);
    }
  }
}

void AddUnaligned(Shapes& shapes) {
  for (const Layer& layer : kUnalignedLayers) {
    for (const int64_t rows : kUnalignedRows) {
      // They run up to five times slower than LeastNs, so a quarter of the least time is enough.
      shapes.AddIfBetween(MatmulShape({rows, layer.n, layer.k}), kMatmulNsMin / 4);
    }
  }
}

void AddAttention(Shapes& shapes) {
  for (const Attention& one : kAttentions) {
    for (const gpushare_data_type type : {GPUSHARE_FLOAT16, GPUSHARE_BFLOAT16}) {
      shapes.AddIfBetween(MatmulShape({one.tokens, one.tokens, one.width, type, true, one.batch}),
                          kMatmulNsMin / 2);
      shapes.AddIfBetween(MatmulShape({one.tokens, one.width, one.tokens, type, false, one.batch}),
                          kMatmulNsMin / 2);
    }
  }
}

void AddConvolutions(Shapes& shapes) {
  for (const Filter& one : kFilters) {
    for (const int64_t batch : kBatches) {
      shapes.AddIfBetween(
          ConvolutionShape({batch, one.channels, one.size, one.filters, one.filter, one.stride}),
          kConvolutionNsMin);
    }
  }
}

double Flops(const gpushare_library_call& call) {
  if (call.operation == GPUSHARE_LIBRARY_MATMUL) {
    return 2.0 * static_cast<double>(call.batch * call.m * call.n) * static_cast<double>(call.k);
  }
  return 2.0 * static_cast<double>(ElementsOf(call).d) *
         static_cast<double>(call.channels * call.filter_height * call.filter_width);
}

}  // namespace

LibraryShape MatmulShape(const Matmul& one) {
  LibraryShape shape;
  shape.name = "matmul." + TypeName(one.type) + (one.transpose_b ? ".nt." : ".");
  if (one.batch > 1) shape.name += Format("b%lld.", static_cast<long long>(one.batch));
  shape.name += Extents(one.m, one.n, one.k);
  shape.call.operation = GPUSHARE_LIBRARY_MATMUL;
  shape.call.type = one.type;
  shape.call.transpose_b = one.transpose_b ? 1 : 0;
  shape.call.batch = one.batch;
  shape.call.m = one.m;
  shape.call.n = one.n;
  shape.call.k = one.k;
  return shape;
}

LibraryShape ConvolutionShape(const Convolution& one) {
  LibraryShape shape;
  shape.name = "convolution.f16." + Extents(one.batch, one.channels, one.size) +
               Format(".%lldx%lld.s%lld", static_cast<long long>(one.filters),
                      static_cast<long long>(one.filter), static_cast<long long>(one.stride));
  gpushare_library_call& call = shape.call;
  call.operation = GPUSHARE_LIBRARY_CONVOLUTION;
  call.type = GPUSHARE_FLOAT16;
  call.channels_last = 1;
  call.batch = one.batch;
  call.channels = one.channels;
  call.height = call.width = one.size;
  call.filters = one.filters;
  call.filter_height = call.filter_width = one.filter;
  call.padding = one.filter / 2;
  call.stride = one.stride;
  return shape;
}

OperandElements ElementsOf(const gpushare_library_call& call) {
  if (call.operation == GPUSHARE_LIBRARY_MATMUL) {
    return {call.batch * call.m * call.k, call.batch * call.k * call.n,
            call.batch * call.m * call.n};
  }
  const int64_t side = (call.height + 2 * call.padding - call.filter_height) / call.stride + 1;
  return {call.batch * call.channels * call.height * call.width,
          call.filters * call.channels * call.filter_height * call.filter_width,
          call.batch * call.filters * side * side};
}

int64_t BytesOfElement(const gpushare_library_call& call) {
  return call.type == GPUSHARE_FLOAT32 ? 4 : 2;
}

double LeastNs(const gpushare_library_call& call) {
  // FLOP and bytes a ns: what the largest products of the first samples reached (665 and 50
  // TFLOP/s), and the peak of DRAM.
  const double flops = call.type == GPUSHARE_FLOAT32 ? 50e3 : 665e3;
  constexpr double kBytes = 4.8e3;
  const OperandElements elements = ElementsOf(call);
  const auto bytes =
      static_cast<double>((elements.a + elements.b + elements.d) * BytesOfElement(call));
  return std::max(Flops(call) / flops, bytes / kBytes);
}

std::vector<LibraryShape> ListLibraryShapes() {
  Shapes shapes;
  for (const Matmul& one : kHalfMatmuls) shapes.Add(MatmulShape(one));
  for (Matmul one : kFloatMatmuls) {
    one.type = GPUSHARE_FLOAT32;
    shapes.Add(MatmulShape(one));
  }
  for (const Convolution& one : kConvolutions) shapes.Add(ConvolutionShape(one));
  AddLinearLayers(shapes);
  AddUnaligned(shapes);
  AddAttention(shapes);
  AddConvolutions(shapes);
  return shapes.Take();
}

}  // namespace gpushare::tool
