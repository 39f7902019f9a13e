#include "tools/gpushare/scenario/arrivals.h"

#include <algorithm>
#include <cmath>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/random.h"

namespace gpushare::tool {

namespace {

// Collects arrivals and says when there are enough.
class Collector {
 public:
  explicit Collector(const ArrivalRequest& request) : request_(request) {}

  bool Add(double time_ns) {
    if (static_cast<int64_t>(times_.size()) >= request_.queries_max) return false;
    if (!(time_ns < 9.0e18)) {
      throw InputError("The arrivals reach beyond 9e18 ns, and a run must end before.");
    }
    const auto time = static_cast<int64_t>(std::llround(time_ns));
    if (request_.duration_ns > 0 && time >= request_.duration_ns) return false;
    times_.push_back(time);
    return true;
  }
  std::vector<int64_t> Take() { return std::move(times_); }

 private:
  const ArrivalRequest& request_;
  std::vector<int64_t> times_;
};

double Gap(const ArrivalSpec& spec, Random& random) {
  switch (spec.kind) {
    case ArrivalKind::kPoisson:
      return random.Exponential();
    case ArrivalKind::kGamma:
      return random.GammaMeanOne(spec.cv);
    default:
      return 1;
  }
}

// A Poisson stream that runs only during bursts. Its rate is higher in proportion, so that the mean
// rate is the same.
void AddBursts(const ArrivalSpec& spec, const ArrivalRequest& request, Random& random,
               Collector& out) {
  const auto on_ns = static_cast<double>(spec.on_ns);
  const auto off_ns = static_cast<double>(spec.off_ns);
  const double gap_ns = request.mean_gap_ns * on_ns / (on_ns + off_ns);
  double burst_start = 0;
  double left_of_gap = gap_ns * random.Exponential();  // burst time left until the next arrival
  while (true) {
    const double length = spec.random_spells ? on_ns * random.Exponential() : on_ns;
    double at = 0;
    while (at + left_of_gap < length) {
      at += left_of_gap;
      if (!out.Add(burst_start + at)) return;
      left_of_gap = gap_ns * random.Exponential();
    }
    left_of_gap -= length - at;
    burst_start += length + (spec.random_spells ? off_ns * random.Exponential() : off_ns);
    if (request.duration_ns > 0 && burst_start >= static_cast<double>(request.duration_ns)) return;
  }
}

// Scales recorded times, so that the mean gap of the rows used is the wanted one.
void AddRecorded(const ArrivalSpec& spec, const ArrivalRequest& request, Collector& out) {
  const size_t rows = std::min(spec.times_ns.size(),
                               static_cast<size_t>(std::max<int64_t>(request.queries_max, 0)));
  if (rows == 0) return;
  const auto span = static_cast<double>(spec.times_ns[rows - 1] - spec.times_ns[0]);
  double stretch = 1;
  if (spec.scaled && span > 0) {
    stretch = request.mean_gap_ns * static_cast<double>(rows - 1) / span;
  }
  const int64_t origin = spec.scaled ? spec.times_ns[0] : 0;
  for (size_t i = 0; i < rows; ++i) {
    if (!out.Add(stretch * static_cast<double>(spec.times_ns[i] - origin))) return;
  }
}

}  // namespace

std::vector<int64_t> MakeArrivals(const ArrivalSpec& spec, const ArrivalRequest& request) {
  Collector out(request);
  Random random(request.seed);
  switch (spec.kind) {
    case ArrivalKind::kClosedLoop:
      break;
    case ArrivalKind::kExplicit:
    case ArrivalKind::kTrace:
      AddRecorded(spec, request, out);
      break;
    case ArrivalKind::kOnOff:
      AddBursts(spec, request, random, out);
      break;
    default: {
      double time_ns = 0;
      do {
        time_ns += request.mean_gap_ns * Gap(spec, random);
      } while (out.Add(time_ns));
    }
  }
  return out.Take();
}

}  // namespace gpushare::tool
