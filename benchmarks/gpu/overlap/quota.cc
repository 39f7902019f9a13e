// The experiment `quota` of overlap_benchmark: a BE quota of whole SMs made in four ways, LC beside
// it, and block tasks taken dynamically or bound to workers (SMGuard 6.2.1 and 5.2). Its parts:
//   be      BE time under a quota of n SMs over the ideal one: packed on a partition, spread, by
//           Filling & Retreating and by the same with four times the workers (quota_be.cc)
//   lc      LC time beside a BE kernel under a quota, over LC alone, and packed against Filling &
//           Retreating; BE's time with it (quota_lc.cc)
//   taking  block tasks of equal and of skewed lengths, taken from a counter or bound to workers
//           (quota_taking.cc)
//
// All ways take turns; medians. One JSON line a result on stdout, a table on stderr. Not 0: a wrong
// answer, a block task that did not run once, or one outside of its SMs. About 40 s with all parts.
//
// Options: [--parts be,lc,taking] [--seed N] [--only BE_KERNEL,...]
//   be, taking: [--repeats N] [--ms SOLO_MS] [--quotas 8,16,...]
//   lc: [--lc-quotas 8,32,...] [--lc-launches N] [--lc-us LC_SOLO_US] [--be-ms BE_LAUNCH_MS]
//       [--lc-seconds LIMIT]

#include "benchmarks/gpu/overlap/quota.h"

#include <algorithm>
#include <atomic>
#include <cstdio>

#include "benchmarks/gpu/overlap/experiments.h"
#include "benchmarks/harness/gpu_forms.h"
#include "benchmarks/harness/json.h"

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

QuotaOptions Parse(Arguments& given) {
  QuotaOptions options;
  options.parts = given.List("--parts", {"be", "lc", "taking"});
  options.seed = static_cast<uint32_t>(given.Seed());
  options.only = given.List("--only", {});
  options.repeats = given.Number("--repeats", options.repeats, 1);
  options.solo_ms = given.Real("--ms", options.solo_ms, 0.1);
  options.quotas = given.Numbers("--quotas", {8, 16, 32, 48, 64, 84, 100, 124}, 1);
  options.lc_quotas = given.Numbers("--lc-quotas", {8, 32, 64, 96, 124}, 1);
  options.lc_launches = given.Number("--lc-launches", options.lc_launches, 1);
  options.lc_us = given.Real("--lc-us", options.lc_us, 10);
  options.be_ms = given.Real("--be-ms", options.be_ms, 2);
  options.lc_seconds = given.Real("--lc-seconds", options.lc_seconds, 0);
  given.Finish();
  for (const std::string& part : options.parts) {
    if (part == "be" || part == "lc" || part == "taking") continue;
    throw Failure("There is no part '" + part + "': there are be, lc and taking.", kBadUse);
  }
  return options;
}

}  // namespace

const char* NameOf(Way way) {
  constexpr std::array<const char*, 5> kNames = {"packed", "spread", "retreat", "retreat_x4",
                                                 "solo"};
  return kNames[static_cast<size_t>(way)];
}

void Limited::Start(Way way, int quota) {
  Require(launcher_.BeginTask());
  header_ = launcher_.Header(task_);
  const uint32_t in_quota = task_.variants.workers_per_sm * static_cast<uint32_t>(quota);
  uint32_t workers = launcher_.FullWorkers(task_);
  launcher_.UseStream(way == Way::kPacked ? gpu_.Quota(quota).be : gpu_.whole().cuda);
  if (way == Way::kPacked || way == Way::kSpread) workers = in_quota;
  if (way == Way::kRetreat || way == Way::kRetreatX4) {
    header_.sm_first = 0;
    header_.sm_count = static_cast<uint32_t>(quota);
  }
  if (way == Way::kRetreatX4) workers *= kOverfill;
  Require(launcher_.LaunchWorkers(task_, header_, workers));
}

std::optional<double> Limited::PollMs() {
  // The last worker writes the sequence, in mapped memory; acquire: after the rest of the record.
  const std::atomic_ref<uint64_t> sequence(header_.completion->sequence);
  if (sequence.load(std::memory_order_acquire) != header_.sequence) return std::nullopt;
  gpushare_worker_completion record = {};
  Require(launcher_.Finish(header_, &record));
  if (record.block_tasks_done != task_.block_tasks()) {
    Fail("A launch executed " + std::to_string(record.block_tasks_done) +
         " block tasks, and the task has " + std::to_string(task_.block_tasks()) + ".");
  }
  return static_cast<double>(record.end_globaltimer_ns - record.start_globaltimer_ns) / 1e6;
}

double Limited::Ms(Way way, int quota) {
  Start(way, quota);
  return AwaitMs(std::string("A launch under ") + NameOf(way), [this] { return PollMs(); });
}

BeTask::BeTask(OverlapGpu& gpu, const std::string& name, double solo_ms)
    : side(gpu, name, {}, solo_ms), limited(gpu, side.launcher(), side.task()) {
  side.Verify(kVerifySeconds);
}

void BeTask::CheckOutput(const char* way, int quota) const {
  side.CheckBits(std::string("under ") + way + " of " + std::to_string(quota) + " SMs");
}

uint32_t Probe::Seen::sms() const { return Used(by_sm); }

Probe::Probe(OverlapGpu& gpu) : gpu_(gpu), limited_(gpu, launcher_, task_) {
  Require(launcher_.Init());
  task_.variants = VariantsOf("probe", gpushare_quota_probe_variants);
  const uint32_t full = launcher_.FullWorkers(task_);
  Require(executions_.Allocate(size_t{full} * kRounds * sizeof(uint32_t)));
  Require(by_sm_.Allocate(static_cast<size_t>(gpu.sms()) * sizeof(uint32_t)));
  Require(by_block_.Allocate(size_t{full} * kOverfill * sizeof(uint32_t)));
  static_assert(kRestRounds <= kRounds && kRestRounds <= kOverfill);
  params_ = {executions_.as<uint32_t>(), by_sm_.as<uint32_t>(), by_block_.as<uint32_t>(), kSpinNs};
  task_.params = &params_;
}

Probe::Seen Probe::Run(Way way, int quota) {
  const uint32_t block_tasks =
      static_cast<uint32_t>(quota) * task_.variants.workers_per_sm * kRounds;
  Begin(block_tasks);
  static_cast<void>(limited_.Ms(way, quota));
  Seen seen = End(block_tasks);
  CheckSms(way, quota, seen.by_sm);
  return seen;
}

void Probe::CheckRest(int quota) {
  const Seen packed = Run(Way::kPacked, quota);
  const uint32_t block_tasks = launcher_.FullWorkers(task_) * kRestRounds;
  Begin(block_tasks);
  const CUstream stream = gpu_.Quota(quota).lc;
  LaunchGrid(task_, stream);
  Synchronize(stream);
  const Seen rest = End(block_tasks);
  for (size_t sm = 0; sm < rest.by_sm.size(); ++sm) {
    if (rest.by_sm[sm] == 0 || packed.by_sm[sm] == 0) continue;
    Fail("SM " + std::to_string(sm) + " belongs to the partition of " + std::to_string(quota) +
         " SMs and to the one of all others.");
  }
}

void Probe::Begin(uint32_t block_tasks) {
  task_.grid = {block_tasks, 1, 1};
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

std::vector<int> GrantedQuotas(const OverlapGpu& gpu, const std::vector<int>& wanted) {
  std::vector<int> quotas;
  for (const int quota : wanted) {
    if (gpu.HasQuota(quota)) {
      quotas.push_back(quota);
    } else {
      std::fprintf(stderr, "no partition has %d SMs: this quota is left out\n", quota);
    }
  }
  return quotas;
}

int RunQuota(Arguments& given) {
  const QuotaOptions options = Parse(given);
  OverlapGpu gpu;
  PrintLine({{"experiment", "machine"},
             {"gpu", gpu.model()},
             {"sms", gpu.sms()},
             {"repeats", options.repeats},
             {"solo_ms", Rounded(options.solo_ms, 2)},
             {"lc_us", Rounded(options.lc_us, 1)},
             {"be_ms", Rounded(options.be_ms, 2)},
             {"seed", options.seed},
             {kConnections, UseManyConnections()}});
  for (const std::string& part : options.parts) {
    if (part == "be") RunBe(gpu, options);
    if (part == "lc") RunLc(gpu, options);
    if (part == "taking") RunTaking(gpu.sms(), options);
  }
  return 0;
}

}  // namespace gpushare::benchmarks
