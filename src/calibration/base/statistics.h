// Ratios and expected values of what was measured. Pure functions. Threads: any.

#ifndef GPUSHARE_SRC_CALIBRATION_BASE_STATISTICS_H_
#define GPUSHARE_SRC_CALIBRATION_BASE_STATISTICS_H_

#include <cstdint>

namespace gpushare::models {

// Rounds a measured time into a field. Below 1 ns nothing was measured and the field stays: on a
// virtual clock a host call takes no time.
void SetMeasured(double measured_ns, int64_t& field_ns);

// a / b; 0 where b was not measured (0 or less).
double Ratio(double a, double b);

// Expected largest of n draws from a normal distribution, in standard deviations (Cramer). At least
// 1, because callers divide by it.
double ExpectedMaximum(double n);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_BASE_STATISTICS_H_
