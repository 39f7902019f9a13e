#include "tools/gpushare/base/random.h"

#include <cmath>

namespace gpushare::tool {

double Random::Uniform() { return (static_cast<double>(engine_() >> 11) + 0.5) * 0x1.0p-53; }

double Random::Exponential() { return -std::log(Uniform()); }

double Random::Normal() {
  constexpr double kTwoPi = 6.283185307179586;
  const double radius = std::sqrt(2 * Exponential());
  return radius * std::cos(kTwoPi * Uniform());
}

double Random::GammaShape(double shape) {
  // Below shape 1 the density has a pole: Gamma(k) = Gamma(k + 1) x U^(1/k).
  if (shape < 1) return GammaShape(shape + 1) * std::pow(Uniform(), 1 / shape);
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {  // accepts more than 95 % of the draws
    const double x = Normal();
    const double v = 1 + c * x;
    if (v <= 0) continue;
    const double cube = v * v * v;
    if (std::log(Uniform()) < 0.5 * x * x + d - d * cube + d * std::log(cube)) return d * cube;
  }
}

double Random::GammaMeanOne(double cv) {
  const double shape = 1 / (cv * cv);
  return GammaShape(shape) / shape;
}

uint64_t MixSeed(uint64_t seed, uint64_t stream) {
  uint64_t z = seed + 0x9e3779b97f4a7c15u * (stream + 1);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace gpushare::tool
