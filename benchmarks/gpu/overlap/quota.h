// What the parts of quota_benchmark share: the arguments, the GPU with its places, a kernel that is
// launched under a quota of n SMs in four ways, and two tasks of such kernels: a BE task of the
// catalogue, and a probe that records where block tasks ran.
//
// Invariants: places are made while nothing runs; one launch is in flight at a time; each executes
// every block task once. What breaks one is a Failure: a benchmark with a wrong answer has no
// result. Threads: one.

#ifndef GPUSHARE_BENCHMARKS_GPU_OVERLAP_QUOTA_H_
#define GPUSHARE_BENCHMARKS_GPU_OVERLAP_QUOTA_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/gpu/overlap/quota_kernels.h"
#include "benchmarks/harness/gpu_forms.h"
#include "benchmarks/harness/gpu_seam.h"
#include "benchmarks/kernels/device_buffer.h"

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

// The device seam, and the launcher of forms beside it, which makes Filling & Retreating.
class QuotaGpu {
 public:
  QuotaGpu();

  int sms() const { return profile().sm_count; }
  std::string model() const { return profile().gpu_model; }
  core::Device& device() { return *device_; }
  kernels::FormLauncher& launcher() { return launcher_; }

  // A BE lane of the whole GPU.
  SeamLane& whole() { return *whole_; }
  // A BE lane of a green context of exactly so many SMs. False, with a line on stderr, where the
  // hardware grants none.
  bool MakePacked(int sms);
  SeamLane& packed(int sms) { return *packed_.at(sms); }

  // LC streams of the highest priority: on the whole GPU, and on the SMs that the packed place of
  // `sms` SMs leaves.
  void MakeLcStreams(int sms);
  CUstream_st* lc_whole() const { return lc_whole_; }
  CUstream_st* lc_rest(int sms) const { return lc_rest_.at(sms); }

 private:
  const core::DeviceProfile& profile() const { return device_->capabilities().profile; }
  // Whole groups of SMs, or whole groups and what they leave over.
  std::optional<core::PlaceSpec> SpecOf(int sms) const;
  CUstream_st* MakeLcStream(core::PlaceIndex place);

  std::unique_ptr<core::Device> device_;
  kernels::FormLauncher launcher_;
  std::unique_ptr<SeamLane> whole_;
  std::map<int, std::unique_ptr<SeamLane>> packed_;
  CUstream_st* lc_whole_ = nullptr;
  std::map<int, CUstream_st*> lc_rest_;
};

enum class Way : uint8_t {
  kPacked,     // workers on a green context of n SMs, by the device seam
  kSpread,     // n SMs' worth of workers, placed anywhere, by the device seam
  kRetreat,    // Filling & Retreating: workers for the whole GPU, those outside of n SMs leave
  kRetreatX4,  // the same with four times the workers
};
inline constexpr std::array<Way, 4> kWays = {Way::kPacked, Way::kSpread, Way::kRetreat,
                                             Way::kRetreatX4};
const char* NameOf(Way way);
inline constexpr uint32_t kOverfill = 4;  // of kRetreatX4

class LimitedKernel {
 public:
  // `id`: its own on the device.
  LimitedKernel(QuotaGpu& gpu, const char* name, int (*variants)(gpushare_kernel_variants*),
                uint32_t id);

  // `params` must outlive the launches.
  void SetTask(const void* params, size_t params_bytes, kernels::Grid grid);
  const kernels::FormTask& task() const { return task_; }
  int workers_per_sm() const { return desc_.workers_per_sm_max; }

  void Start(Way way, int quota);
  // Once the launch has ended: its device time in milliseconds. To be asked until then.
  std::optional<double> PollMs();
  // Start to end; these block.
  double Ms(Way way, int quota);
  double SoloMs();  // on the whole GPU

 private:
  void StartOnLane(SeamLane& lane, int workers);
  void StartRetreating(int quota, uint32_t fill);
  std::optional<double> PollLaneMs();
  std::optional<double> PollRetreatingMs();
  double WaitMs();
  void CheckDone(int64_t done) const;

  QuotaGpu& gpu_;
  core::KernelDesc desc_;
  kernels::FormTask task_;
  size_t params_bytes_ = 0;
  bool retreating_ = false;             // the launch in flight, or the last one
  gpushare_worker_launch header_ = {};  // of a retreating one
};

// A BE task of fixed size, of a kernel of the catalogue. The answer alone on the whole GPU is
// compared with the reference on the CPU; every other one must have the same bits.
class BeTask {
 public:
  // `solo_ms`: about what it takes alone on the whole GPU.
  BeTask(QuotaGpu& gpu, const std::string& name, double solo_ms, uint32_t seed, uint32_t id);

  const std::string& name() const { return name_; }
  LimitedKernel& kernel() { return kernel_; }

  // From here on only the first block tasks: as many as `sms` of all SMs execute of the whole task
  // in the same time. Runs them alone for the answer. Of kernels with a grid of one dimension.
  void KeepShareOf(int sms);

  // While nothing runs: the output is cleared, or is the one expected of `way`.
  void ClearOutput();
  void CheckOutput(const char* way, int quota);

 private:
  QuotaGpu& gpu_;
  std::string name_;
  LimitedKernel kernel_;
  std::unique_ptr<kernels::Workload> workload_;
  uint64_t expected_ = 0;
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

  Probe(QuotaGpu& gpu, uint32_t id);

  Seen Run(Way way, int quota);
  // LC's form, an ordinary grid, on the SMs that the packed place of `quota` SMs leaves: none of
  // them may be one where the packed way ran.
  void CheckRest(int quota);

 private:
  void Begin(uint32_t block_tasks);
  Seen End(uint32_t block_tasks) const;

  QuotaGpu& gpu_;
  LimitedKernel kernel_;
  kernels::DeviceBuffer executions_;
  kernels::DeviceBuffer by_sm_;
  kernels::DeviceBuffer by_block_;
  QuotaProbeParams params_ = {};
};

// 0 where there is nothing to compare with.
inline double Ratio(double value, double reference) {
  return reference > 0 ? value / reference : 0;
}

// The parts; each prints one JSON line a result on stdout and a table on stderr.
void RunBe(QuotaGpu& gpu, const QuotaOptions& options);
void RunLc(QuotaGpu& gpu, const QuotaOptions& options);
void RunTaking(int sms, const QuotaOptions& options);

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_GPU_OVERLAP_QUOTA_H_
