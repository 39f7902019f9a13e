#include "tools/gpushare/datacenter/finished_gpus.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/files.h"
#include "tools/gpushare/base/json_reader.h"
#include "tools/gpushare/base/limits.h"
#include "tools/gpushare/base/text.h"
#include "tools/gpushare/colocate/finished_rows.h"

namespace gpushare::tool {

namespace {

constexpr int kSchemaVersion = 2;

Json ToJson(const Latency& latency) {
  return {latency.queries, latency.late, latency.p99_ns, latency.limit_ns};
}

Latency LatencyFrom(const Json& json) {
  return {json.at(0).get<int64_t>(), json.at(1).get<int64_t>(), json.at(2).get<int64_t>(),
          json.at(3).get<int64_t>()};
}

Json ToJson(const GpuFigures& gpu) {
  Json colocations = Json::array();
  for (const ColocationFigures& one : gpu.colocations) {
    colocations.push_back({ToJson(one.latency), one.be_time});
  }
  return {gpu.service, ToJson(gpu.latency), std::move(colocations)};
}

GpuFigures GpuFrom(const Json& json) {
  GpuFigures gpu;
  gpu.service = json.at(0).get<int32_t>();
  gpu.latency = LatencyFrom(json.at(1));
  for (const Json& one : json.at(2)) {
    gpu.colocations.push_back({LatencyFrom(one.at(0)), one.at(1).get<double>()});
  }
  return gpu;
}

Json ToJson(const FinishedGpus& finished) {
  Json pairs = Json::object();
  for (const auto& [policy, runs] : finished.pairs) {
    Json& slots = pairs[policy] = Json::array();
    for (const SlotRun& slot : runs.slots()) slots.push_back({slot.be_time, slot.latencies_ns});
  }
  Json rows = Json::object();
  for (const auto& [row, gpus] : finished.gpus) {
    Json& list = rows[row] = Json::array();
    for (const auto& [number, gpu] : gpus) list.push_back({number, ToJson(gpu)});
  }
  return {{"pairs", std::move(pairs)}, {"rows", std::move(rows)}};
}

// The figures in the body of a file. Throws Json::exception or an InputError without a message
// where the body is malformed; the caller names the file.
FinishedGpus FinishedFrom(const Json& body, const Warehouse& warehouse) {
  FinishedGpus out;
  const size_t services = warehouse.services.size();
  const size_t bes = warehouse.apps.be.size();
  for (const auto& [policy, slots] : body.at("pairs").items()) {
    PairRuns runs(services, bes, static_cast<size_t>(warehouse.table_runs));
    if (slots.size() != runs.slots().size()) throw InputError("");
    for (size_t i = 0; i < slots.size(); ++i) {
      slots[i].at(0).get_to(runs.slots()[i].be_time);
      slots[i].at(1).get_to(runs.slots()[i].latencies_ns);
      const SortedLatencies& latencies = runs.slots()[i].latencies_ns;
      if (!std::is_sorted(latencies.begin(), latencies.end())) throw InputError("");
    }
    out.pairs.emplace(policy, std::move(runs));
  }
  for (const auto& [row, list] : body.at("rows").items()) {
    for (const Json& entry : list) {
      GpuFigures gpu = GpuFrom(entry.at(1));
      const auto number = entry.at(0).get<size_t>();
      if (gpu.service < 0 || static_cast<size_t>(gpu.service) >= services ||
          number >= static_cast<size_t>(kSimulatedGpusMax)) {
        throw InputError("");
      }
      out.gpus[row].emplace(number, std::move(gpu));
    }
  }
  return out;
}

}  // namespace

size_t FinishedGpus::GpuCount() const {
  size_t count = 0;
  for (const auto& row : gpus) count += row.second.size();
  return count;
}

std::string RowName(const std::string& policy, Placing placing, int64_t gpus) {
  return policy + " " + NameOf(placing) + " " + std::to_string(gpus);
}

std::string MadeWith(const Warehouse& warehouse, const std::string& tier,
                     const std::string& profile_name) {
  const std::string& profile = warehouse.apps.profile;
  const std::string text = profile.empty() ? "" : ReadFile(profile, kScenarioBytesMax);
  const Json made_with = {{"version", gpushare_version_string()},
                          {"profile", profile_name},
                          {"profile_digest", HexText(Fnv1a(text))},
                          {"scenario_digest", HexText(warehouse.apps.digest)},
                          {"tier", tier},
                          {"seed", warehouse.apps.seed}};
  return made_with.dump();
}

void SaveFinished(const std::string& file, const FinishedGpus& finished,
                  const std::string& made_with) {
  const std::string body = ToJson(finished).dump();
  const Json head = {{"schema_version", kSchemaVersion},
                     {"made_with", made_with},
                     {"digest", HexText(Fnv1a(body))}};
  WriteFile(file, head.dump() + "\n" + body + "\n");
}

FinishedGpus LoadFinished(const std::string& file, const Warehouse& warehouse,
                          const std::string& made_with) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return {};
  const std::string text = ReadFile(file, kRowsBytesMax);
  const std::string corrupt =
      "The file '" + file + "' is corrupt; without --resume the run starts again.";
  const size_t line = text.find('\n');
  if (line == std::string::npos || text.back() != '\n' || line + 1 >= text.size()) {
    throw InputError(corrupt);
  }
  const std::string body = text.substr(line + 1, text.size() - line - 2);
  std::string before;
  std::string digest;
  try {
    const Json head = Json::parse(text.substr(0, line));
    if (head.at("schema_version") != kSchemaVersion) {
      throw InputError("The file '" + file + "' is of another version of gpushare.");
    }
    head.at("made_with").get_to(before);
    head.at("digest").get_to(digest);
  } catch (const Json::exception&) {
    throw InputError(corrupt);
  }
  if (digest != HexText(Fnv1a(body))) throw InputError(corrupt);
  RequireMadeWith("The partial set in '" + file + "'", before, made_with);
  try {
    return FinishedFrom(Json::parse(body), warehouse);
  } catch (const Json::exception&) {
    throw InputError(corrupt);
  } catch (const InputError&) {
    throw InputError(corrupt);
  }
}

}  // namespace gpushare::tool
