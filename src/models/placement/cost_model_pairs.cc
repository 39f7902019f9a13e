// Pairs by the cost model; see cost_model_pairs.h.

#include "src/models/placement/cost_model_pairs.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "src/core/queueing/queue_tail.h"
#include "src/core/queueing/vacation.h"

namespace gpushare::models::placement {

namespace {

template <class Kind>
const Kind* Find(absl::Span<const Kind> kinds, absl::string_view name) {
  for (const Kind& kind : kinds) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

// As the flow asks: only kernels have block tasks.
core::TaskFeatures FeaturesOf(const core::KernelDesc& kernel, int64_t block_tasks) {
  core::TaskFeatures features;
  features.kernel = &kernel;
  features.kind = kernel.kind();
  features.block_tasks = features.kind == core::TaskKind::kKernel ? block_tasks : 0;
  return features;
}

double P99Of(double service_ns, double load) { return service_ns * core::P99OverService(load); }

}  // namespace

CostModelPairs::Solo CostModelPairs::Alone(const LcKind& lc, Times& times_ns) const {
  Solo out;
  double error_ns = 0;
  double longest_ns = 0;
  for (size_t i = 0; i < lc.query.size(); ++i) {
    const Launches& launches = lc.query[i];
    const core::Prediction one =
        durations_.PredictSolo(FeaturesOf(*launches.kernel, launches.block_tasks));
    const double ns = static_cast<double>(one.duration_ns) * launches.count;
    times_ns[i] = ns;
    out.ns += ns;
    error_ns += static_cast<double>(one.error_ns) * launches.count;
    if (ns < longest_ns) continue;
    longest_ns = ns;
    out.longest = launches.kernel;
  }
  out.error = out.ns > 0 ? error_ns / out.ns : 0;
  return out;
}

CostModelPairs::Delay CostModelPairs::DelayOf(const BeKind& be, double load, double solo_ns) const {
  if (be.kernel->evictable) {
    const core::Prediction blocking = durations_.PredictBlocking(*be.kernel);
    // Segments that are on the device when a query comes do their work while it waits.
    if (const core::SegmentBlocking* const known = be.kernel->known_blocking(); known != nullptr) {
      const double seen_ns = blocking.trained ? static_cast<double>(blocking.duration_ns) : 0;
      const double rate = core::PoissonTailRate(load, solo_ns);
      return {.shift_ns = static_cast<double>(known->ShiftNs(rate, seen_ns)),
              .error_ns = static_cast<double>(blocking.error_ns)};
    }
    const core::Prediction leaving = durations_.PredictEviction(*be.kernel);
    return {.shift_ns = static_cast<double>(blocking.duration_ns),
            .error_ns = static_cast<double>(blocking.error_ns),
            .lost_ns = static_cast<double>(leaving.duration_ns)};
  }
  const core::Prediction whole = durations_.PredictSolo(FeaturesOf(*be.kernel, be.block_tasks));
  const auto shift = [&](double ns) {
    const double rate = core::PoissonTailRate(load, solo_ns);
    // Without a tail that is known no p99 moves by more than the launch.
    return rate > 0 ? core::ShiftOfVacation(rate * ns) / rate : ns;
  };
  const auto ns = static_cast<double>(whole.duration_ns);
  return {.shift_ns = shift(ns),
          .error_ns = shift(ns + static_cast<double>(whole.error_ns)) - shift(ns)};
}

PairPrediction CostModelPairs::Whole(const Solo& solo, double load, const Delay& delay) const {
  const double p99_ns = P99Of(solo.ns, load);
  // Busy periods begin at the rate of arrivals that find no query.
  const double busy_periods_per_ns = load / solo.ns * (1 - load);
  const double lost = busy_periods_per_ns * delay.lost_ns;
  return {.p99_ratio = 1 + delay.shift_ns / p99_ns,
          .p99_error = delay.error_ns / p99_ns,
          .be_rate = std::clamp(1 - load - lost, 0.0, 1.0),
          .be_error = std::min(1.0, load * solo.error + busy_periods_per_ns * delay.error_ns)};
}

std::optional<PairPrediction> CostModelPairs::Split(const LcKind& lc, const Times& times_ns,
                                                    const BeKind& be, const Solo& solo, double load,
                                                    const Delay& delay,
                                                    const core::SplitView& split) const {
  const int32_t sms = split.lc_sms;
  const int32_t others = split.be_sms;
  if (sms < 1 || others < 1 || !be.kernel->confinable) return std::nullopt;
  double service_ns = 0;
  double slowest_ns = 0;  // with each factor an error bar lower
  for (size_t i = 0; i < lc.query.size(); ++i) {
    const core::KernelDesc& kernel = *lc.query[i].kernel;
    if (!kernel.confinable || !neighbours_.KnowsBeside(kernel, sms, *be.kernel))
      return std::nullopt;
    const double beside = neighbours_.SpeedBeside(kernel, sms, *be.kernel, others);
    const double error = neighbours_.ErrorBeside(kernel, sms, *be.kernel, others);
    const double on = durations_.SpeedOn(kernel, sms);
    if (!(on > 0) || !(beside - error > 0)) return std::nullopt;
    service_ns += times_ns[i] / (on * beside);
    slowest_ns += times_ns[i] / (on * (beside - error));
  }
  const double busy = load * service_ns / solo.ns;
  const double busiest = load * slowest_ns / solo.ns;
  if (busiest >= kPredictedLoadMax) return std::nullopt;
  const double alone_ns = P99Of(solo.ns, load);
  const double p99_ns = P99Of(service_ns, busy) + delay.shift_ns;
  const double worst_ns = P99Of(slowest_ns, busiest) + delay.shift_ns + delay.error_ns;
  const double beside = durations_.SpeedOn(*be.kernel, others) *
                        neighbours_.SpeedBeside(*be.kernel, others, *solo.longest, sms);
  const double error = neighbours_.ErrorBeside(*be.kernel, others, *solo.longest, sms);
  return PairPrediction{.p99_ratio = p99_ns / alone_ns,
                        .p99_error = (worst_ns - p99_ns) / alone_ns,
                        .be_rate = std::clamp(1 - busy + busy * beside, 0.0, 1.0),
                        .be_error = std::min(1.0, (busiest - busy) + busy * error)};
}

std::optional<PairPrediction> CostModelPairs::Beside(absl::string_view lc_kind, double load,
                                                     absl::string_view be_kind,
                                                     double p99_limit) const {
  const LcKind* const lc = Find(lc_, lc_kind);
  const BeKind* const be = Find(be_, be_kind);
  if (lc == nullptr || be == nullptr || load >= kPredictedLoadMax) return std::nullopt;
  Times times_ns(lc->query.size());
  const Solo solo = Alone(*lc, times_ns);
  if (!(solo.ns > 0)) return std::nullopt;
  const Delay delay = DelayOf(*be, load, solo.ns);
  PairPrediction best = Whole(solo, load, delay);
  const auto keeps = [&](const PairPrediction& one) {
    return one.p99_ratio + one.p99_error <= p99_limit;
  };
  for (const core::SplitView& split : splits_) {
    const std::optional<PairPrediction> one = Split(*lc, times_ns, *be, solo, load, delay, split);
    if (!one || !keeps(*one)) continue;
    if (!keeps(best) || one->be_rate > best.be_rate) best = *one;
  }
  return best;
}

}  // namespace gpushare::models::placement
