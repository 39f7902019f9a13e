// Closed forms of the waits; see pipe_queue.h.

#include "src/models/markov/pipes/pipe_queue.h"

#include <algorithm>
#include <cmath>

namespace gpushare::models::markov {
namespace {

double Use(const PipeLoad& load) {
  return load.cycles > 0 ? load.queued / (load.elsewhere + load.cycles) : 0;
}

// The factor on `load.cycles` with which the load uses `part` of the pipe.
double FactorFor(const PipeLoad& load, double part) {
  return (load.queued / part - load.elsewhere) / load.cycles;
}

// The one factor on the cycles of both with which they use all of the pipe: the larger root of a
// quadratic equation.
double CommonFactor(const PipeLoad& one, const PipeLoad& two) {
  if (two.cycles <= 0) return FactorFor(one, 1);
  if (one.cycles <= 0) return FactorFor(two, 1);
  const double a = one.cycles * two.cycles;
  const double b =
      (one.elsewhere - one.queued) * two.cycles + (two.elsewhere - two.queued) * one.cycles;
  const double c =
      one.elsewhere * two.elsewhere - one.queued * two.elsewhere - two.queued * one.elsewhere;
  return (std::sqrt(std::max(0.0, b * b - 4 * a * c)) - b) / (2 * a);
}

}  // namespace

std::array<double, 2> PipeSlowdowns(const PipeLoad& older, const PipeLoad& younger,
                                    double older_wait) {
  if (Use(older) + Use(younger) <= 1) return {1, 1};
  const double left = 1 - Use(older);
  if (left > 0) {
    const double factor = FactorFor(younger, left);
    if (factor <= 1 / older_wait) return {1, factor};
  }
  PipeLoad ahead = older;
  ahead.cycles *= older_wait;
  const double factor = CommonFactor(ahead, younger);
  return {std::max(1.0, older_wait * factor), std::max(1.0, factor)};
}

}  // namespace gpushare::models::markov
