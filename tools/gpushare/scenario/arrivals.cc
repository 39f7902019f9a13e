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

// Queries of a phase from its start to its end, in units of time at rate 1.
double Area(const ArrivalPhase& phase, double length) {
  return length * (phase.rate + phase.end_rate) / 2;
}

// Time from the start of a phase to the point with this area before it. The form of the quadratic
// formula that also holds where the rate is constant or begins at 0.
double TimeAtArea(const ArrivalPhase& phase, double length, double area) {
  if (phase.rate == phase.end_rate) return area / phase.rate;
  const double slope = (phase.end_rate - phase.rate) / length;
  const double end_rate = std::sqrt(std::max(0.0, phase.rate * phase.rate + 2 * slope * area));
  return 2 * area / (phase.rate + end_rate);
}

// The next one in turn, or any of the others.
size_t NextPhase(const ArrivalSpec& spec, size_t phase, Random& random) {
  const size_t count = spec.phases.size();
  if (!spec.random_phases || count == 2) return (phase + 1) % count;
  const auto others = static_cast<double>(count - 1);
  const auto step = static_cast<size_t>(random.Uniform() * others);
  return (phase + 1 + std::min(step, count - 2)) % count;
}

// A Poisson stream whose rate is that of the phases. All phases are equally frequent, also where
// the next one is any of the others, so that the mean rate is that of one round.
void AddPhases(const ArrivalSpec& spec, const ArrivalRequest& request, Random& random,
               Collector& out) {
  double round_ns = 0;
  double round_area = 0;
  for (const ArrivalPhase& phase : spec.phases) {
    const auto length = static_cast<double>(phase.duration_ns);
    round_ns += length;
    round_area += Area(phase, length);
  }
  const double gap = request.mean_gap_ns * round_area / round_ns;
  double phase_start = 0;
  double left_of_gap = gap * random.Exponential();  // area left until the next arrival
  size_t index = 0;
  while (true) {
    const ArrivalPhase& phase = spec.phases[index];
    double length = static_cast<double>(phase.duration_ns);
    if (spec.random_phases) length *= random.Exponential();
    const double area = Area(phase, length);
    double done = 0;
    while (done + left_of_gap < area) {
      done += left_of_gap;
      if (!out.Add(phase_start + TimeAtArea(phase, length, done))) return;
      left_of_gap = gap * random.Exponential();
    }
    left_of_gap -= area - done;
    phase_start += length;
    if (request.duration_ns > 0 && phase_start >= static_cast<double>(request.duration_ns)) return;
    index = NextPhase(spec, index, random);
  }
}

// Poisson batches of geometric size, each at one point in time. The bound cuts off less than 2e-7
// of the queries.
void AddBatches(const ArrivalSpec& spec, const ArrivalRequest& request, Random& random,
                Collector& out) {
  constexpr double kSizeOverMeanMax = 16;
  const double size_max = kSizeOverMeanMax * spec.batch_size;
  const double decay = -std::log1p(-1 / spec.batch_size);  // infinite at mean 1: all are single
  double time_ns = 0;
  while (true) {
    time_ns += request.mean_gap_ns * spec.batch_size * random.Exponential();
    const auto more = static_cast<int64_t>(std::min(random.Exponential() / decay, size_max - 1));
    for (int64_t i = 0; i <= more; ++i) {
      if (!out.Add(time_ns)) return;
    }
  }
}

// A job at the start, as all apps of a case have one, then gaps of a period or longer.
void AddSporadic(const ArrivalSpec& spec, Random& random, Collector& out) {
  const auto period = static_cast<double>(spec.period_ns);
  double time_ns = 0;
  while (out.Add(time_ns)) {
    // Rounded up: times are whole nanoseconds, and no gap may be shorter than the period.
    time_ns += period + std::ceil(period * spec.jitter * random.Uniform());
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
    case ArrivalKind::kSteps:
    case ArrivalKind::kAfterBe:
      break;
    case ArrivalKind::kExplicit:
    case ArrivalKind::kTrace:
      AddRecorded(spec, request, out);
      break;
    case ArrivalKind::kPhases:
      AddPhases(spec, request, random, out);
      break;
    case ArrivalKind::kSporadic:
      AddSporadic(spec, random, out);
      break;
    case ArrivalKind::kBatches:
      AddBatches(spec, request, random, out);
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
