// OpenMetrics text; see open_metrics.h.
//
// The two tables below are the metrics: one row each, with kind, unit and help, in the order of the
// output. OpenMetrics asks that a family's samples stand together, that a counter's sample ends in
// _total, that a unit is the name's suffix, and that the text ends with "# EOF".

#include "src/core/log/open_metrics.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "src/core/log/names.h"

namespace gpushare::core {
namespace {

enum class Kind { kCounter, kGauge };

template <class Stats>
struct Metric {
  const char* name;
  Kind kind;
  const char* unit;  // "" or the suffix of the name
  const char* help;
  double (*value)(const Stats&);
};

// The base unit of OpenMetrics is the second.
double Seconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }
double Count(int64_t count) { return static_cast<double>(count); }
// A value that nobody knows has no sample: 0 would read as perfect.
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

const Metric<SchedulerStats> kSchedulerMetrics[] = {
    {"gpushare_ticks", Kind::kCounter, "", "Passes through the seven stages.",
     [](const SchedulerStats& s) { return Count(s.ticks); }},
    {"gpushare_plans", Kind::kCounter, "", "Plans made.",
     [](const SchedulerStats& s) { return Count(s.plans); }},
    {"gpushare_launches", Kind::kCounter, "", "Launches on the device.",
     [](const SchedulerStats& s) { return Count(s.launches); }},
    {"gpushare_fast_path_launches", Kind::kCounter, "",
     "LC launches made by their submitting thread.",
     [](const SchedulerStats& s) { return Count(s.fast_path_launches); }},
    {"gpushare_evictions", Kind::kCounter, "", "Evictions asked of the device.",
     [](const SchedulerStats& s) { return Count(s.evictions); }},
    {"gpushare_evictions_blocked", Kind::kCounter, "",
     "Evictions whose write took no effect in time.",
     [](const SchedulerStats& s) { return Count(s.evictions_blocked); }},
    {"gpushare_hung", Kind::kCounter, "", "Launches given up because they never completed.",
     [](const SchedulerStats& s) { return Count(s.hung); }},
    {"gpushare_plan_entries_dropped", Kind::kCounter, "",
     "Entries of plans that asked for what cannot be done.",
     [](const SchedulerStats& s) { return Count(s.plan_entries_dropped); }},
    {"gpushare_predictions_refused", Kind::kCounter, "",
     "Answers of the caller's own cost model that were not used.",
     [](const SchedulerStats& s) { return Count(s.predictions_refused); }},
    {"gpushare_busy_sm_seconds", Kind::kCounter, "seconds",
     "Time that SMs were busy, over all SMs.",
     [](const SchedulerStats& s) { return Seconds(s.busy_sm_ns); }},
    {"gpushare_prediction_samples", Kind::kCounter, "",
     "Solo tasks whose prediction was compared with a measurement.",
     [](const SchedulerStats& s) { return Count(s.prediction_samples); }},
    {"gpushare_prediction_error_ratio", Kind::kGauge, "ratio",
     "Mean absolute relative error of solo predictions.",
     [](const SchedulerStats& s) { return s.prediction_error; }},
    {"gpushare_tasks_pending", Kind::kGauge, "", "Accepted tasks that are not complete.",
     [](const SchedulerStats& s) { return Count(s.tasks_pending); }},
    {"gpushare_device_lost", Kind::kGauge, "", "1 after the device was lost, else 0.",
     [](const SchedulerStats& s) { return s.device_lost ? 1.0 : 0.0; }},
};

const Metric<AppStats> kAppMetrics[] = {
    {"gpushare_app_submitted", Kind::kCounter, "", "Tasks accepted at submit.",
     [](const AppStats& a) { return Count(a.submitted); }},
    {"gpushare_app_completed", Kind::kCounter, "", "Tasks that completed.",
     [](const AppStats& a) { return Count(a.completed); }},
    {"gpushare_app_failed", Kind::kCounter, "", "Tasks that failed.",
     [](const AppStats& a) { return Count(a.failed); }},
    {"gpushare_app_dropped", Kind::kCounter, "", "Tasks dropped because they were late.",
     [](const AppStats& a) { return Count(a.dropped); }},
    {"gpushare_app_cancelled", Kind::kCounter, "", "Tasks cancelled.",
     [](const AppStats& a) { return Count(a.cancelled); }},
    {"gpushare_app_rejected", Kind::kCounter, "", "Tasks refused at submit.",
     [](const AppStats& a) { return Count(a.rejected); }},
    {"gpushare_app_evictions", Kind::kCounter, "", "Evictions of the app's tasks.",
     [](const AppStats& a) { return Count(a.evictions); }},
    {"gpushare_app_queue_depth", Kind::kGauge, "", "Tasks accepted and not complete.",
     [](const AppStats& a) { return Count(a.queue_depth); }},
    {"gpushare_app_queries_open", Kind::kGauge, "", "Queries begun and not done.",
     [](const AppStats& a) { return Count(a.queries_open); }},
    {"gpushare_app_queries_idle", Kind::kGauge, "",
     "Open queries without work for longer than the app's idle timeout.",
     [](const AppStats& a) { return Count(a.queries_idle); }},
    {"gpushare_app_regions_open", Kind::kGauge, "", "Regions begun and not complete.",
     [](const AppStats& a) { return Count(a.regions_open); }},
    {"gpushare_app_regions_overdue", Kind::kGauge, "",
     "Open regions that are over the app's idle timeout and many times their bound.",
     [](const AppStats& a) { return Count(a.regions_overdue); }},
    {"gpushare_app_device_seconds", Kind::kCounter, "seconds",
     "Time of the app's tasks on the device.",
     [](const AppStats& a) { return Seconds(a.device_ns); }},
    {"gpushare_app_work_seconds", Kind::kCounter, "seconds",
     "Predicted whole-device time of what the app completed.",
     [](const AppStats& a) { return Seconds(a.work_ns); }},
};

const Metric<AppGuarantee> kLcGuaranteeMetrics[] = {
    {"gpushare_app_recent_p50_seconds", Kind::kGauge, "seconds", "Median of the last queries.",
     [](const AppGuarantee& g) { return Seconds(g.p50_ns); }},
    {"gpushare_app_recent_p99_seconds", Kind::kGauge, "seconds", "p99 of the last queries.",
     [](const AppGuarantee& g) { return Seconds(g.p99_ns); }},
    {"gpushare_app_recent_p99_over_alone", Kind::kGauge, "",
     "p99 of the last queries over p99 alone; no sample: unknown.",
     [](const AppGuarantee& g) { return g.p99_over_alone.value_or(kUnknown); }},
    {"gpushare_app_recent_p50_over_solo", Kind::kGauge, "",
     "Median of the last queries over one query on an idle device; 0: unknown.",
     [](const AppGuarantee& g) { return g.p50_over_solo; }},
    {"gpushare_app_p99_bound", Kind::kGauge, "", "Bound on p99 over p99 alone; 0: none.",
     [](const AppGuarantee& g) { return g.promise.p99_bound; }},
    {"gpushare_app_p50_bound", Kind::kGauge, "", "Bound on the median over that alone; 0: none.",
     [](const AppGuarantee& g) { return g.promise.p50_bound; }},
    {"gpushare_app_target_seconds", Kind::kGauge, "seconds", "Latency target; 0: none.",
     [](const AppGuarantee& g) { return Seconds(g.promise.target_ns); }},
    {"gpushare_app_recent_late_ratio", Kind::kGauge, "ratio",
     "Share of the last queries above the target or the bound; no sample: unknown.",
     [](const AppGuarantee& g) { return g.late_share.value_or(kUnknown); }},
    {"gpushare_app_tail_credit", Kind::kGauge, "", "Queries that BE work may still make late.",
     [](const AppGuarantee& g) { return g.tail_credit; }},
    {"gpushare_app_queries_late_for_be", Kind::kCounter, "",
     "Late queries that met BE work on credit.",
     [](const AppGuarantee& g) { return Count(g.queries_late_for_be); }},
    {"gpushare_app_lag_seconds", Kind::kGauge, "seconds",
     "How far the app is behind the queue that it would have alone.",
     [](const AppGuarantee& g) { return Seconds(g.lag_ns); }},
    {"gpushare_app_shadow_p99_seconds", Kind::kGauge, "seconds",
     "p99 of the last queries in the queue that the app would have alone; 0: none ended.",
     [](const AppGuarantee& g) { return Seconds(g.shadow_p99_ns); }},
    {"gpushare_app_shadow_p99_error_ratio", Kind::kGauge, "ratio",
     "Standard error of that p99, as a share of it.",
     [](const AppGuarantee& g) { return g.shadow_p99_error; }},
    {"gpushare_app_bound_lost", Kind::kGauge, "",
     "1 while the app misses its p99 bound even alone on the device, else 0.",
     [](const AppGuarantee& g) { return g.bound_lost ? 1.0 : 0.0; }},
    {"gpushare_app_target_lost", Kind::kGauge, "",
     "1 while the app misses its target even alone on the device, else 0.",
     [](const AppGuarantee& g) { return g.target_lost ? 1.0 : 0.0; }},
    {"gpushare_app_queries_late_not_alone", Kind::kCounter, "",
     "Late queries that would not be late in the queue that the app would have alone.",
     [](const AppGuarantee& g) { return Count(g.queries_late_not_alone); }},
    {"gpushare_app_next_lapsed", Kind::kCounter, "",
     "Statements of a next query whose time passed without one.",
     [](const AppGuarantee& g) { return Count(g.next_lapsed); }},
    {"gpushare_app_token_streams", Kind::kGauge, "", "Open token streams.",
     [](const AppGuarantee& g) { return Count(g.token_streams); }},
    {"gpushare_app_recent_ttft_p99_seconds", Kind::kGauge, "seconds",
     "p99 from an arrival to its first token; no sample: no stream got one.",
     [](const AppGuarantee& g) { return g.first_tokens > 0 ? Seconds(g.ttft_p99_ns) : kUnknown; }},
    {"gpushare_app_recent_tbt_p99_seconds", Kind::kGauge, "seconds",
     "p99 between two tokens of a stream; no sample: no stream got two.",
     [](const AppGuarantee& g) {
       return g.token_distances > 0 ? Seconds(g.tbt_p99_ns) : kUnknown;
     }},
};

// Backslash, quote and line feed are escaped in label values and help texts alike; bytes that are
// no printable text would break readers and become '?'.
std::string Escape(absl::string_view text) {
  std::string escaped;
  for (char c : text) {
    if (c == '\\' || c == '"') {
      escaped += '\\';
      escaped += c;
    } else if (c == '\n') {
      escaped += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      escaped += '?';
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string Label(absl::string_view name, absl::string_view value) {
  return absl::StrCat(name, "=\"", Escape(value), "\"");
}

// The fewest digits that carry a double exactly, with a point in every locale; counts stay free of
// an exponent up to 2^53.
std::string Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  if (value == std::floor(value) && std::abs(value) < 9.0e15) {
    return absl::StrCat(static_cast<int64_t>(value));
  }
  std::array<char, 32> text{};
  const std::to_chars_result end = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end.ptr};
}

void AddFamily(std::string& out, absl::string_view name, absl::string_view type,
               absl::string_view unit, absl::string_view help) {
  absl::StrAppend(&out, "# TYPE ", name, " ", type, "\n");
  if (!unit.empty()) absl::StrAppend(&out, "# UNIT ", name, " ", unit, "\n");
  absl::StrAppend(&out, "# HELP ", name, " ", Escape(help), "\n");
}

void AddSample(std::string& out, absl::string_view name, absl::string_view labels, double value) {
  absl::StrAppend(&out, name, "{", labels, "} ", Number(value), "\n");
}

template <class Stats>
void AddHeader(std::string& out, const Metric<Stats>& metric) {
  const bool counter = metric.kind == Kind::kCounter;
  AddFamily(out, metric.name, counter ? "counter" : "gauge", metric.unit, metric.help);
}

template <class Stats>
void AddValue(std::string& out, const Metric<Stats>& metric, absl::string_view labels,
              const Stats& stats) {
  const bool counter = metric.kind == Kind::kCounter;
  AddSample(out, absl::StrCat(metric.name, counter ? "_total" : ""), labels, metric.value(stats));
}

// Quantiles without their sum are no OpenMetrics summary; they are gauges with a label of their
// own.
void AddQuantiles(std::string& out, absl::string_view name, absl::string_view labels,
                  const LatencySummary& latency) {
  AddSample(out, name, absl::StrCat(labels, ",", Label("at", "p50")), Seconds(latency.p50_ns));
  AddSample(out, name, absl::StrCat(labels, ",", Label("at", "p99")), Seconds(latency.p99_ns));
  AddSample(out, name, absl::StrCat(labels, ",", Label("at", "max")), Seconds(latency.max_ns));
}

void AddLatency(std::string& out, absl::string_view name, absl::string_view help,
                absl::string_view labels, const LatencySummary& latency) {
  AddFamily(out, name, "gauge", "seconds", help);
  AddQuantiles(out, name, labels, latency);
}

std::string AppLabels(const AppStats& app, absl::string_view stamp) {
  const bool critical = app.app_class == AppClass::kLatencyCritical;
  return absl::StrCat(stamp, ",", Label("app", app.name), ",",
                      Label("app_id", absl::StrCat(app.app.value)), ",",
                      Label("class", critical ? "LC" : "BE"));
}

// `guarantees` are those of `apps`.
void AddGuarantees(std::string& out, const MetricsSource& source, absl::string_view stamp) {
  const size_t count = std::min(source.apps.size(), source.guarantees.size());
  for (const Metric<AppGuarantee>& metric : kLcGuaranteeMetrics) {
    AddHeader(out, metric);
    for (size_t i = 0; i < count; ++i) {
      const AppGuarantee& guarantee = source.guarantees[i];
      if (guarantee.app_class != AppClass::kLatencyCritical) continue;
      if (std::isnan(metric.value(guarantee))) continue;
      AddValue(out, metric, AppLabels(source.apps[i], stamp), guarantee);
    }
  }
  const char* kHeld = "gpushare_app_held_seconds";
  AddFamily(out, kHeld, "counter", "seconds", "Time that the app's queue heads were held.");
  for (size_t i = 0; i < count; ++i) {
    for (size_t row = 0; row < source.guarantees[i].held_ns.size(); ++row) {
      const int64_t held_ns = source.guarantees[i].held_ns[row];
      if (held_ns <= 0) continue;
      const auto reason = static_cast<Reason>(static_cast<size_t>(Reason::kHoldHeadroom) + row);
      AddSample(out, absl::StrCat(kHeld, "_total"),
                absl::StrCat(AppLabels(source.apps[i], stamp), ",",
                             Label("reason", ReasonName(static_cast<int64_t>(reason)))),
                Seconds(held_ns));
    }
  }
}

}  // namespace

std::string FormatOpenMetrics(const MetricsSource& source) {
  // Simulated numbers must never be taken for measured ones, so each sample says what it is.
  const std::string stamp = Label("simulated", source.simulated ? "true" : "false");
  std::string out;
  AddFamily(out, "gpushare", "info", "", "The device, the policy, and whether time is simulated.");
  AddSample(out, "gpushare_info",
            absl::StrCat(stamp, ",", Label("device", source.device_name), ",",
                         Label("policy", source.policy_name)),
            1);
  for (const Metric<SchedulerStats>& metric : kSchedulerMetrics) {
    AddHeader(out, metric);
    AddValue(out, metric, stamp, source.scheduler);
  }
  AddLatency(out, "gpushare_eviction_latency_seconds",
             "Time from an eviction until the last worker left.", stamp,
             source.scheduler.eviction_latency);
  AddLatency(out, "gpushare_plan_time_seconds", "Host time of the plan stage.", stamp,
             source.scheduler.plan_time);
  if (!source.apps.empty()) {
    for (const Metric<AppStats>& metric : kAppMetrics) {
      AddHeader(out, metric);
      for (const AppStats& app : source.apps) {
        AddValue(out, metric, AppLabels(app, stamp), app);
      }
    }
    const char* kLatency = "gpushare_app_latency_seconds";
    AddFamily(out, kLatency, "gauge", "seconds", "From submit, or a query's arrival, to complete.");
    for (const AppStats& app : source.apps) {
      AddQuantiles(out, kLatency, AppLabels(app, stamp), app.latency);
    }
    if (!source.guarantees.empty()) AddGuarantees(out, source, stamp);
  }
  absl::StrAppend(&out, "# EOF\n");
  return out;
}

}  // namespace gpushare::core
