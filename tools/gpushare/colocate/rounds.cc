#include "tools/gpushare/colocate/rounds.h"

#include <algorithm>

#include "tools/gpushare/base/random.h"

namespace gpushare::tool {

namespace {

double Weighted(double a, double weight_a, double b, double weight_b) {
  const double weight = weight_a + weight_b;
  return weight > 0 ? (a * weight_a + b * weight_b) / weight : 0;
}

int64_t SpanOf(const std::vector<LcPlan>& plans) {
  int64_t span_ns = 0;
  for (const LcPlan& plan : plans) {
    if (!plan.arrivals_ns.empty()) span_ns = std::max(span_ns, plan.arrivals_ns.back() + 1);
  }
  return span_ns;
}

void PoolStats(const gpushare_runtime_stats& round, gpushare_runtime_stats& pooled) {
  const auto samples = static_cast<double>(pooled.prediction_samples);
  pooled.prediction_error = Weighted(pooled.prediction_error, samples, round.prediction_error,
                                     static_cast<double>(round.prediction_samples));
  pooled.prediction_samples += round.prediction_samples;
  gpushare_latency_summary& eviction = pooled.eviction_latency;
  eviction.p50_ns = static_cast<int64_t>(
      Weighted(static_cast<double>(eviction.p50_ns), static_cast<double>(eviction.count),
               static_cast<double>(round.eviction_latency.p50_ns),
               static_cast<double>(round.eviction_latency.count)));
  eviction.count += round.eviction_latency.count;
  eviction.p99_ns = std::max(eviction.p99_ns, round.eviction_latency.p99_ns);
  eviction.max_ns = std::max(eviction.max_ns, round.eviction_latency.max_ns);
  pooled.evictions += round.evictions;
  pooled.evictions_blocked += round.evictions_blocked;
  pooled.launches += round.launches;
  pooled.fast_path_launches += round.fast_path_launches;
}

// Times and counts add up; each round has a runtime, and so a tail account, of its own.
void PoolGuarantee(const gpushare_app_guarantee& round, gpushare_app_guarantee& pooled) {
  pooled.tail_credit = round.tail_credit;
  pooled.queries_late_for_be += round.queries_late_for_be;
  for (int i = 0; i < GPUSHARE_HOLD_REASONS; ++i) pooled.held_ns[i] += round.held_ns[i];
  // The bound of any round is that of all: the same plan was made.
  pooled.response_ns_max = std::max(pooled.response_ns_max, round.response_ns_max);
  pooled.jobs += round.jobs;
  pooled.deadlines_missed += round.deadlines_missed;
  pooled.overruns += round.overruns;
}

}  // namespace

std::vector<LcPlan> RoundOf(const std::vector<LcPlan>& plans, int round, int rounds) {
  const int64_t span_ns = SpanOf(plans);
  const auto edge = [&](int index) {
    return static_cast<int64_t>(static_cast<double>(span_ns) * index / rounds);
  };
  const int64_t from_ns = edge(round);
  const int64_t to_ns = round + 1 == rounds ? span_ns : edge(round + 1);
  std::vector<LcPlan> parts = plans;
  for (LcPlan& part : parts) {
    part.closed_queries =
        part.closed_queries * (round + 1) / rounds - part.closed_queries * round / rounds;
    part.think_seed = MixSeed(part.think_seed, static_cast<uint64_t>(round));
    std::vector<int64_t> arrivals_ns;
    for (const int64_t arrival_ns : part.arrivals_ns) {
      if (arrival_ns >= from_ns && arrival_ns < to_ns) arrivals_ns.push_back(arrival_ns - from_ns);
    }
    part.arrivals_ns = std::move(arrivals_ns);
  }
  return parts;
}

std::vector<LcPlan> Beginning(const std::vector<LcPlan>& plans, int64_t span_ns,
                              int64_t queries_max) {
  std::vector<LcPlan> parts = plans;
  for (LcPlan& part : parts) {
    part.closed_queries = std::min(part.closed_queries, queries_max);
    std::vector<int64_t>& arrivals_ns = part.arrivals_ns;
    const auto end = std::lower_bound(arrivals_ns.begin(), arrivals_ns.end(), span_ns);
    const auto keep = std::max<size_t>(1, static_cast<size_t>(end - arrivals_ns.begin()));
    if (arrivals_ns.size() > keep) arrivals_ns.resize(keep);
  }
  return parts;
}

void Pool(const RunOutcome& round, RunOutcome& pooled) {
  if (pooled.span_ns == 0) {
    pooled = round;
    return;
  }
  const auto span = static_cast<double>(pooled.span_ns);
  const auto more = static_cast<double>(round.span_ns);
  for (size_t i = 0; i < pooled.lc.size(); ++i) {
    std::vector<int64_t>& samples = pooled.lc[i].latencies_ns;
    samples.insert(samples.end(), round.lc[i].latencies_ns.begin(), round.lc[i].latencies_ns.end());
    pooled.lc[i].unanswered += round.lc[i].unanswered;
    PoolGuarantee(round.lc[i].guarantee, pooled.lc[i].guarantee);
  }
  for (size_t i = 0; i < pooled.be.size(); ++i) {
    BeWork& work = pooled.be[i];
    work.work_per_second = Weighted(work.work_per_second, span, round.be[i].work_per_second, more);
    work.tasks += round.be[i].tasks;
    work.evictions += round.be[i].evictions;
    PoolGuarantee(round.be[i].guarantee, work.guarantee);
  }
  pooled.utilisation = Weighted(pooled.utilisation, span, round.utilisation, more);
  pooled.realised_load = Weighted(pooled.realised_load, span, round.realised_load, more);
  pooled.verified = pooled.verified && round.verified;
  pooled.unstable = pooled.unstable || round.unstable;
  PoolStats(round.stats, pooled.stats);
  pooled.span_ns += round.span_ns;
}

}  // namespace gpushare::tool
