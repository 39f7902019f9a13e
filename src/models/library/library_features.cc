// Features of library calls; see library_features.h.

#include "src/models/library/library_features.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/types/span.h"

namespace gpushare::models {
namespace {

// TMA and vector loads need rows at multiples of it.
constexpr int64_t kGoodAlignmentBytes = 16;
// A call takes about this long however small it is: the launch, and one wave of blocks.
constexpr double kLeastCallNs = 2e3;

// The call as batch products of m x k and k x n; bytes of all operands.
struct Product {
  double m = 0, n = 0, k = 0, batch = 1;
  double elements = 0;
  double window = 1;
  bool aligned = true;
  int64_t alignment_bytes = kGoodAlignmentBytes;  // of rows, at most this
};

int64_t BytesOf(core::DataType type) { return type == core::DataType::kFloat32 ? 4 : 2; }

bool IsAligned(int64_t elements, core::DataType type) {
  return elements % (kGoodAlignmentBytes / BytesOf(type)) == 0;
}

Product ProductOfMatmul(const core::LibraryCall& call) {
  Product out;
  out.m = static_cast<double>(call.m);
  out.n = static_cast<double>(call.n);
  out.k = static_cast<double>(call.k);
  out.batch = static_cast<double>(call.batch);
  out.elements = out.batch * (out.m * out.k + out.k * out.n + out.m * out.n);
  for (const int64_t row :
       {call.transpose_a ? call.m : call.k, call.transpose_b ? call.k : call.n, call.n}) {
    // Unsigned: the arguments may be any numbers.
    const uint64_t bytes = static_cast<uint64_t>(row) * static_cast<uint64_t>(BytesOf(call.type));
    const uint64_t largest_power = bytes & (~bytes + 1);
    out.alignment_bytes =
        static_cast<int64_t>(std::min(static_cast<uint64_t>(out.alignment_bytes), largest_power));
  }
  out.aligned = out.alignment_bytes >= kGoodAlignmentBytes;
  return out;
}

// Positions of the window along one side.
double Positions(int64_t side, int64_t window, const core::LibraryCall& call) {
  const double covered = static_cast<double>(call.dilation) * (static_cast<double>(window) - 1) + 1;
  const double room = static_cast<double>(side) + 2 * static_cast<double>(call.padding) - covered;
  return call.stride > 0 ? std::floor(room / static_cast<double>(call.stride)) + 1 : 0;
}

double ReadShare(int64_t window, const core::LibraryCall& call) {
  const int64_t covered = call.dilation * (window - 1) + 1;
  return call.stride > covered ? static_cast<double>(covered) / static_cast<double>(call.stride)
                               : 1;
}

Product ProductOfConvolution(const core::LibraryCall& call) {
  Product out;
  const auto images = static_cast<double>(call.batch);
  const auto channels = static_cast<double>(call.channels);
  const auto filters = static_cast<double>(call.filters);
  out.batch = static_cast<double>(call.groups);
  out.window = static_cast<double>(call.filter_height) * static_cast<double>(call.filter_width);
  out.m = images * Positions(call.height, call.filter_height, call) *
          Positions(call.width, call.filter_width, call);
  out.n = filters / out.batch;
  out.k = channels / out.batch * out.window;
  // A stride beyond the filter leaves pixels unread.
  const double input = static_cast<double>(call.height) * static_cast<double>(call.width) *
                       ReadShare(call.filter_height, call) * ReadShare(call.filter_width, call);
  out.elements = images * channels * input + filters * out.k + out.m * filters;
  out.aligned = IsAligned(call.channels, call.type) && IsAligned(call.filters, call.type);
  return out;
}

// Pooling, activation and softmax read each element and write the result: no product, so that m
// is the outputs and k the window.
Product ProductOfElements(const core::LibraryCall& call) {
  Product out;
  const double planes = static_cast<double>(call.batch) * static_cast<double>(call.channels);
  const double input = planes * static_cast<double>(call.height) * static_cast<double>(call.width);
  out.m = input;
  out.n = out.k = 1;
  if (call.operation == core::LibraryOperation::kPooling) {
    out.window = static_cast<double>(call.filter_height) * static_cast<double>(call.filter_width);
    out.k = out.window;
    out.m = planes * Positions(call.height, call.filter_height, call) *
            Positions(call.width, call.filter_width, call);
  }
  out.elements = input + out.m;
  out.aligned = IsAligned(call.channels_last ? call.channels : call.width, call.type);
  return out;
}

Product ProductOf(const core::LibraryCall& call) {
  switch (call.operation) {
    case core::LibraryOperation::kMatmul:
      return ProductOfMatmul(call);
    case core::LibraryOperation::kConvolution:
      return ProductOfConvolution(call);
    default:
      return ProductOfElements(call);
  }
}

// Tiles of the result that libraries give one block, and the share of the peak rate that their
// kernels reach on full waves: small tiles load more for each product. Approximate, because what is
// learned is the ratio to the least time.
struct Tile {
  double rows, columns, share;
};
constexpr Tile kHalfTiles[] = {{128, 256, 1.0}, {256, 128, 1.0}, {192, 128, 0.95}, {128, 192, 0.95},
                               {128, 128, 0.9}, {64, 256, 0.85}, {256, 64, 0.85},  {64, 128, 0.75},
                               {128, 64, 0.75}, {64, 64, 0.55},  {64, 32, 0.35},   {32, 64, 0.35}};
constexpr Tile kSingleTiles[] = {{128, 128, 1.0}, {256, 64, 0.95}, {64, 256, 0.95}, {128, 64, 0.95},
                                 {64, 128, 0.95}, {64, 64, 0.85},  {128, 32, 0.8},  {32, 128, 0.8},
                                 {64, 32, 0.7},   {32, 64, 0.7},   {32, 32, 0.5}};
// Into how many parts the sum over k is cut, so that a small result fills the device.
constexpr double kSplits[] = {1, 2, 3, 4, 6, 8, 16};
constexpr double kSplitLeast = 256;  // of k that a part keeps

double TilesOf(const Product& product, double rows, double columns) {
  return std::ceil(product.m / rows) * std::ceil(product.n / columns) * product.batch;
}

// How full the waves of tiles are, as log2: 0 when each wave has a tile for every SM.
double WaveFill(const Product& product, double rows, double columns, double sms) {
  const double waves = std::ceil(TilesOf(product, rows, columns) / sms);
  const double used = product.m * product.n * product.batch;
  return std::log2(used / (waves * sms * rows * columns));
}

// The arithmetic in whole waves of the best tiles. Each part of a sum writes the result once.
double WavesNs(const Product& product, absl::Span<const Tile> tiles, double sms,
               double flops_per_ns, double bytes_per_ns) {
  double best = std::numeric_limits<double>::infinity();
  for (const Tile& tile : tiles) {
    const double count = TilesOf(product, tile.rows, tile.columns);
    for (const double parts : kSplits) {
      if (parts > 1 && product.k < parts * kSplitLeast) break;
      const double waves = std::ceil(count * parts / sms);
      const double done = 2 * waves * sms * tile.rows * tile.columns * product.k / parts;
      const double sums = parts > 1 ? 8 * parts * product.m * product.n * product.batch : 0;
      best = std::min(best, done / (flops_per_ns * tile.share) + sums / bytes_per_ns);
    }
  }
  return best;
}

absl::Span<const Tile> TilesFor(const core::LibraryCall& call) {
  return call.type == core::DataType::kFloat32 ? absl::MakeConstSpan(kSingleTiles)
                                               : absl::MakeConstSpan(kHalfTiles);
}

// A vector times a matrix needs no tiles. Aligned products in half precision have kernels of so
// many tiles that the plain arithmetic is nearer: calls above 100 us were off by 5.3 % with waves
// and by 4.2 % without (eight folds of the rows that train).
bool HasWaves(const core::LibraryCall& call, const Product& product) {
  if (product.m == 1 || product.n == 1) return false;
  return call.operation != core::LibraryOperation::kMatmul ||
         call.type == core::DataType::kFloat32 || !product.aligned;
}

// Kernels for rows at odd places use no TMA: cuBLASLt reaches 120 to 135 TFLOP/s in half precision
// with rows at multiples of 2 bytes, and 120 to 230 at multiples of 4. Of multiples of 8 bytes
// there is no sample; 2 is a guess.
double Slowdown(const core::LibraryCall& call, const Product& product) {
  if (call.operation != core::LibraryOperation::kMatmul || call.type == core::DataType::kFloat32) {
    return 1;
  }
  if (product.alignment_bytes <= 2) return 5;
  if (product.alignment_bytes <= 4) return 3;
  return product.aligned ? 1 : 2;
}

bool IsUsable(const Product& product) {
  const double least = std::min({product.m, product.n, product.k, product.batch, product.window});
  return least > 0 && std::isfinite(product.m * product.n * product.k * product.batch) &&
         std::isfinite(product.elements);
}

}  // namespace

LibraryFeatures FeaturesOf(const LibraryDevice& device, const core::LibraryCall& call) {
  LibraryFeatures out;
  const auto operation = static_cast<size_t>(call.operation);
  if (operation == 0 || operation >= kLibraryOperations || device.sm_count <= 0) return out;
  const Product product = ProductOf(call);
  if (!IsUsable(product)) return out;
  const bool single = call.type == core::DataType::kFloat32;
  const double flops = 2 * product.m * product.n * product.k * product.batch;
  const double flops_per_ns = single ? device.single_flops_per_ns : device.half_flops_per_ns;
  const double arithmetic_ns = flops / flops_per_ns;
  const double bytes_ns =
      product.elements * static_cast<double>(BytesOf(call.type)) / device.bytes_per_ns;
  const auto sms = static_cast<double>(device.sm_count);
  const double product_ns =
      HasWaves(call, product) ? Slowdown(call, product) * WavesNs(product, TilesFor(call), sms,
                                                                  flops_per_ns, device.bytes_per_ns)
                              : arithmetic_ns;
  out.least_ns = kLeastCallNs + std::max(product_ns, bytes_ns);
  out.known = std::isfinite(out.least_ns);
  out.call_class = (operation * 2 + (single ? 1 : 0)) * 2 + (product.aligned ? 1 : 0);
  const auto flag = [](bool set) { return set ? 1.0 : 0.0; };
  auto& values = out.values;
  values[kLogM] = std::log2(product.m);
  values[kLogN] = std::log2(product.n);
  values[kLogK] = std::log2(product.k);
  values[kLogBatch] = std::log2(product.batch);
  values[kLogBalance] = std::log2(product_ns / bytes_ns);
  values[kLogLeast] = std::log2(out.least_ns);
  values[kWaveLarge] = WaveFill(product, 128, 256, sms);
  values[kWaveMedium] = WaveFill(product, 128, 128, sms);
  values[kLogWindow] = std::log2(product.window);
  values[kLogStride] = std::log2(static_cast<double>(std::max<int64_t>(1, call.stride)));
  values[kTransposeA] = flag(call.transpose_a);
  values[kTransposeB] = flag(call.transpose_b);
  values[kLogAlignment] = std::log2(static_cast<double>(product.alignment_bytes));
  values[kBfloat16] = flag(call.type == core::DataType::kBfloat16);
  values[kChannelsLast] = flag(call.channels_last);
  return out;
}

}  // namespace gpushare::models
