// `gpushare colocate`: runs every case of a scenario under every policy, with its references.
//
// Order: preflight (names, quotas) -> solo times and BE alone -> LC alone -> library alone ->
// policies. Runs are independent. On a device in virtual time a small pool of threads runs them. On
// a real device they run one after another, and the rows of a case (LC alone, library alone,
// policies) are interleaved in rounds. Results are in the order of the scenario.

#ifndef GPUSHARE_TOOLS_GPUSHARE_COLOCATE_COLOCATE_H_
#define GPUSHARE_TOOLS_GPUSHARE_COLOCATE_COLOCATE_H_

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "tools/gpushare/base/library.h"
#include "tools/gpushare/events/event_index.h"
#include "tools/gpushare/run/metrics.h"
#include "tools/gpushare/scenario/scenario.h"
#include "tools/gpushare/workloads/workloads.h"

namespace gpushare::tool {

inline constexpr const char* kLcAlone = "lc_alone";
inline constexpr const char* kLibraryAlone = "library_alone";
inline constexpr const char* kBeAlone = "be_alone";

// The rows of the cases that an earlier run of the same scenario and options finished.
struct FinishedRows {
  std::string made_with;  // finished_rows.h
  std::vector<RunResult> runs;
  std::vector<EventIndexEntry> events;
};

struct ColocateResult;

struct ColocateOptions {
  std::string device = "auto";
  std::string tier = "kernel";
  std::vector<std::string> policies;  // empty: the scenario's
  std::vector<std::string> cases;     // empty: all
  std::string out;                    // folder, empty: no files
  int64_t trace_window_ns = 50'000'000;
  unsigned threads = 0;   // 0: as many as there are processors
  int rounds = 0;         // of each row on a real device; 0: 3. In virtual time there is 1
  FinishedRows finished;  // cases that need not run again
  // Called before the first run, when the device and the policies are known; empty: not called.
  std::function<void(const ColocateResult&)> begin;
  // Called with the finished cases after each case of a real device, empty: not called.
  // What `begin` or `save` throws ends the run.
  std::function<void(const ColocateResult&)> save;
  bool quiet = false;  // no progress on stderr
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
  // Set when the run stopped early: why, and the cases that are missing. `runs` and `events` have
  // the finished cases.
  std::exception_ptr stopped;
  size_t cases_finished = 0;
  std::vector<std::string> missing_cases;
};

// Throws InputError before the first run for invalid names, quotas and policies. Sets
// ColocateResult::stopped if a run fails or an interrupt comes (interrupt.h). `scenario` has its
// traces loaded and the overrides of the command line applied.
ColocateResult Colocate(const Scenario& scenario, const ColocateOptions& options);

bool IsReference(const std::string& policy);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_COLOCATE_COLOCATE_H_
