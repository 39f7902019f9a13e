// What the repeats of a row say together. Pure functions. Threads: any.

#ifndef GPUSHARE_SRC_MODELS_SAMPLES_ROW_TIMES_H_
#define GPUSHARE_SRC_MODELS_SAMPLES_ROW_TIMES_H_

#include <vector>

namespace gpushare::models {

// 0 without a value.
double Median(std::vector<double> values);

// The median of a[i] / b[i]: both of one repeat see the same clocks. 0 where there is none.
double MedianRatio(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_SAMPLES_ROW_TIMES_H_
