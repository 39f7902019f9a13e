#include "src/models/markov/stationary.h"

#include <cmath>
#include <cstddef>
#include <span>

namespace gpushare::models::markov {
namespace {

// The probability of leaving state `last` for a state before it.
double Leaving(const double* row, size_t last) {
  double leaving = 0;
  for (size_t to = 0; to < last; ++to) leaving += row[to];
  return leaving;
}

// Removes state `last` and gives its paths to the states before it. Column `last` keeps, for each
// state i, the expected visits to `last` between visits to the states before it, starting from i.
void CensorOne(double* transitions, size_t states, size_t last) {
  const double* row = transitions + last * states;
  const double leaving = Leaving(row, last);
  for (size_t from = 0; from < last; ++from) {
    double* other = transitions + from * states;
    other[last] /= leaving;
    for (size_t to = 0; to < last; ++to) other[to] += other[last] * row[to];
  }
}

// Removes `last` and the state before it in one pass, which halves the traffic with memory.
void CensorTwo(double* transitions, size_t states, size_t last) {
  const double* row = transitions + last * states;
  double* next_row = transitions + (last - 1) * states;
  const double leaving = Leaving(row, last);
  next_row[last] /= leaving;
  for (size_t to = 0; to < last; ++to) next_row[to] += next_row[last] * row[to];
  const double next_leaving = Leaving(next_row, last - 1);
  for (size_t from = 0; from < last - 1; ++from) {
    double* other = transitions + from * states;
    const double visits = other[last] / leaving;
    const double next_visits = (other[last - 1] + visits * row[last - 1]) / next_leaving;
    for (size_t to = 0; to < last - 1; ++to) {
      other[to] += visits * row[to] + next_visits * next_row[to];
    }
    other[last] = visits;
    other[last - 1] = next_visits;
  }
}

}  // namespace

bool SolveStationary(std::span<double> transitions, std::span<double> steady) {
  const size_t states = steady.size();
  if (states == 0 || transitions.size() != states * states) return false;
  size_t last = states - 1;
  for (; last > 1; last -= 2) CensorTwo(transitions.data(), states, last);
  if (last == 1) CensorOne(transitions.data(), states, last);
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
  // A state that never leaves for one before it divides by zero.
  if (!std::isfinite(sum)) return false;
  for (double& probability : steady) probability /= sum;
  return true;
}

}  // namespace gpushare::models::markov
