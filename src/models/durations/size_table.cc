// The table of half-octaves; see size_table.h.

#include "src/models/durations/size_table.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gpushare::models {
namespace {

constexpr double kPerOctave = 2;
// A mean follows a drift within so many samples.
constexpr int32_t kSamplesMax = 16;
// After a shift a mean counts as so many samples.
constexpr int32_t kSamplesShifted = 3;
// One sample moves a mean as if it were off by a factor of 1.7 at most. A real change of more
// shifts the whole table.
constexpr double kOffMax = 0.75;
// The steepest trend: attention's time grows with the square of its tokens.
constexpr double kGrowthMax = 2;

}  // namespace

size_t SizeTable::BucketOf(double log_size) {
  const double bucket = std::floor(kPerOctave * log_size);
  return static_cast<size_t>(std::clamp(bucket, 0.0, static_cast<double>(kBuckets - 1)));
}

void SizeTable::Observe(double size, double ratio) {
  if (!(size > 0) || !(ratio > 0) || !std::isfinite(size * ratio)) return;
  const double log_size = std::log2(size);
  Mean& mean = means_[BucketOf(log_size)];
  const double most = mean.samples == 0 ? std::numeric_limits<double>::infinity() : kOffMax;
  mean.samples = std::min(mean.samples + 1, kSamplesMax);
  const double gain = 1.0 / mean.samples;
  mean.log_size += gain * (log_size - mean.log_size);
  mean.log_ratio += gain * std::clamp(std::log2(ratio) - mean.log_ratio, -most, most);
}

bool SizeTable::Knows(double size) const {
  return size > 0 && means_[BucketOf(std::log2(size))].samples > 0;
}

void SizeTable::Shift(double factor) {
  if (!(factor > 0) || !std::isfinite(factor)) return;
  for (Mean& mean : means_) {
    mean.log_ratio += std::log2(factor);
    mean.samples = std::min(mean.samples, kSamplesShifted);
  }
}

// Through the last size and the nearest that is an octave inside: neighbours that are closer tell
// more of noise than of a trend.
double SizeTable::TrendAt(double size) const {
  const Mean* first = nullptr;
  const Mean* last = nullptr;
  for (const Mean& mean : means_) {
    if (mean.samples == 0) continue;
    if (first == nullptr) first = &mean;
    last = &mean;
  }
  if (first == nullptr || !(size > 0)) return 1;
  const double log_size = std::log2(size);
  if (log_size >= first->log_size && log_size <= last->log_size) return RatioAt(size);
  const bool above = log_size > last->log_size;
  const Mean& end = above ? *last : *first;
  const Mean* inner = above ? first : last;
  for (const Mean& mean : means_) {
    if (mean.samples == 0 || std::abs(mean.log_size - end.log_size) < 1) continue;
    if (std::abs(mean.log_size - end.log_size) < std::abs(inner->log_size - end.log_size)) {
      inner = &mean;
    }
  }
  const double wide = end.log_size - inner->log_size;
  const double slope = wide != 0 ? (end.log_ratio - inner->log_ratio) / wide : 0;
  return std::exp2(end.log_ratio + std::clamp(slope, 0.0, kGrowthMax) * (log_size - end.log_size));
}

double SizeTable::RatioAt(double size) const {
  if (!(size > 0)) return 1;
  const double log_size = std::log2(size);
  const Mean* below = nullptr;
  const Mean* above = nullptr;
  for (const Mean& mean : means_) {
    if (mean.samples == 0) continue;
    if (mean.log_size <= log_size) below = &mean;
    if (mean.log_size >= log_size && above == nullptr) above = &mean;
  }
  if (below == nullptr && above == nullptr) return 1;
  if (below == nullptr) return std::exp2(above->log_ratio);
  if (above == nullptr) return std::exp2(below->log_ratio);
  const double wide = above->log_size - below->log_size;
  const double share = wide > 0 ? (log_size - below->log_size) / wide : 0;
  return std::exp2(below->log_ratio + share * (above->log_ratio - below->log_ratio));
}

std::vector<SizeTable::Point> SizeTable::points() const {
  std::vector<Point> out;
  for (const Mean& mean : means_) {
    if (mean.samples == 0) continue;
    out.push_back({mean.samples, std::exp2(mean.log_size), std::exp2(mean.log_ratio)});
  }
  return out;
}

void SizeTable::Restore(absl::Span<const Point> points) {
  means_ = {};
  for (const Point& point : points) {
    const double log_size = std::log2(point.size);
    const double log_ratio = std::log2(point.ratio);
    if (point.samples <= 0 || !std::isfinite(log_size) || !std::isfinite(log_ratio)) continue;
    const auto samples = static_cast<int32_t>(std::min<int64_t>(point.samples, kSamplesMax));
    means_[BucketOf(log_size)] = {samples, log_size, log_ratio};
  }
}

}  // namespace gpushare::models
