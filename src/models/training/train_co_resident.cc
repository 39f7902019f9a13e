// The fit to rows of kernels on the same SMs; see train_co_resident.h.

#include "src/models/training/train_co_resident.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/models/co_resident/fit.h"
#include "src/models/samples/row_times.h"

namespace gpushare::models {

void TrainCoResident(const Samples& samples, absl::Span<const core::KernelDesc> kernels,
                     Learned& learned) {
  std::map<std::string, co_resident::Kernel> by_name;
  for (const core::KernelDesc& kernel : kernels) {
    by_name[kernel.name] = {kernel.counters, kernel.simulation.saturating_occupancy,
                            kernel.resources.workers_per_sm_max};
  }
  std::vector<co_resident::Sample> rows;
  for (const SampleRow& row : samples.rows) {
    if (row.what != SampleKind::kBeside || !row.same_sms || row.form != core::Form::kWorkers) {
      continue;
    }
    const auto timed = by_name.find(row.kernel);
    const auto neighbour = by_name.find(row.neighbour);
    if (timed == by_name.end() || neighbour == by_name.end()) continue;
    rows.push_back({{timed->second, row.workers_per_sm},
                    {neighbour->second, row.neighbour_workers_per_sm},
                    MedianRatio(row.alone_ns, row.ns)});
  }
  co_resident::State state = co_resident::FitPairs(rows);
  if (state.known()) learned.co_resident = std::move(state);
}

}  // namespace gpushare::models
