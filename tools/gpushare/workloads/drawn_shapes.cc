// The draws; see drawn_shapes.h.

#include "tools/gpushare/workloads/drawn_shapes.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "tools/gpushare/base/random.h"
#include "tools/gpushare/workloads/library_shapes.h"

namespace gpushare::tool {

namespace {

constexpr uint64_t kBlindSeed = 20240815;
constexpr uint64_t kDrawnSeed = 20261128;
constexpr uint64_t kPlacedSeed = 20261129;
// Drawn and placed shapes of each kind, over the number of blind ones.
constexpr double kDrawnTimes = 4;
constexpr double kPlacedTimes = 0.5;
constexpr const char* kBlindPrefix = "blind.";
constexpr size_t kHalfProducts = 50;
constexpr size_t kFloatProducts = 16;
constexpr size_t kBatchedProducts = 8;
constexpr size_t kUnalignedProducts = 6;
constexpr size_t kConvolutions = 36;
// Limits of LeastNs: longer than a launch, and short enough for a run over all shapes.
constexpr double kNsMin = 12e3;
constexpr double kNsMax = 2.4e6;
constexpr int64_t kOperandBytesMax = 2'000'000'000;

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {
    for (const LibraryShape& shape : ListLibraryShapes()) known_.insert(shape.name);
  }

  void Leave(const std::string& name) { known_.insert(name); }

  // Draws until `count` shapes more are taken.
  template <class DrawOne>
  void Add(size_t count, DrawOne draw_one) {
    for (const size_t enough = all_.size() + count; all_.size() < enough;) Take(draw_one());
  }

  // A multiple of `unit`, even on a logarithmic scale.
  int64_t Between(double least, double most, int64_t unit) {
    const double value = least * std::pow(most / least, random_.Uniform());
    return std::max<int64_t>(1, std::llround(value / static_cast<double>(unit))) * unit;
  }
  bool Coin() { return random_.Uniform() < 0.5; }

  std::vector<LibraryShape> Done() { return std::move(all_); }

 private:
  void Take(LibraryShape shape) {
    const double ns = LeastNs(shape.call);
    const OperandElements elements = ElementsOf(shape.call);
    const int64_t most = std::max({elements.a, elements.b, elements.d});
    if (ns < kNsMin || ns > kNsMax || most * BytesOfElement(shape.call) > kOperandBytesMax) return;
    if (!known_.insert(shape.name).second) return;
    all_.push_back(std::move(shape));
  }

  Random random_;
  std::set<std::string> known_;
  std::vector<LibraryShape> all_;
};

void DrawAll(Draw& draw, double times) {
  const auto of = [times](size_t count) {
    return static_cast<size_t>(times * static_cast<double>(count));
  };
  const auto product = [&](gpushare_data_type type, int64_t unit) {
    Matmul one;
    one.m = draw.Between(1, 16384, draw.Coin() ? 8 : 1);
    one.n = draw.Between(256, 16384, unit);
    one.k = draw.Between(256, 16384, unit);
    one.type = type;
    one.transpose_b = draw.Coin();
    return one;
  };
  draw.Add(of(kHalfProducts), [&] {
    return MatmulShape(product(draw.Coin() ? GPUSHARE_FLOAT16 : GPUSHARE_BFLOAT16, 64));
  });
  draw.Add(of(kFloatProducts), [&] { return MatmulShape(product(GPUSHARE_FLOAT32, 64)); });
  draw.Add(of(kUnalignedProducts), [&] { return MatmulShape(product(GPUSHARE_FLOAT16, 1)); });
  draw.Add(of(kBatchedProducts), [&] {
    const int64_t tokens = draw.Between(128, 4096, 64);
    const int64_t width = draw.Coin() ? 64 : 128;
    const bool scores = draw.Coin();
    Matmul one = {tokens, scores ? tokens : width, scores ? width : tokens};
    one.transpose_b = scores;
    one.batch = draw.Between(8, 512, 4);
    return MatmulShape(one);
  });
  draw.Add(of(kConvolutions), [&] {
    Convolution one = {};
    one.batch = draw.Between(4, 128, 4);
    one.channels = draw.Between(32, 2048, 32);
    one.size = draw.Between(7, 112, 7);
    one.filters = draw.Between(32, 2048, 32);
    one.filter = draw.Coin() ? 3 : 1;
    one.stride = draw.Between(1, 2.5, 1) > 1 ? 2 : 1;
    return ConvolutionShape(one);
  });
}

std::vector<LibraryShape> DrawBlind() {
  Draw draw(kBlindSeed);
  DrawAll(draw, 1);
  return draw.Done();
}

void LeaveBlind(Draw& draw) {
  for (const LibraryShape& blind : DrawBlind()) draw.Leave(blind.name);
}

}  // namespace

std::vector<LibraryShape> ListBlindShapes() {
  std::vector<LibraryShape> all = DrawBlind();
  for (LibraryShape& shape : all) shape.name = kBlindPrefix + shape.name;
  return all;
}

std::vector<LibraryShape> ListDrawnShapes() {
  Draw draw(kDrawnSeed);
  LeaveBlind(draw);
  DrawAll(draw, kDrawnTimes);
  return draw.Done();
}

std::vector<LibraryShape> ListPlacedShapes() {
  Draw draw(kPlacedSeed);
  LeaveBlind(draw);
  for (const LibraryShape& drawn : ListDrawnShapes()) draw.Leave(drawn.name);
  DrawAll(draw, kPlacedTimes);
  return draw.Done();
}

}  // namespace gpushare::tool
