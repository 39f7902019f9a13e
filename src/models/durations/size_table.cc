// The table over sizes; see size_table.h.

#include "src/models/durations/size_table.h"

#include <algorithm>
#include <cmath>

namespace gpushare::models {
namespace {

// Sizes that are as near as this are one size, in octaves.
constexpr double kNear = 1.0 / 16;
// What is as near as this to a size that was observed is known.
constexpr double kKnown = 0.25;
// A mean follows a drift within so many samples.
constexpr int32_t kSamplesMax = 16;
// After a shift a mean counts as so many samples.
constexpr int32_t kSamplesShifted = 3;
// One sample moves a mean as if it were off by three times the spread, and by a factor of 1.7 at
// most: one of seven pageable copies takes twice as long. A real change widens the spread.
constexpr double kOffMax = 0.75;
constexpr double kOffMin = 0.05;
constexpr double kSpreadsMax = 3;
constexpr double kSpreadSmoothing = 1.0 / 8;
constexpr double kSpreadSeenMax = 1;
// The steepest trend: attention's time grows with the square of its tokens.
constexpr double kGrowthMax = 2;

}  // namespace

const SizeTable::Mean* SizeTable::NearestTo(double log_size) const {
  const Mean* nearest = nullptr;
  for (const Mean& mean : known()) {
    if (nearest == nullptr ||
        std::abs(mean.log_size - log_size) < std::abs(nearest->log_size - log_size)) {
      nearest = &mean;
    }
  }
  return nearest;
}

SizeTable::Mean& SizeTable::MeanOf(double log_size) {
  const Mean* nearest = NearestTo(log_size);
  const bool near = nearest != nullptr && std::abs(nearest->log_size - log_size) < kNear;
  if (near || count_ == kPointsMax) return means_[static_cast<size_t>(nearest - means_.data())];
  size_t at = count_++;
  for (; at > 0 && means_[at - 1].log_size > log_size; --at) means_[at] = means_[at - 1];
  means_[at] = {};
  return means_[at];
}

double SizeTable::Clamped(double off) {
  spread_ += kSpreadSmoothing * (std::min(std::abs(off), kSpreadSeenMax) - spread_);
  const double most = std::clamp(kSpreadsMax * spread_, kOffMin, kOffMax);
  return std::clamp(off, -most, most);
}

void SizeTable::Observe(double size, double ratio) {
  if (!(size > 0) || !(ratio > 0) || !std::isfinite(size * ratio)) return;
  const double log_size = std::log2(size);
  Mean& mean = MeanOf(log_size);
  const double off = std::log2(ratio) - mean.log_ratio;
  const double counted = mean.samples == 0 ? off : Clamped(off);
  mean.samples = std::min(mean.samples + 1, kSamplesMax);
  const double gain = 1.0 / mean.samples;
  mean.log_size += gain * (log_size - mean.log_size);
  mean.log_ratio += gain * counted;
}

bool SizeTable::Knows(double size) const {
  if (!(size > 0)) return false;
  const double log_size = std::log2(size);
  const Mean* nearest = NearestTo(log_size);
  return nearest != nullptr && std::abs(nearest->log_size - log_size) < kKnown;
}

void SizeTable::Shift(double factor) {
  if (!(factor > 0) || !std::isfinite(factor)) return;
  for (Mean& mean : absl::MakeSpan(means_.data(), count_)) {
    mean.log_ratio += std::log2(factor);
    mean.samples = std::min(mean.samples, kSamplesShifted);
  }
}

// Through the last size and the nearest that is an octave inside: neighbours that are closer tell
// more of noise than of a trend.
double SizeTable::TrendAt(double size) const {
  if (count_ == 0 || !(size > 0)) return 1;
  const Mean& first = means_[0];
  const Mean& last = means_[count_ - 1];
  const double log_size = std::log2(size);
  if (log_size >= first.log_size && log_size <= last.log_size) return RatioAt(size);
  const bool above = log_size > last.log_size;
  const Mean& end = above ? last : first;
  const Mean* inner = above ? &first : &last;
  for (const Mean& mean : known()) {
    if (std::abs(mean.log_size - end.log_size) < 1) continue;
    if (std::abs(mean.log_size - end.log_size) < std::abs(inner->log_size - end.log_size)) {
      inner = &mean;
    }
  }
  const double wide = end.log_size - inner->log_size;
  const double slope = wide != 0 ? (end.log_ratio - inner->log_ratio) / wide : 0;
  return std::exp2(end.log_ratio + std::clamp(slope, 0.0, kGrowthMax) * (log_size - end.log_size));
}

double SizeTable::RatioAt(double size) const {
  if (count_ == 0 || !(size > 0)) return 1;
  const double log_size = std::log2(size);
  const auto above =
      std::lower_bound(known().begin(), known().end(), log_size,
                       [](const Mean& mean, double log) { return mean.log_size < log; });
  if (above == known().end()) return std::exp2(means_[count_ - 1].log_ratio);
  if (above == known().begin() || above->log_size == log_size) return std::exp2(above->log_ratio);
  const Mean& below = *(above - 1);
  const double share = (log_size - below.log_size) / (above->log_size - below.log_size);
  return std::exp2(below.log_ratio + share * (above->log_ratio - below.log_ratio));
}

std::vector<SizeTable::Point> SizeTable::points() const {
  std::vector<Point> out;
  for (const Mean& mean : known()) {
    out.push_back({mean.samples, std::exp2(mean.log_size), std::exp2(mean.log_ratio)});
  }
  return out;
}

void SizeTable::Restore(absl::Span<const Point> points) {
  *this = SizeTable();
  for (const Point& point : points) {
    const double log_size = std::log2(point.size);
    const double log_ratio = std::log2(point.ratio);
    if (point.samples <= 0 || !std::isfinite(log_size) || !std::isfinite(log_ratio)) continue;
    const auto samples = static_cast<int32_t>(std::min<int64_t>(point.samples, kSamplesMax));
    MeanOf(log_size) = {samples, log_size, log_ratio};
  }
}

}  // namespace gpushare::models
