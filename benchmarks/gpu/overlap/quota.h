// What the parts of the experiment `quota` share: its options, a kernel that is launched under a
// quota of n SMs in four ways, and a probe that records where block tasks ran.
//
// Invariants: places are made while nothing runs; one launch is in flight at a time; each executes
// every block task once. What breaks one is a Failure: a benchmark with a wrong answer has no
// result. Threads: one.

#ifndef GPUSHARE_BENCHMARKS_GPU_OVERLAP_QUOTA_H_
#define GPUSHARE_BENCHMARKS_GPU_OVERLAP_QUOTA_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/gpu/overlap/overlap_side.h"
#include "benchmarks/gpu/overlap/quota_kernels.h"

namespace gpushare::benchmarks {

struct QuotaOptions {
  std::vector<std::string> parts;
  uint32_t seed = 1;
  std::vector<std::string> only;  // BE kernels of `be` and `lc`; empty: all of them
  // be
  int repeats = 7;  // `taking` makes three times as many
  double solo_ms = 5;
  std::vector<int> quotas;
  // lc
  std::vector<int> lc_quotas;
  int lc_launches = 200;   // counted for each figure, at least
  double lc_us = 60;       // of one LC launch alone on the whole GPU, about
  double be_ms = 15;       // of one BE launch under its quota, about
  double lc_seconds = 25;  // no row begins later
};

enum class Way : uint8_t {
  kPacked,     // workers on a green context of n SMs
  kSpread,     // n SMs' worth of workers, placed anywhere
  kRetreat,    // Filling & Retreating: workers for the whole GPU, those outside of n SMs leave
  kRetreatX4,  // the same with four times the workers
  kSolo,       // no quota: workers for the whole GPU
};
inline constexpr std::array<Way, 4> kWays = {Way::kPacked, Way::kSpread, Way::kRetreat,
                                             Way::kRetreatX4};
const char* NameOf(Way way);
inline constexpr uint32_t kOverfill = 4;  // of kRetreatX4

// No launch lasts longer: one that does is hung.
inline constexpr double kQuotaHungSeconds = 5;

// Asks `poll` until its optional has a value. Fails after kQuotaHungSeconds.
template <class Ask>
double AwaitMs(const std::string& what, const Ask& poll) {
  const double give_up = NowSeconds() + kQuotaHungSeconds;
  while (NowSeconds() < give_up) {
    if (const std::optional<double> ms = poll(); ms.has_value()) return *ms;
  }
  Fail(what + " does not complete.");
}

// Launches of a task under a quota, by the task's launcher; both outlive this.
class Limited {
 public:
  Limited(OverlapGpu& gpu, kernels::FormLauncher& launcher, const kernels::FormTask& task)
      : gpu_(gpu), launcher_(launcher), task_(task) {}

  void Start(Way way, int quota);
  // Once the launch has ended: its device time in milliseconds. To be asked until then.
  std::optional<double> PollMs();
  // Start to end; these block.
  double Ms(Way way, int quota);
  double SoloMs() { return Ms(Way::kSolo, gpu_.sms()); }

 private:
  OverlapGpu& gpu_;
  kernels::FormLauncher& launcher_;
  const kernels::FormTask& task_;
  gpushare_worker_launch header_ = {};
};

// A BE task of the catalogue of about `solo_ms` alone on the whole GPU, compared with the reference
// on the CPU. While nothing runs, every other output must have the same bits.
struct BeTask {
  BeTask(OverlapGpu& gpu, const std::string& name, double solo_ms);
  void CheckOutput(const char* way, int quota) const;

  Side side;
  Limited limited;
};

// A kernel that records, for each of its block tasks, the SM and the block that executed it. A run
// fails where a block task did not run once or ran outside of its SMs; a quota may be missed (fewer
// SMs), never passed. Blocks.
class Probe {
 public:
  struct Seen {
    std::vector<uint32_t> by_sm;  // block tasks, one count an SM
    uint32_t workers = 0;         // that executed a block task
    uint32_t sms() const;         // that executed one
  };

  explicit Probe(OverlapGpu& gpu);

  Seen Run(Way way, int quota);
  // LC's form, an ordinary grid, on the SMs that the packed place of `quota` SMs leaves: none of
  // them may be one where the packed way ran.
  void CheckRest(int quota);

 private:
  void Begin(uint32_t block_tasks);
  Seen End(uint32_t block_tasks) const;

  OverlapGpu& gpu_;
  kernels::FormTask task_;
  kernels::FormLauncher launcher_;
  Limited limited_;
  kernels::DeviceBuffer executions_;
  kernels::DeviceBuffer by_sm_;
  kernels::DeviceBuffer by_block_;
  QuotaProbeParams params_ = {};
};

// Of the wanted quotas those that the hardware grants; a line on stderr for each other one.
std::vector<int> GrantedQuotas(const OverlapGpu& gpu, const std::vector<int>& wanted);

// 0 where there is nothing to compare with.
inline double Ratio(double value, double reference) {
  return reference > 0 ? value / reference : 0;
}

// The parts; each prints one JSON line a result on stdout and a table on stderr.
void RunBe(OverlapGpu& gpu, const QuotaOptions& options);
void RunLc(OverlapGpu& gpu, const QuotaOptions& options);
void RunTaking(int sms, const QuotaOptions& options);

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_GPU_OVERLAP_QUOTA_H_
