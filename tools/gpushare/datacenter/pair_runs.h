// Every pair of a service and a BE app under one policy, each run several times with seeds of its
// own: what the assignment knows of pairs, and what `--tables` draws GPUs from.
//
// The arrivals of run r of a service are the same beside every BE app and under every policy, and
// so is the run of the service alone.
//
// Threads: plain data; the functions run slots on a few threads of their own.

#ifndef GPUSHARE_TOOLS_GPUSHARE_DATACENTER_PAIR_RUNS_H_
#define GPUSHARE_TOOLS_GPUSHARE_DATACENTER_PAIR_RUNS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/gpushare/datacenter/slot.h"
#include "tools/gpushare/datacenter/warehouse.h"

namespace gpushare::tool {

// The runs of one policy, or of the services alone (one BE column).
class PairRuns {
 public:
  PairRuns() = default;
  PairRuns(size_t services, size_t bes, size_t runs)
      : bes_(bes), runs_(runs), slots_(services * bes * runs) {}

  const SlotRun& At(size_t service, size_t be, size_t run) const {
    return slots_[(service * bes_ + be) * runs_ + run];
  }
  std::vector<SlotRun>& slots() { return slots_; }
  const std::vector<SlotRun>& slots() const { return slots_; }
  size_t runs() const { return runs_; }

  // Mean over the runs, by service, then by BE app.
  std::vector<std::vector<double>> MeanBeTime() const;
  // Of all runs of each service together.
  std::vector<int64_t> P99ByService() const;

 private:
  size_t bes_ = 0;
  size_t runs_ = 0;
  std::vector<SlotRun> slots_;
};

struct RunContext {
  const Warehouse& warehouse;
  const SlotRunner& runner;
  std::string tier;
  unsigned threads = 1;
  std::atomic<bool>& stop;
  std::function<void(const std::string&)> step;  // after each run, from any thread
};

PairRuns RunServicesAlone(const RunContext& context);
PairRuns RunPairs(const RunContext& context, const std::string& policy);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_DATACENTER_PAIR_RUNS_H_
