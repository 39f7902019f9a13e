#include "src/models/markov/stationary.h"

#include <cmath>
#include <cstddef>
#include <span>

namespace gpushare::models::markov {
namespace {

// Removes state `last` and gives its paths to the states before it. Column `last` keeps, for each
// state i, the expected visits to `last` between visits to the states before it, starting from i.
bool Censor(double* transitions, size_t states, size_t last) {
  const double* row = transitions + last * states;
  double leaving = 0;
  for (size_t to = 0; to < last; ++to) leaving += row[to];
  if (!(leaving > 0) || !std::isfinite(1 / leaving)) return false;
  for (size_t from = 0; from < last; ++from) {
    double* other = transitions + from * states;
    const double visits = other[last] / leaving;
    other[last] = visits;
    if (visits == 0) continue;
    for (size_t to = 0; to < last; ++to) other[to] += visits * row[to];
  }
  return true;
}

}  // namespace

bool SolveStationary(std::span<double> transitions, std::span<double> steady) {
  const size_t states = steady.size();
  if (states == 0 || transitions.size() != states * states) return false;
  for (size_t last = states - 1; last > 0; --last) {
    if (!Censor(transitions.data(), states, last)) return false;
  }
  steady[0] = 1;
  double sum = 1;
  for (size_t state = 1; state < states; ++state) {
    double weight = 0;
    for (size_t from = 0; from < state; ++from) {
      weight += steady[from] * transitions[from * states + state];
    }
    steady[state] = weight;
    sum += weight;
  }
  if (!std::isfinite(sum)) return false;
  for (double& probability : steady) probability /= sum;
  return true;
}

}  // namespace gpushare::models::markov
