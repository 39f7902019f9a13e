// The main job: every case of a scenario under every policy, with its references.
//
// Cases: preflight (names, quotas) -> solo times and BE alone -> LC alone -> library alone ->
// policies. Runs are independent and run on a small pool of threads on a virtual-time device.
// On a real device they run one after another, and the rows of a case (alone, library, policies)
// are interleaved in rounds. Results stand in the order of the scenario whatever finished first.

#ifndef GPUSHARE_TOOLS_GPUSHARE_COLOCATE_H_
#define GPUSHARE_TOOLS_GPUSHARE_COLOCATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/gpushare/event_index.h"
#include "tools/gpushare/library.h"
#include "tools/gpushare/metrics.h"
#include "tools/gpushare/scenario.h"
#include "tools/gpushare/workloads.h"

namespace gpushare::tool {

inline constexpr const char* kLcAlone = "lc_alone";
inline constexpr const char* kLibraryAlone = "library_alone";
inline constexpr const char* kBeAlone = "be_alone";

struct ColocateOptions {
  std::string device = "auto";
  std::string tier = "kernel";
  std::vector<std::string> policies;  // empty: the scenario's
  std::vector<std::string> cases;     // empty: all
  std::string out;                    // folder, empty: no files
  int64_t trace_window_ns = 50'000'000;
  unsigned threads = 0;  // 0: as many as there are processors
  int rounds = 0;        // of each row on a real device; 0: 3. Virtual time has one
};

struct ColocateResult {
  DeviceFacts device;
  HardwareFacts hardware;
  int rounds = 1;
  std::string tier;
  uint64_t seed = 0;
  std::vector<std::string> policies;
  std::vector<RunResult> runs;  // by case: references, then policies
  std::vector<EventIndexEntry> events;
};

// Throws InputError before the first run for names, quotas and policies that cannot be right, and
// RunError when a run fails. `scenario` has its traces loaded and the command line's overrides
// applied.
ColocateResult Colocate(const Scenario& scenario, const ColocateOptions& options);

bool IsReference(const std::string& policy);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_COLOCATE_H_
