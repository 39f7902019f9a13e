// `gpushare colocate`: runs every case of a scenario under every policy, with its references.
//
// Order: preflight (names, quotas) -> solo times and BE alone -> LC alone -> library alone ->
// policies. Runs are independent. On a device in virtual time a small pool of threads runs them. On
// a real device they run one after another, and the rows of a case (LC alone, library alone,
// policies) are interleaved in rounds. Results are in the order of the scenario.

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
  int rounds = 0;        // of each row on a real device; 0: 3. In virtual time there is 1
};

struct ColocateResult {
  DeviceFacts device;
  HardwareFacts hardware;
  int rounds = 1;
  std::string tier;
  uint64_t seed = 0;
  std::vector<std::string> policies;
  std::vector<RunResult> runs;  // for each case its references, then its policies
  std::vector<EventIndexEntry> events;
};

// Throws InputError before the first run for invalid names, quotas and policies, and RunError if a
// run fails. `scenario` has its traces loaded and the overrides of the command line applied.
ColocateResult Colocate(const Scenario& scenario, const ColocateOptions& options);

bool IsReference(const std::string& policy);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_COLOCATE_H_
