// Random task sets through the planner; see evaluate_planner.h.

#include "tools/gpushare/plan/evaluate_planner.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/progress.h"
#include "tools/gpushare/base/text.h"
#include "tools/gpushare/colocate/parallel.h"

namespace gpushare::tool {

namespace {

using models::partition::Analysis;
using models::partition::EvaluationOptions;
using models::partition::kWays;
using models::partition::PointResult;
using models::partition::SerialShare;
using models::partition::WayResult;
using Json = nlohmann::ordered_json;

double Rounded(double value, double units) { return std::round(value * units) / units; }

double Rate(int count, int sets) {
  return sets == 0 ? 0 : static_cast<double>(count) / static_cast<double>(sets);
}

Json JsonOf(const PointResult& point) {
  Json schedulable = Json::object();
  Json lost = Json::object();
  Json ms = Json::object();
  Json ms_max = Json::object();
  for (size_t way = 0; way < kWays.size(); ++way) {
    const WayResult& result = point.ways[way];
    schedulable[kWays[way]] = Rounded(Rate(result.schedulable, point.sets), 1e4);
    lost[kWays[way]] = result.lost_to_one;
    ms[kWays[way]] = Rounded(result.ms, 1e3);
    ms_max[kWays[way]] = Rounded(result.ms_max, 1e3);
  }
  Json out = {{"utilisation", point.utilisation},
              {"sets", point.sets},
              {"schedulable", schedulable},
              {"lost_to_1G", lost},
              {"analysis_ms", ms},
              {"analysis_ms_max", ms_max},
              {"prefill_ms", Rounded(point.prefill_ms, 1e3)}};
  if (point.exact < 0) return out;
  out["schedulable"]["exact"] = Rounded(Rate(point.exact, point.sets), 1e4);
  for (size_t way = 1; way < kWays.size(); ++way) {
    out["extra_sms"][kWays[way]] = Rounded(point.ways[way].extra_sms, 1e3);
  }
  return out;
}

}  // namespace

PlannerEvaluation EvaluatePlanner(EvaluatePlannerRequest request) {
  const int32_t sms = request.options.generator.sms;
  if (request.utilisations.empty()) {
    for (int u = 2; u <= sms; u += 2) request.utilisations.push_back(u);
  }
  for (const double u : request.utilisations) {
    if (!(u > 0) || u > sms) {
      throw InputError(
          Format("--utilisation has %g, and it must be above 0 and at most the %d SMs.", u,
                 static_cast<int>(sms)));
    }
  }
  PlannerEvaluation out = {request, std::vector<PointResult>(request.utilisations.size())};
  Progress progress(request.utilisations.size(), request.quiet);
  std::atomic<bool> stop = false;
  // The points of a high utilisation take longest, so they start first.
  const size_t last = out.points.size() - 1;
  RunParallel(out.points.size(), std::max(1U, std::thread::hardware_concurrency()), stop,
              [&](size_t job) {
                const size_t i = last - job;
                EvaluationOptions options = request.options;
                options.generator.utilisation = request.utilisations[i];
                out.points[i] = models::partition::EvaluatePoint(options);
                progress.Step(Format("utilisation %g", request.utilisations[i]));
              });
  return out;
}

std::vector<double> UtilisationsOf(const std::string& text) {
  std::vector<double> out;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    double value = 0;
    const auto [rest, error] = std::from_chars(at, end, value);
    if (error != std::errc() || (rest != end && (*rest != ',' || rest + 1 == end))) {
      throw InputError(
          Format("--utilisation is '%.60s', and it must be numbers with commas "
                 "between them, as in 20,34,40.",
                 text.c_str()));
    }
    out.push_back(value);
    at = rest == end ? end : rest + 1;
  }
  return out;
}

Analysis AnalysisOf(const std::string& option, const std::string& text) {
  for (const Analysis one : {Analysis::kConcurrent, Analysis::kExclusive, Analysis::kEvictable}) {
    if (text == NameOf(one)) return one;
  }
  throw InputError(option + " is '" + text.substr(0, 60) +
                   "', and it must be one of concurrent, exclusive, evictable.");
}

const char* NameOf(Analysis analysis) {
  switch (analysis) {
    case Analysis::kConcurrent:
      return "concurrent";
    case Analysis::kExclusive:
      return "exclusive";
    case Analysis::kEvictable:
      break;
  }
  return "evictable";
}

std::string TextOf(const PlannerEvaluation& evaluation) {
  std::string out = Format("%-12s", "utilisation");
  for (const char* way : kWays) out += Format(" %9s", way);
  for (const char* way : kWays) out += Format(" %12s", (std::string(way) + " ms").c_str());
  out += Format(" %11s\n", "pre-fill ms");
  for (const PointResult& point : evaluation.points) {
    out += Format("%-12g", point.utilisation);
    for (const WayResult& way : point.ways)
      out += Format(" %9.2f", Rate(way.schedulable, point.sets));
    for (const WayResult& way : point.ways) out += Format(" %12.3f", way.ms);
    out += Format(" %11.3f\n", point.prefill_ms);
  }
  return out;
}

std::string JsonOf(const PlannerEvaluation& evaluation) {
  const EvaluationOptions& options = evaluation.request.options;
  Json out = {{"schema_version", 1},
              {"tasks", options.generator.tasks},
              {"sms", options.generator.sms},
              {"granularity", options.generator.grain},
              {"serial_share",
               options.generator.serial_share == SerialShare::kPerSm ? "per-sm" : "printed"},
              {"analysis", NameOf(options.analysis)},
              {"eviction_share", options.generator.eviction_share},
              {"sets", options.sets},
              {"seed", options.seed},
              {"points", Json::array()}};
  for (const PointResult& point : evaluation.points) out["points"].push_back(JsonOf(point));
  return out.dump(2) + "\n";
}

}  // namespace gpushare::tool
