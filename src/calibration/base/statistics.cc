// Ratios and expected values; see statistics.h.

#include "src/calibration/base/statistics.h"

#include <algorithm>
#include <cmath>

namespace gpushare::models {

void SetMeasured(double measured_ns, int64_t& field_ns) {
  if (measured_ns >= 1) field_ns = std::llround(measured_ns);
}

double Ratio(double a, double b) { return b > 0 ? a / b : 0; }

double ExpectedMaximum(double n) {
  if (n < 2) return 1;
  const double root = std::sqrt(2 * std::log(n));
  constexpr double kLog4Pi = 2.5310242469692907;
  return std::max(1.0, root - (std::log(std::log(n)) + kLog4Pi) / (2 * root));
}

}  // namespace gpushare::models
