#include "tools/gpushare/datacenter/warehouse.h"

#include <algorithm>
#include <array>
#include <set>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/files.h"
#include "tools/gpushare/base/json_reader.h"
#include "tools/gpushare/base/limits.h"
#include "tools/gpushare/base/text.h"

namespace gpushare::tool {

namespace {

constexpr char kSection[] = "datacenter";
constexpr std::array<const char*, 2> kPlacings = {"random", "assigned"};

std::string ServiceName(const std::string& app, double load) {
  return app.substr(0, kNameBytesMax - 8) + Format("@%.4g", load);
}

std::vector<double> ReadLoads(ObjectReader& in) {
  const Json* loads = in.Array("loads", kLoadsMax);
  if (loads == nullptr || loads->empty()) in.Fail("loads", "is missing or empty");
  std::set<double> seen;
  for (const Json& entry : *loads) {
    const double load = entry.is_number() ? entry.get<double>() : 0;
    if (!(load >= 0.01 && load <= 1)) {
      in.Fail("loads", "holds an entry that is not a number from 0.01 to 1");
    }
    seen.insert(load);
  }
  if (seen.size() != loads->size()) in.Fail("loads", "holds a load twice");
  return {seen.begin(), seen.end()};
}

std::vector<Placing> ReadPlacings(ObjectReader& in, const std::string& file) {
  return PlacingsOf(file + ": " + in.Where("placements"),
                    in.Names("placements", {"random", "assigned"}));
}

void ReadSection(const Json& json, const std::string& file, Warehouse& out,
                 std::vector<double>& loads) {
  ObjectReader in(json, file, kSection);
  out.gpus = in.Integer("gpus", 800, 1, kWarehouseGpusMax);
  out.be_per_gpu = in.Integer("be_per_gpu", 10, 1, kBePerGpuMax);
  out.slot_ns = in.Integer("slot_ns", 1'000'000'000, kSlotNsMin, kSlotNsMax);
  out.table_runs = in.Integer("table_runs", 4, 1, kTableRunsMax);
  loads = ReadLoads(in);
  out.placings = ReadPlacings(in, file);
  in.Finish();
}

// A case for each service, so that the scenario is one that colocate takes. Entries without a name
// are the scenario's own parser's to refuse.
Json CasesOf(const Json& document, const std::vector<double>& loads) {
  Json cases = Json::array();
  const auto lc = document.find("lc");
  if (lc == document.end() || !lc->is_array()) return cases;
  for (const Json& app : *lc) {
    if (!app.is_object() || !app.contains("name") || !app["name"].is_string()) continue;
    const std::string name = app["name"];
    if (cases.size() + loads.size() > kCasesMax) break;
    for (const double load : loads) {
      cases.push_back({{"name", ServiceName(name, load)}, {"lc", {name}}, {"load", load}});
    }
  }
  return cases;
}

// Each slot draws its own arrivals from its seed, so that no two GPUs have the same. Periodic ones
// would be the same in every slot.
void RequireDrawnArrivals(const Warehouse& warehouse) {
  for (const LcApp& app : warehouse.apps.lc) {
    const ArrivalKind kind = app.arrivals.kind;
    if (kind == ArrivalKind::kPoisson || kind == ArrivalKind::kGamma ||
        kind == ArrivalKind::kBatches) {
      continue;
    }
    throw InputError(warehouse.apps.file + ": the arrivals of LC app '" + app.name +
                     "' must be poisson, gamma or batches: every GPU draws its own.");
  }
}

void RequireQos(const Warehouse& warehouse) {
  for (const LcApp& app : warehouse.apps.lc) {
    if (app.p99_bound > 0 || app.target_ns > 0 || app.target_solo_factor > 0) continue;
    throw InputError(warehouse.apps.file + ": LC app '" + app.name +
                     "' has no p99_bound, target_ns or target_solo_factor, and violations are "
                     "counted against one.");
  }
}

void RequireBoundedTables(const Warehouse& warehouse) {
  const auto pairs =
      static_cast<int64_t>(warehouse.services.size() * (warehouse.apps.be.size() + 1));
  const int64_t slots = pairs * warehouse.table_runs;
  if (slots <= kTableNsMax / warehouse.slot_ns) return;
  throw InputError(
      warehouse.apps.file + ": " + std::to_string(slots) + " runs of pairs under one policy at " +
      DurationText(static_cast<double>(warehouse.slot_ns)) + " each are more than the limit of " +
      DurationText(static_cast<double>(kTableNsMax)) +
      " of simulated time; a smaller table_runs, slot_ns or number of loads helps.");
}

// `gpus` of the warehouse, each simulated by itself in one row.
void RequireBoundedRow(const std::string& where, const Warehouse& warehouse, int64_t gpus,
                       const std::string& remedy) {
  const int64_t slots = gpus * warehouse.be_per_gpu;
  if (slots <= kRowNsMax / warehouse.slot_ns) return;
  throw InputError(where + " is " + std::to_string(gpus) + ", which is " + std::to_string(slots) +
                   " slots of " + DurationText(static_cast<double>(warehouse.slot_ns)) +
                   " in a row, and the limit is " + DurationText(static_cast<double>(kRowNsMax)) +
                   " of simulated time; " + remedy);
}

}  // namespace

const char* NameOf(Placing placing) { return kPlacings[static_cast<size_t>(placing)]; }

Placing PlacingOf(const std::string& where, const std::string& text) {
  for (size_t i = 0; i < kPlacings.size(); ++i) {
    if (text == kPlacings[i]) return static_cast<Placing>(i);
  }
  throw InputError(where + " names '" + text.substr(0, kNameBytesMax) +
                   "', and a placement is random or assigned.");
}

std::vector<Placing> PlacingsOf(const std::string& where, const std::vector<std::string>& names) {
  std::vector<Placing> placings;
  for (const std::string& name : names) {
    const Placing placing = PlacingOf(where, name);
    if (std::find(placings.begin(), placings.end(), placing) != placings.end()) {
      throw InputError(where + " names '" + name + "' twice.");
    }
    placings.push_back(placing);
  }
  if (placings.empty()) throw InputError(where + " is empty.");
  return placings;
}

void CheckGpus(const std::string& where, const Warehouse& warehouse, bool simulated) {
  const int64_t gpus = warehouse.gpus;
  if (gpus > kBeInstancesMax / warehouse.be_per_gpu) {
    throw InputError(
        where + " is " + std::to_string(gpus) + " with " + std::to_string(warehouse.be_per_gpu) +
        " BE instances each, and the limit is " + std::to_string(kBeInstancesMax) + " instances.");
  }
  if (!simulated) return;
  if (gpus > kSimulatedGpusMax) {
    throw InputError(where + " is " + std::to_string(gpus) + ", and at most " +
                     std::to_string(kSimulatedGpusMax) +
                     " are simulated one by one; --tables draws them from tables of pairs.");
  }
  RequireBoundedRow(where, warehouse, gpus, "--tables draws them from tables of pairs.");
}

void CheckChecked(const Warehouse& warehouse, int64_t checked) {
  if (checked == 0) return;
  const std::vector<Placing>& placings = warehouse.placings;
  if (std::find(placings.begin(), placings.end(), Placing::kRandom) == placings.end()) {
    throw InputError("--check is " + std::to_string(checked) +
                     ", and it simulates GPUs of the placement 'random' again, which is not among "
                     "the placements; add it, or leave --check out.");
  }
  RequireBoundedRow("--check", warehouse, std::min(checked, warehouse.gpus),
                    "a smaller --check helps.");
}

std::vector<int64_t> Evenly(int64_t count, size_t parts) {
  std::vector<int64_t> out(parts, count / static_cast<int64_t>(parts));
  for (int64_t i = 0; i < count % static_cast<int64_t>(parts); ++i) ++out[static_cast<size_t>(i)];
  return out;
}

Warehouse ParseWarehouse(std::string_view text, const std::string& file) {
  if (text.size() > kScenarioBytesMax) {
    throw InputError("The scenario '" + file + "' has " + std::to_string(text.size()) +
                     " bytes, and the limit is " + std::to_string(kScenarioBytesMax) + ".");
  }
  Json document = ParseJson(text, file);
  if (!document.is_object() || !document.contains(kSection)) {
    throw InputError(file + ": the member 'datacenter' is missing; without it this is a scenario " +
                     "for `gpushare colocate`.");
  }
  for (const char* key : {"cases", "traced"}) {
    if (!document.contains(key)) continue;
    throw InputError(file + ": '" + key + "' and 'datacenter' cannot both be given: a datacenter " +
                     "has each LC app at each load beside each BE app.");
  }
  Warehouse out;
  std::vector<double> loads;
  ReadSection(document[kSection], file, out, loads);
  document.erase(kSection);
  document["cases"] = CasesOf(document, loads);
  out.apps = ParseScenario(document.dump(), file);
  out.apps.digest = Fnv1a(text);
  if (out.apps.be.empty()) throw InputError(file + ": 'be' is missing or empty.");
  for (size_t lc = 0; lc < out.apps.lc.size(); ++lc) {
    for (const double load : loads) {
      out.services.push_back({ServiceName(out.apps.lc[lc].name, load), static_cast<int>(lc), load});
    }
  }
  RequireDrawnArrivals(out);
  RequireQos(out);
  RequireBoundedTables(out);
  return out;
}

Warehouse LoadWarehouse(const std::string& file) {
  Warehouse warehouse = ParseWarehouse(ReadFile(file, kScenarioBytesMax), file);
  RequireProfile(warehouse.apps);
  return warehouse;
}

}  // namespace gpushare::tool
