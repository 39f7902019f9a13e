// Random numbers: SplitMix64 (Steele et al., 2014). A seed gives the same numbers on every
// compiler, so a run replays everywhere; the distributions of the standard library differ. Threads:
// one at a time for each generator.

#ifndef GPUSHARE_SRC_CORE_BASE_RANDOM_H_
#define GPUSHARE_SRC_CORE_BASE_RANDOM_H_

#include <cmath>
#include <cstdint>

namespace gpushare::core {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    state_ += 0x9E3779B97F4A7C15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  // Uniform in [0, 1), with 53 bits.
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }
  double Uniform(double low, double high) { return low + (high - low) * Uniform(); }
  double Exponential(double mean) { return -mean * std::log1p(-Uniform()); }

 private:
  uint64_t state_;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_BASE_RANDOM_H_
