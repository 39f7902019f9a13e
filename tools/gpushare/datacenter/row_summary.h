// A row of the comparison, one policy with one placement: who is violated, by how much, and how
// much BE time the GPUs gave. These are the numbers of Baymax's figures 14 and 15.
//
// Pure. Threads: any.

#ifndef GPUSHARE_TOOLS_GPUSHARE_DATACENTER_ROW_SUMMARY_H_
#define GPUSHARE_TOOLS_GPUSHARE_DATACENTER_ROW_SUMMARY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/gpushare/datacenter/gpu_figures.h"
#include "tools/gpushare/datacenter/warehouse.h"

namespace gpushare::tool {

// Baymax 7.6 calls a p99 of more than this above its target a severe violation.
inline constexpr double kSevereExcess = 0.4;
// Utilisation levels of figure 15: tenths, and the last one for all above.
inline constexpr size_t kLevels = 11;

// A set of p99s, each against its limit.
struct Violations {
  int64_t count = 0;
  int64_t violated = 0;
  int64_t severe = 0;
  double worst_excess = -1;  // of the p99 over its limit; below 0: all are within

  void Add(const Latency& latency);
  void Add(const Violations& other);
  double Share() const {
    return count == 0 ? 0 : static_cast<double>(violated) / static_cast<double>(count);
  }
};

// The GPUs of one LC app, at all of its loads.
struct AppSummary {
  std::string app;
  Violations apps;         // the LC app of each GPU over all its co-locations
  Violations colocations;  // each slot by itself
  double late_share = 0;   // of all its queries
  double be_time = 0;      // mean over GPUs
};

struct RowSummary {
  std::string policy;
  Placing placing = Placing::kRandom;
  Violations apps;
  Violations colocations;
  double late_share_max = 0;                 // of one LC app's queries
  double be_time = 0;                        // mean over GPUs: the utilisation of figure 15
  std::array<int64_t, kLevels> levels = {};  // GPUs by their BE time
  std::vector<AppSummary> by_app;            // in the order of the scenario
};

RowSummary Summarise(const Warehouse& warehouse, const std::string& policy, Placing placing,
                     const std::vector<GpuFigures>& gpus);

// The same GPUs twice: as the row has them, and simulated one by one with each SM by itself.
struct CheckSummary {
  std::string policy;
  int64_t gpus = 0;
  RowSummary row;
  RowSummary checked;
  double p99_difference_mean = 0;  // of |row / checked - 1| over GPUs
  double p99_difference_max = 0;
  double be_time_difference_max = 0;  // absolute
};

CheckSummary Compare(const RowSummary& row, const RowSummary& checked,
                     const std::vector<GpuFigures>& row_gpus,
                     const std::vector<GpuFigures>& checked_gpus);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_DATACENTER_ROW_SUMMARY_H_
