// The mean of times, and how far it may be off. Older ones count less once there are as many as the
// memory holds.

#ifndef GPUSHARE_SRC_CORE_BASE_MEAN_TIME_H_
#define GPUSHARE_SRC_CORE_BASE_MEAN_TIME_H_

#include <algorithm>

namespace gpushare::core {

struct MeanTime {
  double mean_ns = 0;
  double variance = 0;
  double count = 0;  // at most the memory

  void Add(double time_ns, double memory) {
    count = std::min(count + 1, memory);
    const double off = time_ns - mean_ns;
    mean_ns += off / count;
    variance += (off * off * (1 - 1 / count) - variance) / count;
  }
  double SquaredError() const { return count > 0 ? variance / count : 0; }
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_BASE_MEAN_TIME_H_
