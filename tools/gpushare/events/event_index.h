// events/index.json of an output folder: the event log of each run, and the names of its apps and
// kernels. Also reads a log.

#ifndef GPUSHARE_TOOLS_GPUSHARE_EVENTS_EVENT_INDEX_H_
#define GPUSHARE_TOOLS_GPUSHARE_EVENTS_EVENT_INDEX_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/gpushare/base/library.h"
#include "tools/gpushare/events/promise.h"
#include "tools/gpushare/run/run_outcome.h"

namespace gpushare::tool {

// What a run was made with, and its log's replay needs.
struct RunOrigin {
  std::string scenario;  // its file
  std::string scenario_digest;
  std::string device;
  std::string tier;
  uint64_t seed = 1;
};

struct EventIndexEntry {
  std::string case_name;
  std::string policy;
  std::string file;      // inside the output folder
  bool chosen = false;   // the run that trace.pftrace shows
  int64_t start_ns = 0;  // of the run, on the device's clock
  std::vector<NamedId> apps;
  std::vector<NamedId> kernels;
  std::vector<LcPromise> promises;  // of the LC apps; sets of earlier versions have none
  std::optional<RunOrigin> origin;  // of a run in virtual time whose log begins with the run

  // "?" and the number for an unknown id.
  std::string AppName(uint32_t id) const;
  std::string KernelName(uint32_t id) const;
};

std::string FormatEventIndex(const std::vector<EventIndexEntry>& entries);
// Throws InputError if the index is missing or corrupt.
std::vector<EventIndexEntry> LoadEventIndex(const std::string& folder);

// All events of a log, in order of time. Throws InputError for a missing or corrupt file.
std::vector<gpushare_event> LoadEvents(const std::string& path);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_EVENTS_EVENT_INDEX_H_
