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
// (src/core/seams/claim_batch.h).
//
// Use: eviction_benchmark [--evictions N] [--only a,b] [--seconds S] [--ms SOLO_MS]
//
// Quiet evictions of each kernel, a third of them crowded and contended. --seconds: of all kernels
// (default 50); each gets its share of what is left and stops early, at kLeastEvictions of a kind
// at the soonest.

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "benchmarks/gpu/foreign_streams.h"
#include "benchmarks/kernels/catalogue.h"
#include "src/core/seams/claim_batch.h"
#include "src/core/seams/device.h"
#include "src/cuda/cuda_device.h"

namespace {

using gpushare::benchmarks::Foreign;
using gpushare::benchmarks::ForeignStreams;
using gpushare::core::Device;
using gpushare::core::DeviceCompletion;
using gpushare::core::Form;
using gpushare::core::KernelDesc;
using gpushare::core::LaneIndex;
using gpushare::core::LaunchRequest;
using gpushare::core::TimeNs;

// No launch here lasts longer: one that does is hung.
constexpr int64_t kHungNs = 5'000'000'000;
constexpr int kForeignStreams = 16;
constexpr int kIdleLanes = 56;
constexpr int kLeastEvictions = 12;
constexpr int64_t kLatestEvictionNs = 2'000'000;
constexpr int kTasks = 3;  // whole tasks of each kind
// A launch that had not begun so long before its eviction tells the launch's latency, not the
// eviction's.
constexpr int64_t kBegunNs = 20'000;

[[noreturn]] void Fail(const std::string& why) {
  std::fprintf(stderr, "eviction_benchmark: %s\n", why.c_str());
  std::exit(1);
}

void Require(const absl::Status& status) {
  if (!status.ok()) Fail(std::string(status.message()));
}

int64_t Quantile(std::vector<int64_t> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<size_t>(q * static_cast<double>(values.size() - 1) + 0.5);
  return values[rank];
}

double Us(int64_t ns) { return static_cast<double>(ns) / 1000; }

// One kernel of the catalogue on one evictable lane.
class Subject {
 public:
  Subject(Device& device, LaneIndex lane, const gpushare::kernels::CatalogueKernel& kernel,
          uint32_t id, double solo_ms, uint64_t* epoch)
      : device_(device), lane_(lane), epoch_(*epoch) {
    gpushare_kernel_variants variants = {};
    if (kernel.variants(&variants) != 0) Fail(std::string(kernel.name) + " does not load");
    gpushare::kernels::WorkloadOptions options;
    options.solo_ms = solo_ms;
    const auto made = gpushare::kernels::MakeWorkload(kernel, options, &workload_);
    if (!made.ok()) Fail(made.message);
    desc_.id = gpushare::core::KernelId{id};
    desc_.name = kernel.name;
    desc_.threads_per_block = static_cast<int32_t>(variants.threads_per_block);
    desc_.dynamic_shared_memory_bytes = static_cast<int32_t>(variants.dynamic_shared_bytes);
    desc_.registers_per_thread = 0;
    desc_.workers_per_sm_max = static_cast<int32_t>(variants.workers_per_sm);
    desc_.original_function = variants.original_function;
    desc_.worker_function = variants.worker_function;
    desc_.evictable = true;
    desc_.simulation.block_task_ns = static_cast<int64_t>(1000 * kernel.block_task_us);
    if (!kernel.yields) {
      claim_batch_ =
          gpushare::core::PredictClaimBatch(static_cast<double>(desc_.simulation.block_task_ns));
    }
    if (kernel.yields) {
      desc_.yield_interval_ns = static_cast<int64_t>(1000 * gpushare::kernels::kSincosStepUs);
    }
    Require(device.DescribeKernel(desc_));
    Require(device.PrepareKernel(desc_));
  }

  const std::string& name() const { return desc_.name; }
  uint32_t claim_batch() const { return claim_batch_; }
  int64_t block_tasks() const { return workload_->block_tasks(); }
  int64_t full_workers() const {
    return int64_t{device_.capabilities().profile.sm_count} * desc_.workers_per_sm_max - 1;
  }

  // `begin`: a new task; else what is left of the last one.
  void Launch(int64_t block_tasks, bool begin) {
    LaunchRequest request;
    request.parts[0].launch = gpushare::core::LaunchId{++launches_};
    request.parts[0].lane = lane_;
    request.form = Form::kWorkers;
    request.parts[0].work.kernel = &desc_;
    request.parts[0].block_count = block_tasks;
    // Fewer block tasks are the first ones of the same grid.
    const gpushare::kernels::Grid grid = workload_->grid();
    request.parts[0].work.grid[0] = static_cast<int32_t>(grid.x);
    request.parts[0].work.grid[1] = static_cast<int32_t>(grid.y);
    request.parts[0].work.grid[2] = static_cast<int32_t>(grid.z);
    request.parts[0].counter = 0;
    request.parts[0].reset_counter = begin;
    request.parts[0].epoch = ++epoch_;
    request.parts[0].work.arguments = workload_->params();
    request.parts[0].work.arguments_bytes = static_cast<uint32_t>(workload_->params_bytes());
    Require(device_.Launch(request));
  }

  void Evict() { Require(device_.Evict(lane_, epoch_, 0)); }

  DeviceCompletion Wait() {
    const TimeNs give_up_ns = device_.NowNs() + kHungNs;
    std::array<DeviceCompletion, 4> out;
    while (device_.NowNs() < give_up_ns) {
      if (device_.PollCompletions(absl::MakeSpan(out)) > 0) return out[0];
    }
    Fail(name() + " does not complete");
  }

 private:
  Device& device_;
  const LaneIndex lane_;
  KernelDesc desc_;
  std::unique_ptr<gpushare::kernels::Workload> workload_;
  uint32_t claim_batch_ = 1;
  uint64_t launches_ = 0;
  uint64_t& epoch_;  // of the lane, whose word only moves forward
};

void Spin(const Device& device, int64_t ns) {
  const TimeNs until_ns = device.NowNs() + ns;
  while (device.NowNs() < until_ns) {
  }
}

std::vector<int64_t> BlockTaskNs(Subject& subject) {
  std::vector<int64_t> spans;
  const int64_t round = std::min(subject.full_workers(), subject.block_tasks());
  for (int i = 0; i < 40; ++i) {
    subject.Launch(round, true);
    const DeviceCompletion done = subject.Wait();
    if (i >= 5) spans.push_back(done.end_ns - done.start_ns);
  }
  return spans;
}

std::vector<int64_t> EvictionNs(Device& device, Subject& subject, int evictions, TimeNs until_ns,
                                std::mt19937& random) {
  std::uniform_int_distribution<int64_t> moment(100'000, kLatestEvictionNs);
  int launches = 0;
  std::vector<int64_t> latencies;
  bool begin = true;
  while (static_cast<int>(latencies.size()) < evictions) {
    if (device.NowNs() > until_ns && static_cast<int>(latencies.size()) >= kLeastEvictions) break;
    // A task that always ends before its eviction has no latency to tell.
    if (++launches > 20 * evictions) break;
    subject.Launch(subject.block_tasks(), begin);
    Spin(device, moment(random));
    const TimeNs evicted_ns = device.NowNs();
    subject.Evict();
    const DeviceCompletion done = subject.Wait();
    begin = done.outcome == gpushare::core::Outcome::kFinished;
    const bool begun = done.start_ns + kBegunNs < evicted_ns;
    if (!begin && begun && done.end_ns > evicted_ns) {
      latencies.push_back(done.end_ns - evicted_ns);
    }
  }
  while (!begin) {  // the rest of the last task
    subject.Launch(subject.block_tasks(), false);
    begin = subject.Wait().outcome == gpushare::core::Outcome::kFinished;
  }
  return latencies;
}

// Device time of a whole task: alone, or evicted after each millisecond.
int64_t TaskNs(Device& device, Subject& subject, bool evict, int* evictions) {
  int64_t total_ns = 0;
  for (bool begin = true;; begin = false) {
    subject.Launch(subject.block_tasks(), begin);
    if (evict) {
      Spin(device, 1'000'000);
      subject.Evict();
    }
    const DeviceCompletion done = subject.Wait();
    total_ns += done.end_ns - done.start_ns;
    if (done.outcome == gpushare::core::Outcome::kFinished) return total_ns;
    ++*evictions;
  }
}

void Report(Device& device, Subject& subject, int count, int64_t share_ns, bool last) {
  const TimeNs begin_ns = device.NowNs();
  std::mt19937 random(1);
  const std::vector<int64_t> block_task = BlockTaskNs(subject);
  const std::vector<int64_t> quiet =
      EvictionNs(device, subject, count, begin_ns + share_ns / 3, random);
  std::vector<int64_t> crowded;
  const int fewer = std::max(kLeastEvictions, count / 3);
  {
    const ForeignStreams foreign(kForeignStreams, Foreign::kSleeps);
    crowded = EvictionNs(device, subject, fewer, begin_ns + share_ns / 2, random);
  }
  std::vector<int64_t> contended;
  {
    const ForeignStreams foreign(kForeignStreams, Foreign::kSpins);
    contended = EvictionNs(device, subject, fewer, begin_ns + share_ns * 2 / 3, random);
  }
  std::vector<int64_t> solo;
  std::vector<int64_t> evicted;
  int evictions = 0;
  int none = 0;
  for (int i = 0; i < kTasks; ++i) {
    solo.push_back(TaskNs(device, subject, false, &none));
    evicted.push_back(TaskNs(device, subject, true, &evictions));
  }
  const double ratio =
      static_cast<double>(Quantile(evicted, 0.5)) / static_cast<double>(Quantile(solo, 0.5));
  std::printf(
      "  {\"kernel\": \"%s\", \"claim_batch\": %u, \"block_task_p50_us\": %.1f, "
      "\"block_task_p99_us\": %.1f, "
      "\"eviction_p50_us\": %.1f, \"eviction_p99_us\": %.1f, \"crowded_eviction_p50_us\": %.1f, "
      "\"crowded_eviction_p99_us\": %.1f, \"contended_eviction_p50_us\": %.1f, "
      "\"contended_eviction_p99_us\": %.1f, \"evictions\": %zu, \"solo_ms\": %.3f, "
      "\"evicted_each_ms_over_solo\": %.4f, \"evictions_of_a_task\": %d}%s\n",
      subject.name().c_str(), subject.claim_batch(), Us(Quantile(block_task, 0.5)),
      Us(Quantile(block_task, 0.99)), Us(Quantile(quiet, 0.5)), Us(Quantile(quiet, 0.99)),
      Us(Quantile(crowded, 0.5)), Us(Quantile(crowded, 0.99)), Us(Quantile(contended, 0.5)),
      Us(Quantile(contended, 0.99)), quiet.size(), Us(Quantile(solo, 0.5)) / 1000, ratio,
      evictions / kTasks, last ? "" : ",");
  std::fprintf(stderr,
               "%-14s block task p99 %8.1f us  eviction p50 %8.1f p99 %8.1f  crowded p99 %8.1f  "
               "contended p99 %8.1f  each ms %.4f x solo\n",
               subject.name().c_str(), Us(Quantile(block_task, 0.99)), Us(Quantile(quiet, 0.5)),
               Us(Quantile(quiet, 0.99)), Us(Quantile(crowded, 0.99)),
               Us(Quantile(contended, 0.99)), ratio);
}

}  // namespace

int main(int argc, char** argv) {
  int evictions = 60;
  double solo_ms = 12;
  double seconds = 50;
  std::string only;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--evictions") == 0) evictions = std::max(1, std::atoi(argv[i + 1]));
    if (std::strcmp(argv[i], "--only") == 0) only = argv[i + 1];
    if (std::strcmp(argv[i], "--ms") == 0) solo_ms = std::atof(argv[i + 1]);
    if (std::strcmp(argv[i], "--seconds") == 0) seconds = std::atof(argv[i + 1]);
  }
  auto device = gpushare::cuda::MakeCudaDevice(0, gpushare::core::DeviceProfile());
  if (!device.ok()) Fail(std::string(device.status().message()));
  const auto lane = (*device)->CreateLane({.place = gpushare::core::kWholeDevice,
                                           .priority = gpushare::core::LanePriority::kLow,
                                           .evictable = true});
  Require(lane.status());
  for (int i = 0; i < kIdleLanes; ++i) Require((*device)->CreateLane({}).status());
  std::vector<const gpushare::kernels::CatalogueKernel*> kernels;
  for (const gpushare::kernels::CatalogueKernel& kernel : gpushare::kernels::Catalogue()) {
    const bool chosen = ("," + only + ",").find("," + std::string(kernel.name) + ",") != only.npos;
    if (only.empty() || chosen) kernels.push_back(&kernel);
  }
  std::printf("{\"gpu\": \"%s\", \"kernels\": [\n",
              (*device)->capabilities().profile.gpu_model.c_str());
  uint64_t epoch = 0;
  const TimeNs end_ns = (*device)->NowNs() + static_cast<int64_t>(seconds * 1e9);
  for (size_t i = 0; i < kernels.size(); ++i) {
    Subject subject(**device, *lane, *kernels[i], static_cast<uint32_t>(i + 1), solo_ms, &epoch);
    const int64_t left_ns = std::max<int64_t>(0, end_ns - (*device)->NowNs());
    Report(**device, subject, evictions, left_ns / static_cast<int64_t>(kernels.size() - i),
           i + 1 == kernels.size());
  }
  std::printf("]}\n");
  return 0;
}
