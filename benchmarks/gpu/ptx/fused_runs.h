// Runs a pair of recorded launches: serial, co-resident, in two halves of the SMs, and fused;
// checks the bits of both, also where a part is evicted in the middle.
//
// A batch launches both parts again and again, and the host times it from the first launch to the
// end of the last, so that no single start is in the result. Co-resident parts do not wait for one
// another between launches: both streams run on. A fused launch has what the scheduler gives it:
// a leader, completion records and eviction words. Threads: one.

#ifndef GPUSHARE_BENCHMARKS_GPU_PTX_FUSED_RUNS_H_
#define GPUSHARE_BENCHMARKS_GPU_PTX_FUSED_RUNS_H_

#include <array>
#include <cstdint>
#include <random>
#include <string>

#include "benchmarks/gpu/ptx/fused_plan.h"
#include "benchmarks/gpu/ptx/fused_twins.h"
#include "benchmarks/gpu/ptx/launchable.h"
#include "benchmarks/gpu/ptx/twin_gpu.h"

namespace gpushare::benchmarks {

struct EvictedRuns {
  int runs = 0;
  int evictions = 0;                // in the middle: some block tasks were done, some were left
  std::array<int, 2> of_part = {};  // of these
  std::array<bool, 2> evictable = {};
  // A part's bits behind an eviction are known only where there was one.
  bool each_evicted() const { return of_part[0] > 0 && of_part[1] > 0; }
  // Not even one eviction of a part that is long enough for it.
  bool missed(size_t part) const { return evictable[part] && of_part[part] == 0; }
};

class FusedRuns {
 public:
  FusedRuns(TwinGpu& gpu, const Launchable& tensor, const Launchable& cuda, uint64_t seed);

  // Microseconds of both parts, medians of the rounds, in the order of Way; 0: not measured. The
  // ways take turns. Without a twin kFused is not measured.
  std::array<double, kWays> Time(const Amounts& amounts, const FusedTwinCode* twin, int rounds);
  // Of the fused way alone.
  double TimeFused(const Amounts& amounts, const FusedTwinCode& twin, int rounds);

  // Runs both whole grids. Fails, with what differs, where a part has other bits than its original
  // or a block task was not executed once.
  void CheckBits(const FusedTwinCode& twin);
  // The same, while parts are evicted at random times in turns, until `evictions` left block tasks
  // and each evictable part (IsEvictable) had one, or `until_us`.
  EvictedRuns CheckEvictions(const FusedTwinCode& twin, int evictions, double until_us);

 private:
  int64_t BlocksOf(const FusedTwinCode& twin, const Amounts& amounts) const;
  // One launch of both parts on their counters of this number.
  void EnqueueFused(const FusedTwinCode& twin, const Amounts& amounts, size_t counter);
  void Enqueue(Way way, const Amounts& amounts, const FusedTwinCode* twin, size_t number);
  double Batch(Way way, const Amounts& amounts, const FusedTwinCode* twin, int repeats);
  void Restore();
  // Of the launch that has ended; fails where it is another's record.
  gpushare_worker_completion RecordOf(size_t part) const;
  void CompareBits(const std::string& when) const;
  Amounts Whole() const;

  TwinGpu& gpu_;
  const Launchable& tensor_;
  const Launchable& cuda_;
  std::array<PartWords, 2> words_;  // of the Tensor part and the other one
  std::mt19937_64 random_;
};

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_GPU_PTX_FUSED_RUNS_H_
