// The part `lc` of the experiment `quota`: the time of an LC launch beside a BE kernel that holds n
// SMs, over its time alone in the same run. SMGuard 6.2.1 compares LC times under CapSM with those
// under Filling & Retreating and finds 1.049 on average; the ratios over `retreat` here are that
// figure.
//
// BE holds its quota in three ways, LC runs in two places:
//   packed_partition  BE on a partition of n SMs, LC on the partition of the other SMs
//   packed_whole      the same BE, LC on the whole GPU: its blocks go where there is room
//   retreat           BE by Filling & Retreating, LC on the whole GPU
//   spread            BE as n SMs' worth of workers anywhere (the paper's CapSM), LC on the whole
//   GPU
// LC alone is measured on the whole GPU and on the partition of the other SMs.
//
// A BE launch begins on an idle GPU; LC launches follow 1 ms later (as in the paper), back to back,
// until BE has ended, and then the next BE launch begins. Counted are LC launches during all of
// which BE ran, without the first one beside each BE launch, which warms up. All settings take
// turns. Fails on a wrong answer of BE or LC.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/gpu/overlap/quota.h"
#include "benchmarks/harness/arguments.h"
#include "benchmarks/harness/gpu_device.h"
#include "benchmarks/harness/gpu_forms.h"
#include "benchmarks/harness/gpu_kernels.h"
#include "benchmarks/harness/json.h"
#include "benchmarks/harness/quantiles.h"

namespace gpushare::benchmarks {
namespace {

constexpr double kSettleMs = 1;
constexpr int kRounds = 5;
// In a round, of one setting: where LC is so slow that few launches fit beside one of BE, the row
// has fewer of them, and says how many.
constexpr int kBeLaunchesMax = 32;
constexpr double kPaper = 1.049;

// The LC launch: a chain of ordinary grids of one kernel of the catalogue, each over buffers of its
// own, between two stamps of the GPU's clock. Its time runs from the end of the first stamp, which
// waits until the host has issued the rest, to the second one: the kernels and what is between
// them, without the host. One launch at a time. The answers alone were compared with the reference
// on the CPU; every other one must have the same bits.
class LcChain {
 public:
  // `solo_us`: about what the chain takes alone on the whole GPU. Runs it there for the answers.
  LcChain(const OverlapGpu& gpu, const char* name, double solo_us, uint32_t seed)
      : name_(name), stamps_(2 * sizeof(uint64_t)) {
    for (uint32_t i = 0; i < kKernels; ++i) {
      kernels::WorkloadOptions options;
      options.solo_ms = solo_us / 1000 / kKernels;
      options.block_task_us = kBlockTaskUs;
      options.sms = gpu.sms();
      options.seed = seed + i;
      steps_.push_back(MakeTask(KernelNamed(name), options));
    }
    ClearOutputs();
    static_cast<void>(Ms(gpu.lc_whole()));
    for (const WorkloadTask& step : steps_) {
      expected_.push_back(VerifiedChecksum(*step.workload, kVerifySeconds));
    }
  }

  const std::string& name() const { return name_; }
  size_t kernels() const { return steps_.size(); }

  void Issue(CUstream_st* stream) {
    for (size_t i = 0; i < 2; ++i) StampAt(i).store(0, std::memory_order_release);
    Cuda(LaunchStamp(kIssueNs, stamps_.as<uint64_t>(), stream), "Stamp<<<>>>");
    for (const WorkloadTask& step : steps_) LaunchGrid(step.task, stream);
    Cuda(LaunchStamp(0, stamps_.as<uint64_t>() + 1, stream), "Stamp<<<>>>");
  }

  // Once the chain has ended: its time on the device.
  std::optional<double> PollMs() const {
    const uint64_t end_ns = StampAt(1).load(std::memory_order_acquire);
    const uint64_t begin_ns = StampAt(0).load(std::memory_order_acquire);
    if (begin_ns == 0 || end_ns == 0) return std::nullopt;
    return static_cast<double>(end_ns - begin_ns) / 1e6;
  }

  // Both; blocks.
  double Ms(CUstream_st* stream) {
    Issue(stream);
    return AwaitMs("The LC chain of " + name_, [this] { return PollMs(); });
  }

  // While nothing runs.
  void ClearOutputs() {
    for (const WorkloadTask& step : steps_) Require(step.workload->ClearOutput());
  }
  void CheckOutputs(const std::string& neighbour) {
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (ChecksumOf(*steps_[i].workload) == expected_[i]) continue;
      Fail("The LC chain of " + name_ + " has another answer beside " + neighbour + " than alone.");
    }
  }

 private:
  static constexpr size_t kKernels = 4;
  // The shortest that streaming has; whole waves of it make a kernel of about 15 us.
  static constexpr double kBlockTaskUs = 7.5;
  static constexpr double kVerifySeconds = 0.05;
  // MEASURED: a launch is issued in 2.8 us, and kKernels + 1 follow the first stamp.
  static constexpr uint64_t kIssueNs = 30'000;

  std::atomic_ref<uint64_t> StampAt(size_t i) const {
    return std::atomic_ref<uint64_t>(stamps_.as<uint64_t>()[i]);
  }

  std::string name_;
  std::vector<WorkloadTask> steps_;
  std::vector<uint64_t> expected_;
  MappedMemory stamps_;  // of begin and end; 0: not there yet
};

struct Setting {
  const char* name;
  Way way;
  bool partition;  // LC runs on the SMs that BE's partition leaves
};
constexpr std::array<Setting, 4> kSettings = {{{"packed_partition", Way::kPacked, true},
                                               {"packed_whole", Way::kPacked, false},
                                               {"retreat", Way::kRetreat, false},
                                               {"spread", Way::kSpread, false}}};
constexpr size_t kRetreatSetting = 2;

struct Beside {
  std::vector<double> lc_ms;
  std::vector<double> be_ms;
};

// One BE task, one LC chain and one quota.
class Row {
 public:
  Row(OverlapGpu& gpu, BeTask& be, LcChain& lc, int quota)
      : gpu_(gpu), be_(be), lc_(lc), quota_(quota) {}

  void Measure(int lc_launches) {
    be_.side.KeepShareOf(quota_);
    // Answers that start from nothing; times of this round do not count.
    Round(0, 1, true);
    solo_ms_.clear();
    alone_ms_ = {};
    beside_ = {};
    for (int round = 0; round < kRounds; ++round) {
      Round(static_cast<size_t>(round), (lc_launches + kRounds - 1) / kRounds, false);
    }
  }

  void Print() const;
  // LC's median under a setting over the one under Filling & Retreating; 0: one of them has none.
  double OverRetreat(size_t setting) const { return Ratio(LcMs(setting), LcMs(kRetreatSetting)); }

 private:
  static constexpr size_t kAlone = 2;  // on the whole GPU, on the SMs that BE's partition leaves

  void Round(size_t round, int launches, bool clear) {
    solo_ms_.push_back(be_.limited.SoloMs());
    constexpr size_t kTurns = kAlone + kSettings.size();
    for (size_t i = 0; i < kTurns; ++i) {
      const size_t turn = (i + round) % kTurns;
      if (turn < kAlone) {
        RunAlone(turn == 0 ? gpu_.lc_whole() : gpu_.Quota(quota_).lc, launches, alone_ms_[turn]);
      } else {
        RunBeside(turn - kAlone, launches, clear);
      }
    }
  }

  void RunAlone(CUstream_st* stream, int launches, std::vector<double>& ms) {
    static_cast<void>(lc_.Ms(stream));  // as beside BE, the first one warms up
    for (int i = 0; i < launches; ++i) ms.push_back(lc_.Ms(stream));
  }

  void RunBeside(size_t setting, int launches, bool clear) {
    if (clear) {
      be_.side.ClearOutput();
      lc_.ClearOutputs();
    }
    Beside& beside = beside_[setting];
    const size_t wanted = beside.lc_ms.size() + static_cast<size_t>(launches);
    for (int i = 0; i < kBeLaunchesMax && beside.lc_ms.size() < wanted; ++i) {
      RunBesideOneLaunch(kSettings[setting], beside);
    }
    be_.CheckOutput(kSettings[setting].name, quota_);
    lc_.CheckOutputs(std::string(be_.side.name()) + " under " + kSettings[setting].name);
  }

  void RunBesideOneLaunch(const Setting& setting, Beside& beside);

  double LcMs(size_t setting) const { return Median(beside_[setting].lc_ms); }
  Json BesideJson(size_t setting, double be_ideal_ms) const;

  OverlapGpu& gpu_;
  BeTask& be_;
  LcChain& lc_;
  int quota_;
  std::vector<double> solo_ms_;
  std::array<std::vector<double>, kAlone> alone_ms_;
  std::array<Beside, kSettings.size()> beside_;
};

void Row::RunBesideOneLaunch(const Setting& setting, Beside& beside) {
  CUstream_st* const stream = setting.partition ? gpu_.Quota(quota_).lc : gpu_.lc_whole();
  be_.limited.Start(setting.way, quota_);
  const double first_ms = NowMs() + kSettleMs;
  double now_ms = NowMs();
  while (now_ms < first_ms) now_ms = NowMs();
  std::vector<double> lc_ms;
  std::optional<double> be_ms;
  double be_ended_ms = 0;  // seen by then
  while (!be_ms.has_value()) {
    lc_.Issue(stream);
    std::optional<double> ms;
    while (!ms.has_value()) {
      if (now_ms - first_ms > kQuotaHungSeconds * 1e3) {
        Fail(std::string(be_.side.name()) + " or " + lc_.name() + " does not complete.");
      }
      // LC first: where BE is still seen to run, it ran until LC's end.
      ms = lc_.PollMs();
      const bool ran = !be_ms.has_value();
      if (ran) be_ms = be_.limited.PollMs();
      now_ms = NowMs();
      if (ran && be_ms.has_value()) be_ended_ms = now_ms;
    }
    if (!be_ms.has_value()) lc_ms.push_back(*ms);
  }
  beside.be_ms.push_back(*be_ms);
  // Did BE run when LC began? Its own time reaches back before that.
  if (be_ended_ms - *be_ms > first_ms || lc_ms.empty()) return;
  beside.lc_ms.insert(beside.lc_ms.end(), lc_ms.begin() + 1, lc_ms.end());
}

Json Row::BesideJson(size_t setting, double be_ideal_ms) const {
  const Beside& beside = beside_[setting];
  if (beside.lc_ms.empty()) {
    // LC launches that outlast each BE launch: there is no figure.
    std::fprintf(stderr, "  %22s", "none");
    return {{"lc_launches", 0}, {"be_launches", beside.be_ms.size()}};
  }
  const double p99_ms = Quantile(beside.lc_ms, 0.99);
  const double over_rest = Ratio(LcMs(setting), Median(alone_ms_[1]));
  const double p99_over_rest = Ratio(p99_ms, Quantile(alone_ms_[1], 0.99));
  const double be_over_ideal = Ratio(Median(beside.be_ms), be_ideal_ms);
  std::fprintf(stderr, "  %7.3f %7.3f %6.3f", over_rest, p99_over_rest, be_over_ideal);
  return {{"lc_launches", beside.lc_ms.size()},
          {"lc_ms", Rounded(LcMs(setting), 4)},
          {"lc_p99_ms", Rounded(p99_ms, 4)},
          {"over_alone", Rounded(Ratio(LcMs(setting), Median(alone_ms_[0])), 4)},
          {"over_alone_rest", Rounded(over_rest, 4)},
          {"p99_over_alone", Rounded(Ratio(p99_ms, Quantile(alone_ms_[0], 0.99)), 4)},
          {"p99_over_alone_rest", Rounded(p99_over_rest, 4)},
          {"be_launches", beside.be_ms.size()},
          {"be_ms", Rounded(Median(beside.be_ms), 4)},
          {"be_over_ideal", Rounded(be_over_ideal, 4)}};
}

void Row::Print() const {
  const double be_ideal_ms = Median(solo_ms_) * gpu_.sms() / quota_;
  const double alone_ms = Median(alone_ms_[0]);
  const double rest_ms = Median(alone_ms_[1]);
  Json row = {{"experiment", "quota_lc"},
              {"be", be_.side.name()},
              {"lc", lc_.name()},
              {"quota_sms", quota_},
              {"sms", gpu_.sms()},
              {"lc_kernels", lc_.kernels()},
              {"be_solo_ms", Rounded(Median(solo_ms_), 4)},
              {"be_ideal_ms", Rounded(be_ideal_ms, 4)},
              {"alone",
               {{"lc_launches", alone_ms_[0].size()},
                {"lc_ms", Rounded(alone_ms, 4)},
                {"lc_p99_ms", Rounded(Quantile(alone_ms_[0], 0.99), 4)}}},
              {"alone_rest",
               {{"lc_sms", gpu_.sms() - quota_},
                {"lc_launches", alone_ms_[1].size()},
                {"lc_ms", Rounded(rest_ms, 4)},
                {"lc_p99_ms", Rounded(Quantile(alone_ms_[1], 0.99), 4)},
                {"over_alone", Rounded(Ratio(rest_ms, alone_ms), 4)}}}};
  std::fprintf(stderr, "%-10s %-10s %4d %8.4f %6.2f", lc_.name().c_str(), be_.side.name(), quota_,
               alone_ms, Ratio(rest_ms, alone_ms));
  for (size_t i = 0; i < kSettings.size(); ++i) row[kSettings[i].name] = BesideJson(i, be_ideal_ms);
  for (size_t i = 0; i < kSettings.size(); ++i) {
    if (i == kRetreatSetting || OverRetreat(i) == 0) continue;
    row[std::string(kSettings[i].name) + "_over_retreat"] = Rounded(OverRetreat(i), 4);
    std::fprintf(stderr, "  %s %.3f", kSettings[i].name, OverRetreat(i));
  }
  row["answers"] = "right";
  PrintLine(row);
  std::fprintf(stderr, "\n");
}

void PrintTableHead() {
  std::fprintf(stderr,
               "LC time: alone in ms, on the SMs that BE leaves over alone, then for each setting "
               "LC's median and p99\nover alone on those SMs and BE's time over ideal, then LC's "
               "median over Filling & Retreating's (the paper: %.3f)\n%-10s %-10s %4s %8s %6s",
               kPaper, "lc", "be", "SMs", "alone", "rest");
  for (const Setting& setting : kSettings) std::fprintf(stderr, "  %22s", setting.name);
  std::fprintf(stderr, "  over retreat\n");
}

// Ratios over Filling & Retreating, each of a row that counted launches on both sides.
using Ratios = std::array<std::vector<double>, kSettings.size()>;

void PrintSummary(const Ratios& ratios, int left_out, double seconds) {
  Json summary = {{"experiment", "quota_lc_summary"}, {"paper_over_retreat", kPaper}};
  for (size_t i = 0; i < kSettings.size(); ++i) {
    if (i == kRetreatSetting) continue;
    double sum = 0;
    for (const double ratio : ratios[i]) sum += ratio;
    const double mean = Ratio(sum, static_cast<double>(ratios[i].size()));
    const double worst = Quantile(ratios[i], 1);
    summary[std::string(kSettings[i].name) + "_over_retreat"] = {
        {"rows", ratios[i].size()}, {"mean", Rounded(mean, 4)}, {"worst", Rounded(worst, 4)}};
    std::fprintf(stderr, "%s over retreat: mean %.4f, worst %.4f, of %zu rows\n", kSettings[i].name,
                 mean, worst, ratios[i].size());
  }
  summary["rows_left_out"] = left_out;
  summary["seconds"] = Rounded(seconds, 1);
  PrintLine(summary);
  if (left_out > 0) std::fprintf(stderr, "%d rows are left out: no time\n", left_out);
}

}  // namespace

void RunLc(OverlapGpu& gpu, const QuotaOptions& options) {
  std::vector<int> quotas = GrantedQuotas(gpu, options.lc_quotas);
  // A quota of all SMs leaves none for LC.
  std::erase_if(quotas, [&](int quota) { return quota >= gpu.sms(); });
  if (quotas.empty()) return;
  Probe probe(gpu);
  for (const int quota : quotas) probe.CheckRest(quota);
  std::vector<std::unique_ptr<BeTask>> bes;
  for (const char* name : {"sincos", "streaming"}) {
    if (!IsChosen(options.only, name)) continue;
    bes.push_back(std::make_unique<BeTask>(gpu, name, options.be_ms));
  }
  PrintTableHead();
  const double begin = NowSeconds();
  const auto seconds = [&] { return NowSeconds() - begin; };
  Ratios ratios;
  int left_out = 0;
  for (const char* name : {"ffma", "streaming"}) {
    LcChain lc(gpu, name, options.lc_us, options.seed);
    for (const std::unique_ptr<BeTask>& be : bes) {
      for (const int quota : quotas) {
        if (seconds() > options.lc_seconds) {
          ++left_out;
          continue;
        }
        Row row(gpu, *be, lc, quota);
        row.Measure(options.lc_launches);
        row.Print();
        for (size_t i = 0; i < ratios.size(); ++i) {
          if (row.OverRetreat(i) > 0) ratios[i].push_back(row.OverRetreat(i));
        }
      }
    }
  }
  PrintSummary(ratios, left_out, seconds());
}

}  // namespace gpushare::benchmarks
