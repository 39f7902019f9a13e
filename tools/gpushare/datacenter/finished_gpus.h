// What a stopped `gpushare datacenter` had finished: the runs of pairs of each policy, and the GPUs
// of each row. They are one file, replaced as a whole, with a digest of its own and with what they
// were made with, so that --resume joins only what belongs together.
//
// Threads: the caller's, one at a time.

#ifndef GPUSHARE_TOOLS_GPUSHARE_DATACENTER_FINISHED_GPUS_H_
#define GPUSHARE_TOOLS_GPUSHARE_DATACENTER_FINISHED_GPUS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "tools/gpushare/datacenter/gpu_figures.h"
#include "tools/gpushare/datacenter/pair_runs.h"
#include "tools/gpushare/datacenter/warehouse.h"

namespace gpushare::tool {

struct FinishedGpus {
  std::map<std::string, PairRuns> pairs;  // by policy
  // By the row's name ("adaptive assigned 800"), then by the number of the GPU.
  std::map<std::string, std::map<size_t, GpuFigures>> gpus;

  bool empty() const { return pairs.empty() && gpus.empty(); }
  size_t GpuCount() const;
};

// A row's GPUs depend on their number, so the row's name has it. Runs of pairs do not depend on it.
std::string RowName(const std::string& policy, Placing placing, int64_t gpus);

// What decides the results, as text; results with equal texts can be joined. RunError when the
// profile cannot be read.
std::string MadeWith(const Warehouse& warehouse, const std::string& tier,
                     const std::string& profile_name);

void SaveFinished(const std::string& file, const FinishedGpus& finished,
                  const std::string& made_with);

// Nothing if there is no such file. InputError for a corrupt file, or one that was made with
// something else, which it names.
FinishedGpus LoadFinished(const std::string& file, const Warehouse& warehouse,
                          const std::string& made_with);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_DATACENTER_FINISHED_GPUS_H_
