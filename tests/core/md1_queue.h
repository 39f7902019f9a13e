// The tail of the M/D/1 queue from its equation, to compare with.

#ifndef GPUSHARE_TESTS_CORE_MD1_QUEUE_H_
#define GPUSHARE_TESTS_CORE_MD1_QUEUE_H_

#include <cmath>

namespace gpushare::core {

// eta x S at the load rho: the root of rho (exp(x) - 1) = x, by bisection.
inline double TailRateOverService(double load) {
  double low = 1e-9;
  double high = 100;
  for (int i = 0; i < 200; ++i) {
    const double x = (low + high) / 2;
    (load * std::expm1(x) < x ? low : high) = x;
  }
  return low;
}

}  // namespace gpushare::core

#endif  // GPUSHARE_TESTS_CORE_MD1_QUEUE_H_
