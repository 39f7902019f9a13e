// Measured over expected durations, as a table over the size, learned online.
//
// Where durations are no line (pageable copies move large blocks at another rate than small ones),
// the nearest measured sizes predict better: Baymax 4.3 uses the nearest neighbours of a sample in
// the same way. Each size has a mean ratio of measured and expected time; sizes that differ by less
// than a sixteenth of an octave are one, and more than kPointsMax of them join the nearest. Between
// two of them the ratio lies on their line, in logarithms; beyond the last it stays.
// Threads: the scheduler's only. Nothing allocates.

#ifndef GPUSHARE_SRC_MODELS_DURATIONS_SIZE_TABLE_H_
#define GPUSHARE_SRC_MODELS_DURATIONS_SIZE_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace gpushare::models {

class SizeTable {
 public:
  // `ratio`: measured over expected. Both above 0.
  void Observe(double size, double ratio);
  // Multiplies all ratios, and lets the next samples count for more.
  void Shift(double factor);
  // Whether a sample of about this size was observed.
  bool Knows(double size) const;
  // 1 as long as nothing was observed.
  double RatioAt(double size) const;
  // The same between measured sizes. Beyond them the ratio grows on as a power of the size, at most
  // its square, and does not fall: right for ratios to an expectation that is the same for every
  // size.
  double TrendAt(double size) const;

  // What a profile keeps: at most kPointsMax points, in the order of their sizes.
  struct Point {
    int64_t samples = 0;
    double size = 0;
    double ratio = 0;
  };
  std::vector<Point> points() const;
  // Points that are not above 0 and finite do not count.
  void Restore(absl::Span<const Point> points);

  static constexpr size_t kPointsMax = 96;

 private:
  struct Mean {
    int32_t samples = 0;
    double log_size = 0;
    double log_ratio = 0;
  };
  absl::Span<const Mean> known() const { return absl::MakeConstSpan(means_.data(), count_); }
  // The mean of the nearest size; null: nothing was observed.
  const Mean* NearestTo(double log_size) const;
  // The mean that a sample of this size changes; a new one where none is near and there is room.
  Mean& MeanOf(double log_size);
  double Clamped(double off);

  size_t count_ = 0;
  std::array<Mean, kPointsMax> means_;  // in the order of their sizes
  double spread_ = 0.25;                // of samples around their mean, in octaves: smoothed
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_DURATIONS_SIZE_TABLE_H_
