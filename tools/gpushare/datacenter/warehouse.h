// A datacenter scenario: GPUs of one kind, the LC app and the BE instances of each, and what they
// are compared under (docs/datacenter.md has the fields).
//
// The file is a scenario of `gpushare colocate` whose cases are replaced by the member
// "datacenter". A service is an LC app at one load; each GPU has one service and, one after
// another, its BE instances, each for a slot of time.
//
// Threads: any. Throws InputError with one sentence.

#ifndef GPUSHARE_TOOLS_GPUSHARE_DATACENTER_WAREHOUSE_H_
#define GPUSHARE_TOOLS_GPUSHARE_DATACENTER_WAREHOUSE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/gpushare/scenario/scenario.h"

namespace gpushare::tool {

// More GPUs are refused: that many are placed in seconds and a few hundred megabytes.
inline constexpr int64_t kWarehouseGpusMax = 100'000;
inline constexpr int64_t kSimulatedGpusMax = 10'000;
// Simulated time of the GPUs of a row: an hour and a half of processor time in the tier `kernel`,
// at 50 ms a second; several times that in the tier `block`.
inline constexpr int64_t kRowNsMax = int64_t{100'000} * 1'000'000'000;
inline constexpr int64_t kBeInstancesMax = 1'000'000;
inline constexpr int64_t kBePerGpuMax = 64;
inline constexpr size_t kLoadsMax = 16;
inline constexpr int64_t kTableRunsMax = 64;
// A slot has hundreds of queries, and a run over all pairs ends.
inline constexpr int64_t kSlotNsMin = 10'000'000;
inline constexpr int64_t kSlotNsMax = int64_t{60} * 1'000'000'000;
// Simulated time of all pairs under one policy, as of a row.
inline constexpr int64_t kTableNsMax = kRowNsMax;

enum class Placing : uint8_t { kRandom = 0, kAssigned = 1 };
const char* NameOf(Placing placing);
// InputError names `where` and the known placements.
Placing PlacingOf(const std::string& where, const std::string& text);
// At least one, each once.
std::vector<Placing> PlacingsOf(const std::string& where, const std::vector<std::string>& names);

// A GPU's LC app and its load.
struct Service {
  std::string name;  // "asr@0.2"
  int lc = 0;        // index into Scenario::lc
  double load = 0;
};

struct Warehouse {
  Scenario apps;  // LC and BE apps, policies, profile, seed; a case for each service, without BE
  std::vector<Service> services;
  int64_t gpus = 0;
  int64_t be_per_gpu = 0;
  int64_t slot_ns = 0;
  int64_t table_runs = 0;  // of each pair
  std::vector<Placing> placings;
};

// `file` names the text in errors; relative paths start at its folder.
Warehouse ParseWarehouse(std::string_view text, const std::string& file);
// As parsed, and the profile is there.
Warehouse LoadWarehouse(const std::string& file);

// InputError for more GPUs than a row may have. `simulated`: each by itself.
void CheckGpus(const std::string& where, const Warehouse& warehouse, bool simulated);
// InputError where `checked` GPUs of the random placement cannot be simulated again: there is no
// such placement, or their simulated time is above the limit.
void CheckChecked(const Warehouse& warehouse, int64_t checked);

// `count` divided evenly among `parts`, the first ones larger by one.
std::vector<int64_t> Evenly(int64_t count, size_t parts);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_DATACENTER_WAREHOUSE_H_
