// A BE quota of whole SMs made in four ways, and block tasks taken dynamically or bound to workers
// (SMGuard 6.2.1 and 5.2), on a GPU.
//
// Quotas: a task of fixed size under a quota of n SMs, as its time over the ideal one, which is its
// time on all SMs times all SMs / n. The ways:
//   packed      ours: workers on a green context of n SMs, launched by the device seam
//   spread      ours: n SMs' worth of workers, placed anywhere, launched by the device seam
//   retreat     Filling & Retreating: workers for the whole GPU; one that finds itself on an SM
//               outside of the n leaves at once
//   retreat_x4  the same with four times the workers: blocks that start on an SM that others have
//               just left retreat too, so that one filling may not fill the quota
// A kernel that records where its block tasks ran shows, for each way, that each ran once and on
// how many SMs.
//
// Taking: block tasks of equal and of seeded, skewed lengths, taken from a counter or bound to
// workers at the launch as ranges (the paper) or by stride: time over dynamic, and the share of
// worker time that is lost in the tail.
//
// All ways take turns; medians. One JSON line a result on stdout, a table on stderr. Not 0: a wrong
// answer, a block task that did not run once, or one outside of its SMs.
//
// Use: quota_benchmark [--repeats N] [--ms SOLO_MS] [--only KERNEL] [--quotas 8,16,...] [--seed N]

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "benchmarks/gpu/quota_kernels.h"
#include "src/core/device.h"
#include "src/cuda/cuda_device.h"
#include "src/cuda/kernels/catalogue.h"
#include "src/cuda/kernels/device_buffer.h"
#include "src/cuda/kernels/form_launcher.h"

namespace {

using gpushare::benchmarks::QuotaProbeParams;
using gpushare::benchmarks::SkewedParams;
using gpushare::benchmarks::Taking;
using gpushare::core::Device;
using gpushare::core::DeviceCompletion;
using gpushare::core::KernelDesc;
using gpushare::core::LaneIndex;
using gpushare::core::LaunchRequest;
using gpushare::core::TimeNs;
using gpushare::kernels::DeviceBuffer;
using gpushare::kernels::FormLauncher;
using gpushare::kernels::FormTask;

// No launch here lasts longer: one that does is hung.
constexpr int64_t kHungNs = 20'000'000'000;
constexpr double kVerifySeconds = 0.2;
constexpr uint64_t kProbeSpinNs = 20'000;
constexpr uint32_t kProbeRounds = 20;  // block tasks a worker of the quota
constexpr uint32_t kOverfill = 4;
constexpr double kSkewedBlockTaskUs = 30;
constexpr uint32_t kSkewedRounds = 20;

struct Arguments {
  int repeats = 7;
  double solo_ms = 5;
  std::string only;
  uint32_t seed = 1;
  std::vector<int> quotas = {8, 16, 32, 48, 64, 84, 100, 124};
};

[[noreturn]] void Fail(const std::string& why) {
  std::fprintf(stderr, "quota_benchmark: %s\n", why.c_str());
  std::exit(1);
}
void Require(const absl::Status& status) {
  if (!status.ok()) Fail(std::string(status.message()));
}
void Require(const gpushare::kernels::Status& status) {
  if (!status.ok()) Fail(status.message);
}
void Cuda(cudaError_t code, const char* step) {
  if (code != cudaSuccess) Fail(std::string(step) + ": " + cudaGetErrorString(code));
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

enum class Way : uint8_t { kPacked, kSpread, kRetreat, kRetreatX4 };
constexpr std::array<Way, 4> kWays = {Way::kPacked, Way::kSpread, Way::kRetreat, Way::kRetreatX4};
const char* NameOf(Way way) {
  constexpr std::array<const char*, 4> kNames = {"packed", "spread", "retreat", "retreat_x4"};
  return kNames[static_cast<size_t>(way)];
}

// One evictable BE lane and the epoch that its word has reached.
struct Lane {
  LaneIndex index = gpushare::core::kNoLane;
  uint64_t epoch = 0;
};

// The GPU, by the device seam and by the runtime alone.
class Gpu {
 public:
  Gpu() {
    auto device = gpushare::cuda::MakeCudaDevice(0, gpushare::core::DeviceProfile());
    if (!device.ok()) Fail(std::string(device.status().message()));
    device_ = *std::move(device);
    Cuda(cudaSetDevice(0), "cudaSetDevice");
    Require(launcher_.Init());
    whole_.index = MakeLane(gpushare::core::kWholeDevice);
  }

  int sms() const { return device_->capabilities().profile.sm_count; }
  std::string model() const { return device_->capabilities().profile.gpu_model; }
  Device& device() { return *device_; }
  FormLauncher& launcher() { return launcher_; }
  Lane& whole() { return whole_; }
  // Of a green context of exactly so many SMs; null where the hardware grants none of that size.
  Lane* Packed(int sms) {
    const auto found = packed_.find(sms);
    return found == packed_.end() ? nullptr : &found->second;
  }

  // Before the first launch. Whole groups, or whole groups and what they leave over.
  void MakePlace(int sms) {
    const auto& profile = device_->capabilities().profile;
    for (const bool with_remainder : {false, true}) {
      const int rest = sms - (with_remainder ? profile.Remainder() : 0);
      if (rest < 0 || rest % profile.sm_granularity != 0) continue;
      const int groups = rest / profile.sm_granularity;
      if (groups > profile.Groups() || packed_.count(sms) != 0) continue;
      const auto place = device_->CreatePlace({0, groups, with_remainder});
      Require(place.status());
      packed_[sms].index = MakeLane(*place);
      return;
    }
    std::fprintf(stderr, "no partition has %d SMs: this quota is left out\n", sms);
  }

 private:
  LaneIndex MakeLane(gpushare::core::PlaceIndex place) {
    const auto lane = device_->CreateLane(
        {.place = place, .priority = gpushare::core::LanePriority::kLow, .evictable = true});
    Require(lane.status());
    return *lane;
  }

  std::unique_ptr<Device> device_;
  FormLauncher launcher_;
  Lane whole_;
  std::map<int, Lane> packed_;
};

// One kernel with one task, launched in every way.
class Subject {
 public:
  Subject(Gpu& gpu, const char* name, int (*variants)(gpushare_kernel_variants*), uint32_t id)
      : gpu_(gpu) {
    if (variants(&task_.variants) != 0) Fail(std::string(name) + " does not load");
    desc_.id = gpushare::core::KernelId{id};
    desc_.name = name;
    desc_.threads_per_block = static_cast<int32_t>(task_.variants.threads_per_block);
    desc_.dynamic_shared_memory_bytes = static_cast<int32_t>(task_.variants.dynamic_shared_bytes);
    desc_.registers_per_thread = 0;
    desc_.workers_per_sm_max = 0;
    desc_.original_function = task_.variants.original_function;
    desc_.worker_function = task_.variants.worker_function;
    desc_.evictable = true;
    Require(gpu.device().DescribeKernel(desc_));
    Require(gpu.device().PrepareKernel(desc_));
  }

  void SetTask(const void* params, size_t params_bytes, gpushare::kernels::Grid grid) {
    task_.params = params;
    task_.grid = grid;
    params_bytes_ = params_bytes;
  }
  int workers_per_sm() const { return desc_.workers_per_sm_max; }
  uint32_t block_tasks() const { return task_.block_tasks(); }

  // Device time of the whole task, which must have executed every block task.
  double SoloMs() { return SeamMs(gpu_.whole(), 0); }
  double Ms(Way way, int quota) {
    if (way == Way::kPacked) return SeamMs(*gpu_.Packed(quota), 0);
    if (way == Way::kSpread) return SeamMs(gpu_.whole(), quota * workers_per_sm());
    return RetreatMs(quota, way == Way::kRetreatX4 ? kOverfill : 1);
  }

 private:
  double SeamMs(Lane& lane, int workers) {
    LaunchRequest request;
    request.launch = gpushare::core::LaunchId{++launches_};
    request.lane = lane.index;
    request.form = gpushare::core::Form::kWorkers;
    request.kernel = &desc_;
    request.block_count = block_tasks();
    request.grid_x = static_cast<int32_t>(task_.grid.x);
    request.grid_y = static_cast<int32_t>(task_.grid.y);
    request.grid_z = static_cast<int32_t>(task_.grid.z);
    request.workers = workers;
    request.counter = 0;
    request.reset_counter = true;
    request.epoch = ++lane.epoch;
    request.arguments = task_.params;
    request.arguments_bytes = static_cast<uint32_t>(params_bytes_);
    Require(gpu_.device().Launch(request));
    const DeviceCompletion done = Wait();
    CheckDone(done.block_tasks_done);
    return static_cast<double>(done.end_ns - done.start_ns) / 1e6;
  }

  DeviceCompletion Wait() {
    const TimeNs give_up_ns = gpu_.device().NowNs() + kHungNs;
    std::array<DeviceCompletion, 4> out;
    while (gpu_.device().NowNs() < give_up_ns) {
      if (gpu_.device().PollCompletions(absl::MakeSpan(out)) > 0) return out[0];
    }
    Fail(desc_.name + " does not complete");
  }

  double RetreatMs(int quota, uint32_t fill) {
    FormLauncher& launcher = gpu_.launcher();
    Require(launcher.BeginTask());
    gpushare_worker_launch header = launcher.Header(task_);
    header.sm_first = 0;
    header.sm_count = static_cast<uint32_t>(quota);
    Require(launcher.LaunchWorkers(task_, header, fill * launcher.FullWorkers(task_)));
    gpushare_worker_completion record = {};
    Require(launcher.Finish(header, &record));
    CheckDone(record.block_tasks_done);
    return static_cast<double>(record.end_globaltimer_ns - record.start_globaltimer_ns) / 1e6;
  }

  void CheckDone(int64_t done) {
    if (done == int64_t{block_tasks()}) return;
    Fail(desc_.name + " executed " + std::to_string(done) + " block tasks, and the task has " +
         std::to_string(block_tasks()));
  }

  Gpu& gpu_;
  KernelDesc desc_;
  FormTask task_;
  size_t params_bytes_ = 0;
  uint64_t launches_ = 0;
};

// --- where block tasks run -----------------------------------------------------------------------

std::vector<uint32_t> Words(const DeviceBuffer& buffer) {
  std::vector<uint32_t> words(buffer.bytes() / sizeof(uint32_t));
  Require(buffer.Read(0, buffer.bytes(), words.data()));
  return words;
}

void Zero(const DeviceBuffer& buffer) {
  Cuda(cudaMemset(buffer.data(), 0, buffer.bytes()), "cudaMemset");
  Cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

uint32_t Used(const std::vector<uint32_t>& counts) {
  return static_cast<uint32_t>(
      std::count_if(counts.begin(), counts.end(), [](uint32_t count) { return count > 0; }));
}

struct Probed {
  uint32_t sms = 0;      // that executed a block task
  uint32_t workers = 0;  // that executed one
};

class Probe {
 public:
  explicit Probe(Gpu& gpu) : gpu_(gpu), subject_(gpu, "probe", gpushare_quota_probe_variants, 100) {
    const auto full = static_cast<uint32_t>(gpu.sms() * subject_.workers_per_sm());
    Require(executions_.Allocate(size_t{full} * kProbeRounds * sizeof(uint32_t)));
    Require(by_sm_.Allocate(static_cast<size_t>(gpu.sms()) * sizeof(uint32_t)));
    // The leader is a block too.
    Require(by_block_.Allocate((size_t{full} * kOverfill + 1) * sizeof(uint32_t)));
    params_ = {executions_.as<uint32_t>(), by_sm_.as<uint32_t>(), by_block_.as<uint32_t>(),
               kProbeSpinNs};
  }

  Probed Run(Way way, int quota) {
    const auto block_tasks =
        static_cast<uint32_t>(quota * subject_.workers_per_sm()) * kProbeRounds;
    subject_.SetTask(&params_, sizeof(params_), {block_tasks, 1, 1});
    for (const DeviceBuffer* buffer : {&executions_, &by_sm_, &by_block_}) Zero(*buffer);
    static_cast<void>(subject_.Ms(way, quota));
    const std::vector<uint32_t> executions = Words(executions_);
    for (uint32_t i = 0; i < block_tasks; ++i) {
      if (executions[i] == 1) continue;
      Fail("block task " + std::to_string(i) + " of the probe ran " +
           std::to_string(executions[i]) + " times under " + NameOf(way));
    }
    const std::vector<uint32_t> by_sm = Words(by_sm_);
    CheckSms(way, quota, by_sm);
    return {Used(by_sm), Used(Words(by_block_))};
  }

 private:
  // A quota may be missed (fewer SMs), never passed.
  static void CheckSms(Way way, int quota, const std::vector<uint32_t>& by_sm) {
    if (way == Way::kSpread) return;
    if (Used(by_sm) > static_cast<uint32_t>(quota)) {
      Fail(std::string("a quota of ") + std::to_string(quota) + " SMs ran on " +
           std::to_string(Used(by_sm)) + " under " + NameOf(way));
    }
    if (way == Way::kPacked) return;
    for (size_t sm = static_cast<size_t>(quota); sm < by_sm.size(); ++sm) {
      if (by_sm[sm] == 0) continue;
      Fail("SM " + std::to_string(sm) + " executed a block task, and its workers retreat");
    }
  }

  Gpu& gpu_;
  Subject subject_;
  DeviceBuffer executions_;
  DeviceBuffer by_sm_;
  DeviceBuffer by_block_;
  QuotaProbeParams params_ = {};
};

// --- quotas --------------------------------------------------------------------------------------

class QuotaSubject {
 public:
  QuotaSubject(Gpu& gpu, const gpushare::kernels::CatalogueKernel& kernel,
               const Arguments& arguments, uint32_t id)
      : name_(kernel.name), subject_(gpu, kernel.name, kernel.variants, id) {
    gpushare::kernels::WorkloadOptions options;
    options.solo_ms = arguments.solo_ms;
    options.sms = gpu.sms();
    options.seed = arguments.seed;
    Require(MakeWorkload(kernel, options, &workload_));
    subject_.SetTask(workload_->params(), workload_->params_bytes(), workload_->grid());
    static_cast<void>(subject_.SoloMs());
    expected_ = Answer([this] { return subject_.SoloMs(); });
    gpushare::kernels::Verification verification;
    Require(workload_->Verify(kVerifySeconds, &verification));
    if (verification.wrong > 0 || verification.checked == 0) {
      Fail(name_ + " is wrong: " + verification.first_wrong);
    }
  }

  const std::string& name() const { return name_; }
  int workers_per_sm() const { return subject_.workers_per_sm(); }
  double SoloMs() { return subject_.SoloMs(); }
  double Ms(Way way, int quota) { return subject_.Ms(way, quota); }
  void CheckAnswer(Way way, int quota) {
    if (Answer([&] { return subject_.Ms(way, quota); }) == expected_) return;
    Fail(name_ + " has another answer under " + NameOf(way) + " of " + std::to_string(quota) +
         " SMs than on the whole GPU");
  }

 private:
  template <class Function>
  uint64_t Answer(Function run) {
    uint64_t checksum = 0;
    Require(workload_->ClearOutput());
    static_cast<void>(run());
    Require(workload_->Checksum(&checksum));
    return checksum;
  }

  std::string name_;
  Subject subject_;
  std::unique_ptr<gpushare::kernels::Workload> workload_;
  uint64_t expected_ = 0;
};

void ReportQuota(Gpu& gpu, Probe& probe, QuotaSubject& subject, int quota, int repeats) {
  std::map<Way, std::vector<double>> ms;
  std::vector<double> solo;
  for (int i = 0; i < repeats; ++i) {
    solo.push_back(subject.SoloMs());
    // Whoever comes first changes from round to round.
    for (size_t w = 0; w < kWays.size(); ++w) {
      const Way way = kWays[(w + static_cast<size_t>(i)) % kWays.size()];
      ms[way].push_back(subject.Ms(way, quota));
    }
  }
  const double solo_ms = Median(solo);
  const double ideal_ms = solo_ms * gpu.sms() / quota;
  std::printf(
      "{\"experiment\": \"quota\", \"kernel\": \"%s\", \"quota_sms\": %d, \"sms\": %d, "
      "\"solo_ms\": %.4f, \"ideal_ms\": %.4f, \"quota_workers\": %d",
      subject.name().c_str(), quota, gpu.sms(), solo_ms, ideal_ms,
      quota * subject.workers_per_sm());
  std::fprintf(stderr, "%-10s %4d", subject.name().c_str(), quota);
  for (const Way way : kWays) {
    subject.CheckAnswer(way, quota);
    const Probed probed = probe.Run(way, quota);
    const double over_ideal = Median(ms[way]) / ideal_ms;
    std::printf(
        ", \"%s\": {\"ms\": %.4f, \"over_ideal\": %.4f, \"probe_sms\": %u, "
        "\"probe_workers\": %u}",
        NameOf(way), Median(ms[way]), over_ideal, probed.sms, probed.workers);
    std::fprintf(stderr, "  %10.4f (%3u SMs)", over_ideal, probed.sms);
  }
  const double packed_ms = Median(ms[Way::kPacked]);
  std::printf(
      ", \"retreat_over_packed\": %.4f, \"retreat_x4_over_packed\": %.4f, "
      "\"spread_over_packed\": %.4f, \"repeats\": %d, \"answers\": \"right\"}\n",
      Median(ms[Way::kRetreat]) / packed_ms, Median(ms[Way::kRetreatX4]) / packed_ms,
      Median(ms[Way::kSpread]) / packed_ms, repeats);
  std::fprintf(stderr, "  retreat / packed %.4f\n", Median(ms[Way::kRetreat]) / packed_ms);
  std::fflush(stdout);
}

void RunQuotas(Gpu& gpu, const Arguments& arguments) {
  for (const int quota : arguments.quotas) gpu.MakePlace(quota);
  Probe probe(gpu);
  std::fprintf(stderr, "time over ideal (SMs that a probe saw)\n%-10s %4s", "kernel", "SMs");
  for (const Way way : kWays) std::fprintf(stderr, "  %20s", NameOf(way));
  std::fprintf(stderr, "\n");
  uint32_t id = 0;
  for (const char* name : {"sincos", "streaming", "ffma"}) {
    if (!arguments.only.empty() && arguments.only != name) continue;
    QuotaSubject subject(gpu, *gpushare::kernels::FindKernel(name), arguments, ++id);
    for (const int quota : arguments.quotas) {
      if (gpu.Packed(quota) == nullptr) continue;
      ReportQuota(gpu, probe, subject, quota, arguments.repeats);
    }
  }
}

// --- taking --------------------------------------------------------------------------------------

constexpr std::array<Taking, 3> kTakings = {Taking::kDynamic, Taking::kRange, Taking::kStride};

// Lengths of block tasks, of mean about 1.
std::vector<double> Lengths(const std::string& spread, uint32_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<double> lengths(count, 1.0);
  std::lognormal_distribution<double> lognormal(-0.5, 1.0);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  // Pareto of shape 1.5 and mean 1, cut at 50 times that.
  constexpr double kShape = 1.5;
  constexpr double kCut = 50;
  for (uint32_t i = 0; i < count; ++i) {
    if (spread == "linear") lengths[i] = 0.1 + 1.8 * i / (count - 1);
    if (spread == "lognormal") lengths[i] = lognormal(random);
    // A pattern that divides the number of workers, as rows of a matrix may.
    if (spread == "periodic") lengths[i] = i % 16 == 0 ? 8.5 : 0.5;
    if (spread == "pareto") {
      const double least = (kShape - 1) / kShape;
      lengths[i] = std::min(kCut, least * std::pow(1 - uniform(random), -1 / kShape));
    }
  }
  return lengths;
}

// The LCG after `iterations` steps from `start`, by doubling.
uint32_t SkewedResult(uint32_t start, uint32_t iterations) {
  uint32_t factor = gpushare::benchmarks::kSkewedFactor;
  uint32_t step = gpushare::benchmarks::kSkewedStep;
  uint32_t all_factor = 1;
  uint32_t all_step = 0;
  for (; iterations > 0; iterations >>= 1) {
    if ((iterations & 1) != 0) {
      all_step = all_step * factor + step;
      all_factor *= factor;
    }
    step = step * factor + step;
    factor *= factor;
  }
  return all_factor * start + all_step;
}

struct Taken {
  double ms = 0;
  double idle = 0;  // share of worker time between a worker's end and the last one's
};

class Skewed {
 public:
  explicit Skewed(int sms)
      : workers_(static_cast<uint32_t>(sms) * gpushare::benchmarks::kSkewedWorkersPerSm),
        block_tasks_(workers_ * kSkewedRounds) {
    const size_t words = size_t{block_tasks_} * sizeof(uint32_t);
    Require(iterations_buffer_.Allocate(words));
    Require(executions_.Allocate(words));
    Require(results_.Allocate(words * gpushare::benchmarks::kSkewedThreads));
    Require(counter_.Allocate(sizeof(uint32_t)));
    Require(begin_.Allocate(size_t{workers_} * sizeof(uint64_t)));
    Require(end_.Allocate(size_t{workers_} * sizeof(uint64_t)));
    Cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  }
  ~Skewed() { cudaStreamDestroy(stream_); }
  Skewed(const Skewed&) = delete;
  Skewed& operator=(const Skewed&) = delete;

  uint32_t block_tasks() const { return block_tasks_; }

  void SetLengths(const std::vector<double>& lengths, double iterations_of_mean) {
    iterations_.clear();
    for (const double length : lengths) {
      iterations_.push_back(
          static_cast<uint32_t>(std::max(1.0, std::round(length * iterations_of_mean))));
    }
    Cuda(cudaMemcpy(iterations_buffer_.data(), iterations_.data(), iterations_buffer_.bytes(),
                    cudaMemcpyHostToDevice),
         "cudaMemcpy");
  }

  Taken Run(Taking taking) {
    for (const DeviceBuffer* buffer : {&counter_, &executions_}) Zero(*buffer);
    const SkewedParams params = {iterations_buffer_.as<uint32_t>(),
                                 results_.as<uint32_t>(),
                                 executions_.as<uint32_t>(),
                                 counter_.as<uint32_t>(),
                                 begin_.as<uint64_t>(),
                                 end_.as<uint64_t>(),
                                 block_tasks_,
                                 taking};
    Require(gpushare::kernels::CudaStatus(
        gpushare::benchmarks::LaunchSkewed(params, workers_, stream_), "SkewedWorkers<<<>>>"));
    Cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    std::vector<uint64_t> begin(workers_);
    std::vector<uint64_t> end(workers_);
    Require(begin_.Read(0, begin_.bytes(), begin.data()));
    Require(end_.Read(0, end_.bytes(), end.data()));
    const uint64_t first = *std::min_element(begin.begin(), begin.end());
    const uint64_t last = *std::max_element(end.begin(), end.end());
    double idle_ns = 0;
    for (const uint64_t at : end) idle_ns += static_cast<double>(last - at);
    const auto span_ns = static_cast<double>(last - first);
    return {span_ns / 1e6, idle_ns / (span_ns * workers_)};
  }

  // After a run: each block task once, each result exact.
  void Check(const std::string& what) {
    const std::vector<uint32_t> executions = Words(executions_);
    const std::vector<uint32_t> results = Words(results_);
    for (uint32_t b = 0; b < block_tasks_; ++b) {
      if (executions[b] != 1) {
        Fail("block task " + std::to_string(b) + " of " + what + " ran " +
             std::to_string(executions[b]) + " times");
      }
      for (uint32_t t = 0; t < gpushare::benchmarks::kSkewedThreads; ++t) {
        const uint32_t start = gpushare::benchmarks::SkewedStart(b, t);
        if (results[size_t{b} * gpushare::benchmarks::kSkewedThreads + t] ==
            SkewedResult(start, iterations_[b])) {
          continue;
        }
        Fail("thread " + std::to_string(t) + " of block task " + std::to_string(b) + " of " + what +
             " has a wrong result");
      }
    }
  }
  void ClearResults() { Zero(results_); }

 private:
  uint32_t workers_;
  uint32_t block_tasks_;
  std::vector<uint32_t> iterations_;
  DeviceBuffer iterations_buffer_;
  DeviceBuffer executions_;
  DeviceBuffer results_;
  DeviceBuffer counter_;
  DeviceBuffer begin_;
  DeviceBuffer end_;
  cudaStream_t stream_ = nullptr;
};

// Iterations of a block task that takes kSkewedBlockTaskUs at full occupancy.
double IterationsOfMean(Skewed& skewed) {
  constexpr double kTrial = 2000;
  skewed.SetLengths(std::vector<double>(skewed.block_tasks(), 1.0), kTrial);
  std::vector<double> ms;
  for (int i = 0; i < 5; ++i) ms.push_back(skewed.Run(Taking::kStride).ms);
  const double block_task_us = Median(ms) * 1000 / kSkewedRounds;
  return std::max(16.0, kTrial * kSkewedBlockTaskUs / block_task_us);
}

void ReportTaking(Skewed& skewed, const std::string& spread, const Arguments& arguments) {
  std::array<std::vector<double>, 3> ms;
  std::array<std::vector<double>, 3> idle;
  for (int i = -2; i < 3 * arguments.repeats; ++i) {
    for (size_t t = 0; t < kTakings.size(); ++t) {
      const size_t at = (t + static_cast<size_t>(i + 3)) % kTakings.size();
      if (i == -2) skewed.ClearResults();
      const Taken taken = skewed.Run(kTakings[at]);
      if (i == -2) skewed.Check(spread);
      if (i < 0) continue;
      ms[at].push_back(taken.ms);
      idle[at].push_back(taken.idle);
    }
  }
  const double dynamic_ms = Median(ms[0]);
  std::printf(
      "{\"experiment\": \"taking\", \"lengths\": \"%s\", \"block_tasks\": %u, "
      "\"dynamic_ms\": %.4f, \"range_ms\": %.4f, \"stride_ms\": %.4f, "
      "\"range_over_dynamic\": %.4f, \"stride_over_dynamic\": %.4f, "
      "\"dynamic_idle\": %.4f, \"range_idle\": %.4f, \"stride_idle\": %.4f, "
      "\"repeats\": %d, \"seed\": %u, \"answers\": \"right\"}\n",
      spread.c_str(), skewed.block_tasks(), dynamic_ms, Median(ms[1]), Median(ms[2]),
      Median(ms[1]) / dynamic_ms, Median(ms[2]) / dynamic_ms, Median(idle[0]), Median(idle[1]),
      Median(idle[2]), 3 * arguments.repeats, arguments.seed);
  std::fprintf(stderr, "%-10s dynamic %8.4f ms  range %.4f x  stride %.4f x  idle %.3f %.3f %.3f\n",
               spread.c_str(), dynamic_ms, Median(ms[1]) / dynamic_ms, Median(ms[2]) / dynamic_ms,
               Median(idle[0]), Median(idle[1]), Median(idle[2]));
  std::fflush(stdout);
}

void RunTaking(int sms, const Arguments& arguments) {
  Skewed skewed(sms);
  const double iterations = IterationsOfMean(skewed);
  std::fprintf(stderr, "block tasks bound to workers over taken dynamically\n");
  for (const char* spread : {"uniform", "linear", "lognormal", "pareto", "periodic"}) {
    skewed.SetLengths(Lengths(spread, skewed.block_tasks(), arguments.seed), iterations);
    ReportTaking(skewed, spread, arguments);
  }
}

Arguments Parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 >= argc) Fail(name + " has no value");
    const std::string value = argv[i + 1];
    if (name == "--repeats") {
      arguments.repeats = std::max(1, std::atoi(value.c_str()));
    } else if (name == "--ms") {
      arguments.solo_ms = std::max(0.1, std::atof(value.c_str()));
    } else if (name == "--only") {
      arguments.only = value;
    } else if (name == "--seed") {
      arguments.seed = static_cast<uint32_t>(std::atoi(value.c_str()));
    } else if (name == "--quotas") {
      arguments.quotas.clear();
      for (size_t at = 0; at != std::string::npos && at < value.size();) {
        arguments.quotas.push_back(std::max(1, std::atoi(value.c_str() + at)));
        const size_t comma = value.find(',', at);
        at = comma == std::string::npos ? comma : comma + 1;
      }
    } else {
      Fail("the option " + name + " is not known");
    }
  }
  return arguments;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = Parse(argc, argv);
  Gpu gpu;
  std::printf(
      "{\"experiment\": \"machine\", \"gpu\": \"%s\", \"sms\": %d, \"repeats\": %d, "
      "\"solo_ms\": %.2f, \"seed\": %u}\n",
      gpu.model().c_str(), gpu.sms(), arguments.repeats, arguments.solo_ms, arguments.seed);
  RunQuotas(gpu, arguments);
  RunTaking(gpu.sms(), arguments);
  return 0;
}
