#include "tools/gpushare/run/metrics.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace gpushare::tool {

int64_t Quantile(const std::vector<int64_t>& sorted, double fraction) {
  if (sorted.empty()) return 0;
  const auto count = static_cast<double>(sorted.size());
  // 0.99 x 100 is 99.00000000000001 in binary. Without the slack the rank would be one too high.
  const double rank = std::ceil(fraction * count - 1e-9);
  const double clamped = std::min(std::max(rank, 1.0), count);
  return sorted[static_cast<size_t>(clamped) - 1];
}

double Mean(const std::vector<int64_t>& samples) {
  if (samples.empty()) return 0;
  double sum = 0;
  for (const int64_t sample : samples) sum += static_cast<double>(sample);
  return sum / static_cast<double>(samples.size());
}

void SortLongestFirst(std::vector<HeldTime>& held) {
  std::stable_sort(held.begin(), held.end(),
                   [](const HeldTime& a, const HeldTime& b) { return a.time_ns > b.time_ns; });
}

std::vector<CurvePoint> PercentileCurve(const std::vector<int64_t>& sorted) {
  std::vector<CurvePoint> curve;
  if (sorted.empty()) return curve;
  // 1 - fraction falls by a constant factor, so that points are evenly spaced on a log axis.
  constexpr int kPointsPerDecade = 16;
  const double last_tail = 1.0 / static_cast<double>(sorted.size());
  curve.push_back({0, sorted.front()});
  for (int i = 1;; ++i) {
    const double tail = std::pow(10.0, -static_cast<double>(i) / kPointsPerDecade);
    if (tail < last_tail) break;
    curve.push_back({1 - tail, Quantile(sorted, 1 - tail)});
  }
  curve.push_back({1 - last_tail, sorted.back()});
  return curve;
}

LcResult SummariseLatencies(const std::string& app, std::vector<int64_t> samples) {
  std::sort(samples.begin(), samples.end());
  LcResult result;
  result.app = app;
  result.queries = static_cast<int64_t>(samples.size());
  result.p50_ns = Quantile(samples, 0.50);
  result.p90_ns = Quantile(samples, 0.90);
  result.p95_ns = Quantile(samples, 0.95);
  result.p99_ns = Quantile(samples, 0.99);
  result.p999_ns = Quantile(samples, 0.999);
  result.max_ns = samples.empty() ? 0 : samples.back();
  result.mean_ns = Mean(samples);
  result.curve = PercentileCurve(samples);
  return result;
}

void CompareWithAlone(const LcResult& alone, const std::vector<int64_t>& samples, double p99_bound,
                      int64_t target_ns, LcResult& result) {
  const auto ratio = [](double value, double of) { return of > 0 ? value / of : 0; };
  result.p50_over_alone =
      ratio(static_cast<double>(result.p50_ns), static_cast<double>(alone.p50_ns));
  result.p99_over_alone =
      ratio(static_cast<double>(result.p99_ns), static_cast<double>(alone.p99_ns));
  result.mean_over_alone = ratio(result.mean_ns, alone.mean_ns);
  result.p99_bound = p99_bound;
  if (p99_bound > 0) {
    result.qos_ns = std::llround(p99_bound * static_cast<double>(alone.p99_ns));
  } else {
    result.qos_ns = target_ns;
  }
  if (result.qos_ns == 0) return;
  for (const int64_t sample : samples) result.violations += sample > result.qos_ns;
  result.violation_share =
      ratio(static_cast<double>(result.violations), static_cast<double>(samples.size()));
  result.qos_met = result.p99_ns <= result.qos_ns;
}

double OverlapShare(int64_t from_ns, int64_t to_ns, int64_t begin_ns, int64_t end_ns) {
  if (to_ns <= from_ns) return to_ns >= begin_ns && to_ns <= end_ns ? 1 : 0;
  const int64_t inside = std::min(to_ns, end_ns) - std::max(from_ns, begin_ns);
  if (inside <= 0) return 0;
  return static_cast<double>(inside) / static_cast<double>(to_ns - from_ns);
}

void FillThroughput(RunResult& run) {
  run.be_rate_of_solo = 0;
  run.stp = 0;
  double turnaround_sum = 0;
  for (const LcResult& app : run.lc) {
    const double turnaround = app.mean_over_alone > 0 ? app.mean_over_alone : 1;
    turnaround_sum += turnaround;
    run.stp += 1 / turnaround;
  }
  for (const BeResult& app : run.be) {
    run.be_rate_of_solo += app.rate_of_solo;
    run.stp += app.rate_of_solo;
    turnaround_sum += app.rate_of_solo > 1 / kNttMax ? 1 / app.rate_of_solo : kNttMax;
  }
  const size_t apps = run.lc.size() + run.be.size();
  run.antt = apps == 0 ? 0 : turnaround_sum / static_cast<double>(apps);
  run.work_rate = run.realised_load + run.be_rate_of_solo;
}

double TimeSharingLimit(const RunResult& run) { return std::max(0.0, 1 - run.realised_load); }

double Rounded(double value) {
  if (!std::isfinite(value)) return 0;
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return std::strtod(text, nullptr);
}

}  // namespace gpushare::tool
