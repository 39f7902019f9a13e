// Eviction on a GPU, at the device seam: how long an evicted launch takes to leave, and what a task
// pays that is evicted once a millisecond for its whole life.
//
// One JSON object on stdout. For every kernel of the catalogue: the length of a block task at full
// occupancy (a launch of exactly one round, so the slowest of a thousand), the latency of evictions
// at random moments on a quiet device, with sixteen foreign streams that each have a running and a
// queued kernel ('crowded'), and with kernels there that take issue slots from the workers on their
// SMs as well ('contended'), and device time over solo device time of the task that is evicted
// every millisecond. Times are the device's own, on the host's clock.
//
// The claim batch is the library's own, from the kernel's block task
// (src/core/checks/claim_batch.h).
//
// Use: eviction_benchmark [--evictions N] [--only a,b] [--seconds S] [--ms SOLO_MS]
//
// Quiet evictions of each kernel, a third of them crowded and contended. --seconds: of all kernels
// (default 50); each gets its share of what is left and stops early, at kLeastEvictions of a kind
// at the soonest.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/harness/arguments.h"
#include "benchmarks/harness/gpu_device.h"
#include "benchmarks/harness/gpu_forms.h"
#include "benchmarks/harness/gpu_kernels.h"
#include "benchmarks/harness/gpu_seam.h"
#include "benchmarks/harness/json.h"
#include "benchmarks/harness/quantiles.h"
#include "benchmarks/harness/random.h"
#include "benchmarks/kernels/catalogue.h"
#include "src/core/checks/claim_batch.h"

namespace gpushare::benchmarks {
namespace {

using core::DeviceCompletion;
using core::TimeNs;

constexpr int kForeignStreams = 16;
constexpr int kIdleLanes = 56;
constexpr int kLeastEvictions = 12;
constexpr int64_t kEarliestEvictionNs = 100'000;
constexpr int64_t kLatestEvictionNs = 2'000'000;
constexpr int kRounds = 40;
constexpr int kWarmUpRounds = 5;
constexpr int kTasks = 3;  // whole tasks of each kind
// A launch that had not begun so long before its eviction gives the launch's latency, not the
// eviction's.
constexpr int64_t kBegunNs = 20'000;

double Us(int64_t ns) { return static_cast<double>(ns) / 1000; }
Json UsOf(const std::vector<int64_t>& ns, double quantile) {
  return Rounded(Us(Quantile(ns, quantile)), 1);
}

// What a foreign kernel does for its time: it leaves the SM to its neighbours there, or takes issue
// slots from them.
enum class Foreign : uint8_t { kSleeps, kSpins };

// Streams that the library does not know, each with a running and a queued kernel: what other parts
// of a process do to the hardware queues. Kernels of one block and 2 ms each, renewed by a thread
// of its own until the object dies.
class ForeignStreams {
 public:
  ForeignStreams(int count, Foreign kind)
      : sleep_ns_(kind == Foreign::kSleeps ? 1'000 : 0), thread_([this, count] { Run(count); }) {
    while (!started_.load()) std::this_thread::yield();
  }
  ~ForeignStreams() {
    stop_.store(true);
    thread_.join();
  }
  ForeignStreams(const ForeignStreams&) = delete;
  ForeignStreams& operator=(const ForeignStreams&) = delete;

 private:
  struct Stream {
    cudaStream_t stream = nullptr;
    cudaEvent_t first_done = nullptr;  // of the two kernels in the stream
  };

  void Launch(const Stream& each) const {
    constexpr uint64_t kKernelNs = 2'000'000;
    Cuda(LaunchWait({kKernelNs, sleep_ns_}, 1, 32, each.stream), "a foreign kernel");
  }
  // noexcept: a Failure on this thread ends the program, with its sentence.
  void Run(int count) noexcept {
    std::vector<Stream> streams(static_cast<size_t>(count));
    for (Stream& each : streams) {
      Cuda(cudaStreamCreateWithFlags(&each.stream, cudaStreamNonBlocking), "cudaStreamCreate");
      Cuda(cudaEventCreateWithFlags(&each.first_done, cudaEventDisableTiming), "cudaEventCreate");
      Launch(each);
      Cuda(cudaEventRecord(each.first_done, each.stream), "cudaEventRecord");
      Launch(each);
    }
    started_.store(true);
    while (!stop_.load()) {
      for (const Stream& each : streams) {
        if (cudaEventQuery(each.first_done) != cudaSuccess) continue;
        // Behind the second kernel.
        Cuda(cudaEventRecord(each.first_done, each.stream), "cudaEventRecord");
        Launch(each);
      }
    }
    for (const Stream& each : streams) {
      Synchronize(each.stream);
      Cuda(cudaEventDestroy(each.first_done), "cudaEventDestroy");
      Cuda(cudaStreamDestroy(each.stream), "cudaStreamDestroy");
    }
  }

  const uint32_t sleep_ns_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> started_{false};
  std::thread thread_;
};

// One kernel of the catalogue on one evictable lane.
class Subject {
 public:
  Subject(core::Device& device, SeamLane& lane, const kernels::CatalogueKernel& kernel, uint32_t id,
          double solo_ms)
      : device_(device), lane_(lane) {
    kernels::WorkloadOptions options;
    options.solo_ms = solo_ms;
    made_ = MakeTask(kernel, options);
    desc_.simulation.block_task_ns = static_cast<int64_t>(1000 * kernel.block_task_us);
    if (kernel.yields) {
      desc_.yield_interval_ns = static_cast<int64_t>(1000 * kernels::kSincosStepUs);
    } else {
      claim_batch_ = core::PredictClaimBatch(static_cast<double>(desc_.simulation.block_task_ns));
    }
    Prepare(device, kernel.name, id, made_.task.variants, &desc_);
  }

  const std::string& name() const { return desc_.name; }
  uint32_t claim_batch() const { return claim_batch_; }
  int64_t block_tasks() const { return made_.task.block_tasks(); }
  int64_t full_workers() const {
    return int64_t{device_.capabilities().profile.sm_count} * desc_.resources.workers_per_sm_max -
           1;
  }

  // `begin`: a new task; else what is left of the last one.
  void Launch(int64_t block_tasks, bool begin) {
    lane_.Launch({.kernel = &desc_,
                  .grid = made_.task.grid,
                  .block_tasks = block_tasks,
                  .params = made_.workload->params(),
                  .params_bytes = made_.workload->params_bytes(),
                  .begin = begin});
  }
  void Evict() { lane_.Evict(); }
  DeviceCompletion Wait() {
    return Await(device_, name(), [this] { return Poll(device_); });
  }

 private:
  core::Device& device_;
  SeamLane& lane_;
  core::KernelDesc desc_;
  WorkloadTask made_;
  uint32_t claim_batch_ = 1;
};

std::vector<int64_t> BlockTaskNs(Subject& subject) {
  std::vector<int64_t> spans;
  const int64_t round = std::min(subject.full_workers(), subject.block_tasks());
  for (int i = 0; i < kRounds; ++i) {
    subject.Launch(round, true);
    const DeviceCompletion done = subject.Wait();
    if (i >= kWarmUpRounds) spans.push_back(done.end_ns - done.start_ns);
  }
  return spans;
}

std::vector<int64_t> EvictionNs(core::Device& device, Subject& subject, int evictions,
                                TimeNs until_ns, Random& random) {
  int launches = 0;
  std::vector<int64_t> latencies;
  bool begin = true;
  while (static_cast<int>(latencies.size()) < evictions) {
    if (device.NowNs() > until_ns && static_cast<int>(latencies.size()) >= kLeastEvictions) break;
    // A task that always ends before its eviction has no latency to give.
    if (++launches > 20 * evictions) break;
    subject.Launch(subject.block_tasks(), begin);
    Spin(device, kEarliestEvictionNs + random.Below(kLatestEvictionNs - kEarliestEvictionNs + 1));
    const TimeNs evicted_ns = device.NowNs();
    subject.Evict();
    const DeviceCompletion done = subject.Wait();
    begin = done.outcome == core::Outcome::kFinished;
    const bool begun = done.start_ns + kBegunNs < evicted_ns;
    if (!begin && begun && done.end_ns > evicted_ns) {
      latencies.push_back(done.end_ns - evicted_ns);
    }
  }
  while (!begin) {  // the rest of the last task
    subject.Launch(subject.block_tasks(), false);
    begin = subject.Wait().outcome == core::Outcome::kFinished;
  }
  return latencies;
}

// Device time of a whole task: alone, or evicted after each millisecond.
int64_t TaskNs(core::Device& device, Subject& subject, bool evict, int* evictions) {
  int64_t total_ns = 0;
  for (bool begin = true;; begin = false) {
    subject.Launch(subject.block_tasks(), begin);
    if (evict) {
      Spin(device, 1'000'000);
      subject.Evict();
    }
    const DeviceCompletion done = subject.Wait();
    total_ns += done.end_ns - done.start_ns;
    if (done.outcome == core::Outcome::kFinished) return total_ns;
    ++*evictions;
  }
}

Json Measure(core::Device& device, Subject& subject, int count, int64_t share_ns) {
  const TimeNs begin_ns = device.NowNs();
  Random random(1);
  const std::vector<int64_t> block_task = BlockTaskNs(subject);
  const std::vector<int64_t> quiet =
      EvictionNs(device, subject, count, begin_ns + share_ns / 3, random);
  const auto beside = [&](Foreign kind, TimeNs until_ns) {
    const ForeignStreams foreign(kForeignStreams, kind);
    return EvictionNs(device, subject, std::max(kLeastEvictions, count / 3), until_ns, random);
  };
  const std::vector<int64_t> crowded = beside(Foreign::kSleeps, begin_ns + share_ns / 2);
  const std::vector<int64_t> contended = beside(Foreign::kSpins, begin_ns + share_ns * 2 / 3);
  std::vector<int64_t> solo;
  std::vector<int64_t> evicted;
  int evictions = 0;
  int none = 0;
  for (int i = 0; i < kTasks; ++i) {
    solo.push_back(TaskNs(device, subject, false, &none));
    evicted.push_back(TaskNs(device, subject, true, &evictions));
  }
  const double ratio = static_cast<double>(Median(evicted)) / static_cast<double>(Median(solo));
  std::fprintf(stderr,
               "%-14s block task p99 %8.1f us  eviction p50 %8.1f p99 %8.1f  crowded p99 %8.1f  "
               "contended p99 %8.1f  each ms %.4f x solo\n",
               subject.name().c_str(), Us(Quantile(block_task, 0.99)), Us(Median(quiet)),
               Us(Quantile(quiet, 0.99)), Us(Quantile(crowded, 0.99)),
               Us(Quantile(contended, 0.99)), ratio);
  return {{"kernel", subject.name()},
          {"claim_batch", subject.claim_batch()},
          {"block_task_p50_us", UsOf(block_task, 0.5)},
          {"block_task_p99_us", UsOf(block_task, 0.99)},
          {"eviction_p50_us", UsOf(quiet, 0.5)},
          {"eviction_p99_us", UsOf(quiet, 0.99)},
          {"crowded_eviction_p50_us", UsOf(crowded, 0.5)},
          {"crowded_eviction_p99_us", UsOf(crowded, 0.99)},
          {"contended_eviction_p50_us", UsOf(contended, 0.5)},
          {"contended_eviction_p99_us", UsOf(contended, 0.99)},
          {"evictions", quiet.size()},
          {"solo_ms", Rounded(Us(Median(solo)) / 1000, 3)},
          {"evicted_each_ms_over_solo", Rounded(ratio, 4)},
          {"evictions_of_a_task", evictions / kTasks}};
}

int Run(Arguments& given) {
  const int evictions = given.Number("--evictions", 60, 1);
  const std::vector<std::string> only = given.List("--only", {});
  const double solo_ms = given.Real("--ms", 12, 0.1);
  const double seconds = given.Real("--seconds", 50, 0);
  given.Finish();
  const std::unique_ptr<core::Device> device = OpenSeam();
  SeamLane lane(*device, core::kWholeDevice);
  for (int i = 0; i < kIdleLanes; ++i) Require(device->CreateLane({}).status());
  std::vector<const kernels::CatalogueKernel*> chosen;
  for (const kernels::CatalogueKernel& kernel : kernels::Catalogue()) {
    if (IsChosen(only, kernel.name)) chosen.push_back(&kernel);
  }
  Report report({{"gpu", device->capabilities().profile.gpu_model}}, "kernels");
  const TimeNs end_ns = device->NowNs() + static_cast<int64_t>(seconds * 1e9);
  for (size_t i = 0; i < chosen.size(); ++i) {
    Subject subject(*device, lane, *chosen[i], static_cast<uint32_t>(i + 1), solo_ms);
    const int64_t left_ns = std::max<int64_t>(0, end_ns - device->NowNs());
    report.Row(
        Measure(*device, subject, evictions, left_ns / static_cast<int64_t>(chosen.size() - i)));
  }
  report.End();
  return 0;
}

}  // namespace
}  // namespace gpushare::benchmarks

int main(int argc, char** argv) {
  return gpushare::benchmarks::Main("eviction_benchmark", argc, argv, gpushare::benchmarks::Run);
}
