// Seeded samplers. The distributions of the standard library differ between implementations, and a
// seed must give the same arrivals everywhere.
//
// std::mt19937_64 itself is fully specified by the standard.

#ifndef GPUSHARE_TOOLS_GPUSHARE_BASE_RANDOM_H_
#define GPUSHARE_TOOLS_GPUSHARE_BASE_RANDOM_H_

#include <cstdint>
#include <random>

namespace gpushare::tool {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  // In (0, 1): 53 random bits, never 0, so that its logarithm is finite.
  double Uniform();
  // Mean 1.
  double Exponential();
  // Mean 0, variance 1 (Box-Muller).
  double Normal();
  // Mean 1, standard deviation `cv` (Marsaglia and Tsang 2000; shape 1 / cv^2).
  double GammaMeanOne(double cv);

 private:
  double GammaShape(double shape);

  std::mt19937_64 engine_;
};

// Spreads related seeds apart (splitmix64).
uint64_t MixSeed(uint64_t seed, uint64_t stream);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_BASE_RANDOM_H_
