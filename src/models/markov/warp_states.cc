#include "src/models/markov/warp_states.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace gpushare::models::markov {
namespace {

constexpr double kRequestsMax = 32;  // one a thread of a warp

bool IsShare(double value) { return value >= 0 && value <= 1; }

// What one unit adds to the stalled counts, with which probability.
struct Step {
  double ready = 0;
  double coalesced = 0;
  double uncoalesced = 0;
};

// Adds one independent unit to the distribution of stalled counts: a polynomial in two variables,
// whose coefficient at `coalesced * width + uncoalesced` is a probability, times that of the unit.
void AddUnit(const Step& step, int32_t units_before, int32_t width, StalledCounts& counts) {
  for (int32_t c = units_before + 1; c >= 0; --c) {
    for (int32_t u = units_before + 1 - c; u >= 0; --u) {
      const auto at = static_cast<size_t>(c * width + u);
      double probability = c + u <= units_before ? counts[at] * step.ready : 0;
      if (c > 0) probability += counts[at - static_cast<size_t>(width)] * step.coalesced;
      if (u > 0) probability += counts[at - 1] * step.uncoalesced;
      counts[at] = probability;
    }
  }
}

// The same with one kind of access: a polynomial in one variable.
void AddUnitOfOneKind(double ready, double stalled, int32_t units_before, StalledCounts& counts) {
  const auto last = static_cast<size_t>(units_before) + 1;
  counts[last] = counts[last - 1] * stalled;
  for (size_t i = last - 1; i > 0; --i) counts[i] = counts[i] * ready + counts[i - 1] * stalled;
  counts[0] *= ready;
}

void FillRowOfOneKind(const ResidentKernel& kernel, Stalled from, Returns returns,
                      StalledCounts& scratch, std::span<double> row) {
  // One of the two counts is zero.
  const int32_t stalled = from.coalesced + from.uncoalesced;
  const double back = from.uncoalesced > 0 ? returns.uncoalesced : returns.coalesced;
  const int32_t ready = kernel.units - stalled;
  scratch[0] = 1;
  for (int32_t i = 0; i < ready; ++i) {
    AddUnitOfOneKind(1 - kernel.memory_share, kernel.memory_share, i, scratch);
  }
  for (int32_t i = ready; i < kernel.units; ++i) AddUnitOfOneKind(back, 1 - back, i, scratch);
  std::copy_n(scratch.begin(), row.size(), row.begin());
}

void FillRowOfBothKinds(const ResidentKernel& kernel, Stalled from, Returns returns,
                        StalledCounts& scratch, std::span<double> row) {
  const int32_t width = kernel.units + 1;
  const double to_uncoalesced = kernel.memory_share * kernel.uncoalesced_share;
  int32_t units = 0;
  scratch[0] = 1;
  const auto add = [&](int32_t count, const Step& step) {
    for (int32_t i = 0; i < count; ++i) AddUnit(step, units++, width, scratch);
  };
  add(kernel.units - from.coalesced - from.uncoalesced,
      {1 - kernel.memory_share, kernel.memory_share - to_uncoalesced, to_uncoalesced});
  add(from.coalesced, {returns.coalesced, 1 - returns.coalesced, 0});
  add(from.uncoalesced, {returns.uncoalesced, 0, 1 - returns.uncoalesced});
  size_t state = 0;
  for (int32_t stalled = 0; stalled <= kernel.units; ++stalled) {
    for (int32_t uncoalesced = 0; uncoalesced <= stalled; ++uncoalesced) {
      row[state++] = scratch[static_cast<size_t>((stalled - uncoalesced) * width + uncoalesced)];
    }
  }
}

}  // namespace

bool IsUsable(const ResidentKernel& kernel) {
  return kernel.units >= 0 && std::isfinite(kernel.warps_per_unit) && kernel.warps_per_unit > 0 &&
         IsShare(kernel.memory_share) && IsShare(kernel.uncoalesced_share) &&
         kernel.uncoalesced_requests >= 1 && kernel.uncoalesced_requests <= kRequestsMax;
}

bool HasBothAccesses(const ResidentKernel& kernel) {
  return kernel.memory_share > 0 && kernel.uncoalesced_share > 0 && kernel.uncoalesced_share < 1;
}

int32_t CountStates(const ResidentKernel& kernel) {
  // More units than a chain holds states exceed every bound; the product must not overflow.
  const int64_t units = std::min<int64_t>(kernel.units, INT16_MAX);
  const int64_t states = HasBothAccesses(kernel) ? (units + 1) * (units + 2) / 2 : units + 1;
  return static_cast<int32_t>(states);
}

void ListStates(const ResidentKernel& kernel, std::span<Stalled> states) {
  const bool both = HasBothAccesses(kernel);
  size_t state = 0;
  for (int32_t stalled = 0; stalled <= kernel.units; ++stalled) {
    for (int32_t uncoalesced = 0; uncoalesced <= (both ? stalled : 0); ++uncoalesced) {
      states[state++] = {stalled - uncoalesced, uncoalesced};
    }
  }
  if (both || kernel.uncoalesced_share < 1) return;
  for (Stalled& each : states) each = {0, each.coalesced};  // all accesses are uncoalesced
}

void FillRow(const ResidentKernel& kernel, Stalled from, Returns returns, StalledCounts& scratch,
             std::span<double> row) {
  if (HasBothAccesses(kernel)) {
    FillRowOfBothKinds(kernel, from, returns, scratch, row);
  } else {
    FillRowOfOneKind(kernel, from, returns, scratch, row);
  }
}

}  // namespace gpushare::models::markov
