// The numbers of one run, and their computation from samples.
//
// Pure functions. Quantiles are exact, from all samples. ANTT and STP follow SMGuard, equations 9
// and 10.

#ifndef GPUSHARE_TOOLS_GPUSHARE_RUN_METRICS_H_
#define GPUSHARE_TOOLS_GPUSHARE_RUN_METRICS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace gpushare::tool {

// Quantile by nearest rank: the smallest sample that at least `fraction` of the samples do not
// exceed. 0 without samples. `sorted` is ascending.
int64_t Quantile(const std::vector<int64_t>& sorted, double fraction);
double Mean(const std::vector<int64_t>& samples);

struct CurvePoint {
  double fraction = 0;  // of the queries
  int64_t latency_ns = 0;
};

// Points for a latency percentile curve, denser towards the tail.
std::vector<CurvePoint> PercentileCurve(const std::vector<int64_t>& sorted);

// What became of a periodic app's jobs in its partition (gpushare_app_guarantee).
struct PartitionResult {
  int32_t sms = 0;  // 0: it has none
  int64_t response_bound_ns = 0;
  int64_t response_ns_max = 0;
  int64_t jobs = 0;  // that ended
  int64_t deadlines_missed = 0;
  int64_t overruns = 0;
};

struct LcResult {
  std::string app;
  int64_t queries = 0;
  int64_t unanswered = 0;  // queries without an answer when a row without the library was given up
  int64_t p50_ns = 0;
  int64_t p90_ns = 0;
  int64_t p95_ns = 0;
  int64_t p99_ns = 0;
  int64_t p999_ns = 0;
  int64_t max_ns = 0;
  double mean_ns = 0;
  double p50_over_alone = 0;
  double p99_over_alone = 0;
  double mean_over_alone = 0;  // normalised turnaround time (NTT)
  int64_t solo_ns = 0;
  double p99_bound = 0;    // as the scenario says; 0: none
  int64_t qos_ns = 0;      // QoS line: the latency that a query must not exceed; 0: none
  int64_t violations = 0;  // queries above the QoS line
  double violation_share = 0;
  bool qos_met = true;     // p99 is not above the line
  int64_t target_ns = 0;   // absolute target that the policy was given; 0: none
  double p50_bound = 0;    // given to the library; 0: none
  double tail_credit = 0;  // queries that BE work may still make late, at the end
  int64_t queries_late_for_be = 0;
  PartitionResult partition;
  std::vector<CurvePoint> curve;  // for the report, not in result.json
};

// For how long an app's queue heads were held for one reason.
struct HeldTime {
  int32_t reason = 0;  // gpushare_reason
  int64_t time_ns = 0;
};

struct BeResult {
  std::string app;
  double rate_of_solo = 0;
  double work_per_second = 0;  // block tasks, bytes or graph launches
  int64_t tasks = 0;           // completed
  int64_t evictions = 0;
  std::vector<HeldTime> held = {};  // over the span, the longest first
};

struct EvictionResult {
  int64_t count = 0;
  int64_t p50_ns = 0;
  int64_t p99_ns = 0;
};

struct RunResult {
  std::string case_name;
  std::string policy;
  double load = 0;           // as the scenario says
  double realised_load = 0;  // of the arrivals that were drawn
  std::vector<LcResult> lc;
  std::vector<BeResult> be;
  double be_rate_of_solo = 0;  // sum over BE apps
  double stp = 0;
  double antt = 0;
  double work_rate = 0;  // realised load plus be_rate_of_solo; time sharing reaches at most 1
  double utilisation = 0;
  double prediction_error = 0;
  int64_t prediction_samples = 0;
  EvictionResult evictions;
  int64_t evictions_blocked = 0;
  int64_t launches = 0;
  int64_t fast_path_launches = 0;
  int64_t span_ns = 0;    // start to last arrival: the time over which BE and utilisation count
  bool verified = false;  // the results of every app were checked and are right
  bool unstable = false;  // a row without the library whose LC queue kept growing in a round
  std::string events;     // file in the output folder, empty: none
  std::string decision_digest;
  int64_t events_dropped = 0;
};

// Times of the same length stay in their order.
void SortLongestFirst(std::vector<HeldTime>& held);

// Latency numbers of one app. `samples` are latencies in any order. CompareWithAlone fills the
// fields that compare with LC alone.
LcResult SummariseLatencies(const std::string& app, std::vector<int64_t> samples);

// Fills the ratios, the QoS line and the violations. `alone` is the app in the `lc_alone`
// reference; `samples` are this run's latencies. The QoS line is p99_bound x p99 alone. Without a
// bound it is the absolute target; without either there is none.
void CompareWithAlone(const LcResult& alone, const std::vector<int64_t>& samples, double p99_bound,
                      int64_t target_ns, LcResult& result);

// The share of [from_ns, to_ns] that lies in [begin_ns, end_ns], 0 to 1. For an empty span: 1 if it
// lies inside, else 0.
double OverlapShare(int64_t from_ns, int64_t to_ns, int64_t begin_ns, int64_t end_ns);

// Fills be_rate_of_solo, antt, stp and work_rate from lc and be. SMGuard eq. 9: ANTT is the mean of
// T_co / T_alone; eq. 10: STP is the sum of T_alone / T_co. T of an LC app is its mean latency, of
// a BE app the time per unit of work, so T_alone / T_co is its rate of solo. A BE app that did
// nothing would make ANTT infinite: it counts as kNttMax.
inline constexpr double kNttMax = 1e6;
void FillThroughput(RunResult& run);

// The BE rate that time sharing leaves: 1 - realised load, at least 0.
double TimeSharingLimit(const RunResult& run);

// Rounds for result.json: nine significant digits, so that the text is short and stable.
double Rounded(double value);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_RUN_METRICS_H_
