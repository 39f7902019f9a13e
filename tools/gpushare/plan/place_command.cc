// Placements and their texts; see place_command.h.

#include "tools/gpushare/plan/place_command.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/models/placement/cluster_file.h"
#include "src/models/placement/pair_table.h"
#include "src/models/placement/state.h"
#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/files.h"
#include "tools/gpushare/base/text.h"
#include "tools/gpushare/plan/predicted_pairs.h"

namespace gpushare::tool {

namespace {

using models::placement::Algorithm;
using models::placement::Cluster;
using models::placement::GpuEffect;
using models::placement::GpuLoad;
using models::placement::kNone;
using models::placement::PairRow;
using models::placement::PairSource;
using models::placement::PairTable;
using models::placement::Problem;
using models::placement::Unplaced;
using Json = nlohmann::ordered_json;

// In the order of Algorithm.
constexpr std::array<const char*, 4> kAlgorithms = {"random", "first-fit", "greedy", "assignment"};
// Rows of the table; --json has all of them.
constexpr size_t kRowsMax = 200;
constexpr size_t kUnplacedRowsMax = 50;

const char* NameOf(Algorithm algorithm) { return kAlgorithms[static_cast<size_t>(algorithm)]; }

std::string LcName(const Cluster& cluster, const GpuLoad& load) {
  return load.lc == kNone ? "-" : cluster.lc[static_cast<size_t>(load.lc)].name;
}

// Instances by app, in the order of the file.
std::map<int32_t, int64_t> CountsOf(const GpuLoad& load) {
  std::map<int32_t, int64_t> counts;
  for (const int32_t be : load.be) ++counts[be];
  return counts;
}

std::string BeNames(const Cluster& cluster, const GpuLoad& load) {
  std::string out;
  for (const auto& [be, count] : CountsOf(load)) {
    out += (out.empty() ? "" : ", ") + cluster.be[static_cast<size_t>(be)].name;
    if (count > 1) out += " x" + std::to_string(count);
  }
  return out.empty() ? "-" : out;
}

std::string Padded(const std::string& text, size_t width) {
  return text + std::string(width - std::min(width, text.size()), ' ');
}

std::string UnplacedRow(const Unplaced& app) {
  return "No GPU for " + std::to_string(app.count) + (app.lc ? " of LC app '" : " of BE app '") +
         OneLine(app.app) + "'. " + app.reason + "\n";
}

int64_t CountOf(const std::vector<Unplaced>& unplaced, bool lc) {
  int64_t count = 0;
  for (const Unplaced& app : unplaced) count += app.lc == lc ? app.count : 0;
  return count;
}

Json JsonOfGpu(const Cluster& cluster, const std::string& name, const GpuLoad& load,
               const GpuEffect& effect) {
  Json be = Json::array();
  for (const auto& [index, count] : CountsOf(load)) {
    be.push_back({{"app", cluster.be[static_cast<size_t>(index)].name}, {"instances", count}});
  }
  Json out = {{"gpu", name}};
  if (load.lc != kNone) out["lc_app"] = cluster.lc[static_cast<size_t>(load.lc)].name;
  out["be_apps"] = std::move(be);
  if (load.lc != kNone) out["p99_ratio_max"] = effect.p99;
  out["be_rate"] = effect.be_rate;
  out["be_error"] = effect.be_error;
  out["value"] = effect.value;
  return out;
}

// As rows of a cluster's file.
Json JsonOfRows(const std::vector<PairRow>& rows) {
  Json out = Json::array();
  for (const PairRow& row : rows) {
    out.push_back({{"lc", row.lc},
                   {"be", row.be},
                   {"load", row.load},
                   {"p99_ratio", row.p99_ratio},
                   {"p99_error", row.p99_error},
                   {"be_rate", row.be_rate},
                   {"be_error", row.be_error}});
  }
  return out;
}

}  // namespace

Algorithm AlgorithmOf(const std::string& option, const std::string& text) {
  for (size_t i = 0; i < kAlgorithms.size(); ++i) {
    if (text == kAlgorithms[i]) return static_cast<Algorithm>(i);
  }
  throw InputError(option + " is '" + text.substr(0, 60) +
                   "', and it must be random, first-fit, greedy or assignment.");
}

Placed PlaceCluster(const PlaceRequest& request) {
  const std::string text =
      ReadFile(request.file, static_cast<size_t>(models::placement::kClusterBytesMax));
  auto cluster = models::placement::ParseCluster(text);
  if (!cluster.ok()) {
    throw InputError(request.file + ": " + std::string(cluster.status().message()));
  }
  Placed out = {*std::move(cluster), request.options, {}, {}, {}};
  const PairTable table(out.cluster.pairs);
  std::optional<PredictedPairs> predicted;
  if (!request.predict.empty()) predicted.emplace(out.cluster, request.predict);
  const PairSource& pairs = predicted ? static_cast<const PairSource&>(*predicted) : table;
  auto placement = models::placement::Place(out.cluster, pairs, request.options);
  if (!placement.ok()) {
    throw InputError(request.file + ": " + std::string(placement.status().message()));
  }
  out.placement = *std::move(placement);
  if (predicted) {
    out.predicted = predicted->Rows();
    out.not_predicted = predicted->NotPredicted();
  }
  return out;
}

std::string TextOf(const Placed& placed) {
  const auto& placement = placed.placement;
  const PairTable table({});
  const Problem problem(placed.cluster, table, placed.options.valuation);
  const size_t rows = std::min(placement.gpus.size(), kRowsMax);
  size_t gpu_width = sizeof("GPU") - 1;
  size_t lc_width = sizeof("LC app") - 1;
  for (size_t i = 0; i < rows; ++i) {
    gpu_width = std::max(gpu_width, problem.NameOf(static_cast<int32_t>(i)).size());
    lc_width = std::max(lc_width, LcName(placed.cluster, placement.gpus[i]).size());
  }
  std::string out = Padded("GPU", gpu_width) + "  " + Padded("LC app", lc_width) +
                    "  p99 up to  BE rate  BE apps\n";
  for (size_t i = 0; i < rows; ++i) {
    const GpuLoad& load = placement.gpus[i];
    out += Padded(problem.NameOf(static_cast<int32_t>(i)), gpu_width) + "  " +
           Padded(LcName(placed.cluster, load), lc_width) +
           (load.lc == kNone ? "          -" : Format("  %9.3f", placement.effects[i].p99)) +
           Format("  %7.3f  ", placement.effects[i].be_rate) + BeNames(placed.cluster, load) + "\n";
  }
  if (rows < placement.gpus.size()) {
    out += Format("and %zu more GPUs; --json has them.\n", placement.gpus.size() - rows);
  }
  for (size_t i = 0; i < std::min(placement.unplaced.size(), kUnplacedRowsMax); ++i) {
    out += UnplacedRow(placement.unplaced[i]);
  }
  if (placement.unplaced.size() > kUnplacedRowsMax) {
    out += Format("and %zu more apps without a GPU; --json has them.\n",
                  placement.unplaced.size() - kUnplacedRowsMax);
  }
  out +=
      Format("Placed by %s: %lld LC replicas and %lld BE instances, %lld moved, %lld GPUs free.\n",
             NameOf(placed.options.algorithm), static_cast<long long>(placement.lc_placed),
             static_cast<long long>(placement.be_placed), static_cast<long long>(placement.moved),
             static_cast<long long>(placement.free_gpus));
  out += Format("BE rate %.3f GPUs. Value %.3f, and no placement has more than %.3f.\n",
                placement.be_rate, placement.value, placement.upper_bound);
  if (!placed.predicted.empty()) {
    out += Format("%zu pairs are predicted by the cost model; --json has them.\n",
                  placed.predicted.size());
  }
  for (const std::string& sentence : placed.not_predicted) out += OneLine(sentence) + "\n";
  if (placement.bounds_broken > 0) {
    out += Format("%lld LC replicas are predicted above their bound.\n",
                  static_cast<long long>(placement.bounds_broken));
  }
  return out;
}

std::string JsonOf(const Placed& placed) {
  const auto& placement = placed.placement;
  const PairTable table({});
  const Problem problem(placed.cluster, table, placed.options.valuation);
  Json gpus = Json::array();
  for (size_t i = 0; i < placement.gpus.size(); ++i) {
    gpus.push_back(JsonOfGpu(placed.cluster, problem.NameOf(static_cast<int32_t>(i)),
                             placement.gpus[i], placement.effects[i]));
  }
  Json unplaced = Json::array();
  for (const Unplaced& app : placement.unplaced) {
    unplaced.push_back({{"app", app.app},
                        {"class", app.lc ? "lc" : "be"},
                        {"count", app.count},
                        {"reason", app.reason}});
  }
  Json out = {{"schema_version", 1},
              {"algorithm", NameOf(placed.options.algorithm)},
              {"lc_placed", placement.lc_placed},
              {"be_placed", placement.be_placed},
              {"free_gpus", placement.free_gpus},
              {"be_rate", placement.be_rate},
              {"value", placement.value},
              {"upper_bound", placement.upper_bound},
              {"moved", placement.moved},
              {"bounds_broken", placement.bounds_broken},
              {"unplaced", std::move(unplaced)},
              {"gpus", std::move(gpus)}};
  if (!placed.predicted.empty()) out["predicted"] = JsonOfRows(placed.predicted);
  if (!placed.not_predicted.empty()) out["not_predicted"] = placed.not_predicted;
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string UnplacedText(const Placed& placed) {
  const std::vector<Unplaced>& unplaced = placed.placement.unplaced;
  if (unplaced.empty()) return "";
  return std::to_string(CountOf(unplaced, true)) + " LC replicas and " +
         std::to_string(CountOf(unplaced, false)) + " BE instances have no GPU; the first is '" +
         OneLine(unplaced.front().app) + "': " + unplaced.front().reason;
}

}  // namespace gpushare::tool
