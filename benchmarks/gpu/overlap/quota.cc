#include "benchmarks/gpu/overlap/quota.h"

#include <algorithm>
#include <atomic>
#include <cstdio>

#include "benchmarks/harness/gpu_device.h"

namespace gpushare::benchmarks {
namespace {

constexpr double kVerifySeconds = 0.2;
// Of the probe.
constexpr uint64_t kSpinNs = 20'000;
constexpr uint32_t kRounds = 20;     // block tasks a worker of the quota
constexpr uint32_t kRestRounds = 2;  // block tasks a place for one on the whole GPU

uint32_t Used(const std::vector<uint32_t>& counts) {
  return static_cast<uint32_t>(
      std::count_if(counts.begin(), counts.end(), [](uint32_t count) { return count > 0; }));
}

void CheckSms(Way way, int quota, const std::vector<uint32_t>& by_sm) {
  if (way == Way::kSpread) return;
  if (Used(by_sm) > static_cast<uint32_t>(quota)) {
    Fail("A quota of " + std::to_string(quota) + " SMs ran on " + std::to_string(Used(by_sm)) +
         " under " + NameOf(way) + ".");
  }
  if (way == Way::kPacked) return;
  for (size_t sm = static_cast<size_t>(quota); sm < by_sm.size(); ++sm) {
    if (by_sm[sm] == 0) continue;
    Fail("SM " + std::to_string(sm) + " executed a block task, and its workers retreat.");
  }
}

}  // namespace

QuotaGpu::QuotaGpu() : device_(OpenSeam()) {
  OpenGpu();
  Require(launcher_.Init());
  whole_ = std::make_unique<SeamLane>(*device_, core::kWholeDevice);
}

std::optional<core::PlaceSpec> QuotaGpu::SpecOf(int sms) const {
  for (const bool with_remainder : {false, true}) {
    const int rest = sms - (with_remainder ? profile().Remainder() : 0);
    if (rest < 0 || rest % profile().sm_granularity != 0) continue;
    const int groups = rest / profile().sm_granularity;
    if (groups <= profile().Groups()) return core::PlaceSpec{0, groups, with_remainder};
  }
  return std::nullopt;
}

bool QuotaGpu::MakePacked(int sms) {
  if (packed_.count(sms) != 0) return true;
  const std::optional<core::PlaceSpec> spec = SpecOf(sms);
  if (!spec.has_value()) {
    std::fprintf(stderr, "no partition has %d SMs: this quota is left out\n", sms);
    return false;
  }
  packed_[sms] = std::make_unique<SeamLane>(*device_, Take(device_->CreatePlace(*spec)));
  return true;
}

void QuotaGpu::MakeLcStreams(int sms) {
  if (lc_whole_ == nullptr) lc_whole_ = MakeLcStream(core::kWholeDevice);
  if (lc_rest_.count(sms) != 0) return;
  const core::PlaceSpec taken = SpecOf(sms).value();
  lc_rest_[sms] = MakeLcStream(Take(device_->CreatePlace(
      {taken.groups, profile().Groups() - taken.groups, !taken.with_remainder})));
}

CUstream_st* QuotaGpu::MakeLcStream(core::PlaceIndex place) {
  const core::LaneIndex lane = Take(device_->CreateLane(
      {.place = place, .priority = core::LanePriority::kHigh, .evictable = false}));
  void* const stream = device_->LaneStream(lane);
  if (stream == nullptr) Fail("A lane of the device has no stream.");
  return static_cast<CUstream_st*>(stream);
}

const char* NameOf(Way way) {
  constexpr std::array<const char*, 4> kNames = {"packed", "spread", "retreat", "retreat_x4"};
  return kNames[static_cast<size_t>(way)];
}

LimitedKernel::LimitedKernel(QuotaGpu& gpu, const char* name,
                             int (*variants)(gpushare_kernel_variants*), uint32_t id)
    : gpu_(gpu) {
  task_.variants = VariantsOf(name, variants);
  Prepare(gpu.device(), name, id, task_.variants, &desc_);
}

void LimitedKernel::SetTask(const void* params, size_t params_bytes, kernels::Grid grid) {
  task_.params = params;
  task_.grid = grid;
  params_bytes_ = params_bytes;
}

void LimitedKernel::Start(Way way, int quota) {
  switch (way) {
    case Way::kPacked:
      return StartOnLane(gpu_.packed(quota), 0);
    case Way::kSpread:
      return StartOnLane(gpu_.whole(), quota * workers_per_sm());
    case Way::kRetreat:
      return StartRetreating(quota, 1);
    case Way::kRetreatX4:
      return StartRetreating(quota, kOverfill);
  }
}

std::optional<double> LimitedKernel::PollMs() {
  return retreating_ ? PollRetreatingMs() : PollLaneMs();
}

double LimitedKernel::Ms(Way way, int quota) {
  Start(way, quota);
  return WaitMs();
}

double LimitedKernel::SoloMs() {
  StartOnLane(gpu_.whole(), 0);
  return WaitMs();
}

void LimitedKernel::StartOnLane(SeamLane& lane, int workers) {
  retreating_ = false;
  lane.Launch({.kernel = &desc_,
               .grid = task_.grid,
               .block_tasks = task_.block_tasks(),
               .params = task_.params,
               .params_bytes = params_bytes_,
               .workers = workers});
}

void LimitedKernel::StartRetreating(int quota, uint32_t fill) {
  kernels::FormLauncher& launcher = gpu_.launcher();
  Require(launcher.BeginTask());
  header_ = launcher.Header(task_);
  header_.sm_first = 0;
  header_.sm_count = static_cast<uint32_t>(quota);
  retreating_ = true;
  Require(launcher.LaunchWorkers(task_, header_, fill * launcher.FullWorkers(task_)));
}

std::optional<double> LimitedKernel::PollLaneMs() {
  const auto done = Poll(gpu_.device());
  if (!done.has_value()) return std::nullopt;
  CheckDone(done->block_tasks_done);
  return static_cast<double>(done->end_ns - done->start_ns) / 1e6;
}

std::optional<double> LimitedKernel::PollRetreatingMs() {
  // The last worker writes the sequence, in mapped memory; acquire: after the rest of the record.
  const std::atomic_ref<uint64_t> sequence(header_.completion->sequence);
  if (sequence.load(std::memory_order_acquire) != header_.sequence) return std::nullopt;
  gpushare_worker_completion record = {};
  Require(gpu_.launcher().Finish(header_, &record));
  CheckDone(record.block_tasks_done);
  return static_cast<double>(record.end_globaltimer_ns - record.start_globaltimer_ns) / 1e6;
}

double LimitedKernel::WaitMs() {
  return Await(gpu_.device(), desc_.name, [this] { return PollMs(); });
}

void LimitedKernel::CheckDone(int64_t done) const {
  if (done == int64_t{task_.block_tasks()}) return;
  Fail(desc_.name + " executed " + std::to_string(done) + " block tasks, and the task has " +
       std::to_string(task_.block_tasks()) + ".");
}

BeTask::BeTask(QuotaGpu& gpu, const std::string& name, double solo_ms, uint32_t seed, uint32_t id)
    : gpu_(gpu), name_(name), kernel_(gpu, name_.c_str(), KernelNamed(name).variants, id) {
  kernels::WorkloadOptions options;
  options.solo_ms = solo_ms;
  options.sms = gpu.sms();
  options.seed = seed;
  Require(MakeWorkload(KernelNamed(name), options, &workload_));
  kernel_.SetTask(workload_->params(), workload_->params_bytes(), workload_->grid());
  ClearOutput();
  static_cast<void>(kernel_.SoloMs());
  expected_ = VerifiedChecksum(*workload_, kVerifySeconds);
}

void BeTask::KeepShareOf(int sms) {
  kernels::Grid grid = workload_->grid();
  grid.x = std::max(1U, static_cast<uint32_t>(uint64_t{grid.x} * static_cast<uint32_t>(sms) /
                                              static_cast<uint32_t>(gpu_.sms())));
  kernel_.SetTask(workload_->params(), workload_->params_bytes(), grid);
  ClearOutput();
  static_cast<void>(kernel_.SoloMs());
  expected_ = ChecksumOf(*workload_);
}

void BeTask::ClearOutput() { Require(workload_->ClearOutput()); }

void BeTask::CheckOutput(const char* way, int quota) {
  if (ChecksumOf(*workload_) == expected_) return;
  Fail(name_ + " has another answer under " + way + " of " + std::to_string(quota) +
       " SMs than on the whole GPU.");
}

uint32_t Probe::Seen::sms() const { return Used(by_sm); }

Probe::Probe(QuotaGpu& gpu, uint32_t id)
    : gpu_(gpu), kernel_(gpu, "probe", gpushare_quota_probe_variants, id) {
  const auto full = static_cast<uint32_t>(gpu.sms() * kernel_.workers_per_sm());
  Require(executions_.Allocate(size_t{full} * kRounds * sizeof(uint32_t)));
  Require(by_sm_.Allocate(static_cast<size_t>(gpu.sms()) * sizeof(uint32_t)));
  // The leader is a block too.
  Require(by_block_.Allocate((size_t{full} * kOverfill + 1) * sizeof(uint32_t)));
  static_assert(kRestRounds <= kRounds && kRestRounds <= kOverfill);
  params_ = {executions_.as<uint32_t>(), by_sm_.as<uint32_t>(), by_block_.as<uint32_t>(), kSpinNs};
}

Probe::Seen Probe::Run(Way way, int quota) {
  const auto block_tasks = static_cast<uint32_t>(quota * kernel_.workers_per_sm()) * kRounds;
  kernel_.SetTask(&params_, sizeof(params_), {block_tasks, 1, 1});
  Begin(block_tasks);
  static_cast<void>(kernel_.Ms(way, quota));
  Seen seen = End(block_tasks);
  CheckSms(way, quota, seen.by_sm);
  return seen;
}

void Probe::CheckRest(int quota) {
  const Seen packed = Run(Way::kPacked, quota);
  const auto block_tasks =
      static_cast<uint32_t>(gpu_.sms() * kernel_.workers_per_sm()) * kRestRounds;
  Begin(block_tasks);
  kernel_.SetTask(&params_, sizeof(params_), {block_tasks, 1, 1});
  CUstream_st* const stream = gpu_.lc_rest(quota);
  LaunchGrid(kernel_.task(), stream);
  Synchronize(stream);
  const Seen rest = End(block_tasks);
  for (size_t sm = 0; sm < rest.by_sm.size(); ++sm) {
    if (rest.by_sm[sm] == 0 || packed.by_sm[sm] == 0) continue;
    Fail("SM " + std::to_string(sm) + " belongs to the partition of " + std::to_string(quota) +
         " SMs and to the one of all others.");
  }
}

void Probe::Begin(uint32_t block_tasks) {
  if (block_tasks * sizeof(uint32_t) > executions_.bytes()) {
    Fail("The probe has no room for " + std::to_string(block_tasks) + " block tasks.");
  }
  for (const kernels::DeviceBuffer* buffer : {&executions_, &by_sm_, &by_block_}) Zero(*buffer);
}

Probe::Seen Probe::End(uint32_t block_tasks) const {
  const std::vector<uint32_t> executions = ReadAll<uint32_t>(executions_);
  for (uint32_t i = 0; i < block_tasks; ++i) {
    if (executions[i] == 1) continue;
    Fail("Block task " + std::to_string(i) + " of the probe ran " + std::to_string(executions[i]) +
         " times.");
  }
  return {ReadAll<uint32_t>(by_sm_), Used(ReadAll<uint32_t>(by_block_))};
}

}  // namespace gpushare::benchmarks
