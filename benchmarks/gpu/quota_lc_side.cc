// The LC side of quota_benchmark: the time of an LC launch beside a BE kernel that holds n SMs,
// over its time alone in the same run. SMGuard 6.2.1 compares LC times under CapSM with those under
// Filling & Retreating and finds 1.049 on average; the ratios over `retreat` here are that figure.
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
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/gpu/quota.h"
#include "benchmarks/gpu/quota_be_task.h"
#include "benchmarks/gpu/quota_gpu.h"
#include "benchmarks/gpu/quota_lc_chain.h"
#include "benchmarks/gpu/quota_limited_kernel.h"
#include "benchmarks/gpu/quota_probe.h"

namespace gpushare::quota {
namespace {

using core::TimeNs;

constexpr TimeNs kSettleNs = 1'000'000;
constexpr int kRounds = 5;
// In a round, of one setting: where LC is so slow that few launches fit beside one of BE, the row
// has fewer of them, and says how many.
constexpr int kBeLaunchesMax = 32;
constexpr double kPaper = 1.049;
constexpr uint32_t kFirstId = 11;  // of the kernels on the device
constexpr uint32_t kProbeId = 101;

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
  Row(Gpu& gpu, BeTask& be, LcChain& lc, int quota) : gpu_(gpu), be_(be), lc_(lc), quota_(quota) {}

  void Measure(int lc_launches) {
    be_.KeepShareOf(quota_);
    // Answers that start from nothing; times of this round do not count.
    Round(0, 1, true);
    solo_ms_.clear();
    alone_ms_ = {};
    beside_ = {};
    for (int round = 0; round < kRounds; ++round) {
      Round(static_cast<size_t>(round), (lc_launches + kRounds - 1) / kRounds, false);
    }
  }

  void Report() const;
  // LC's median under a setting over the one under Filling & Retreating; 0: one of them has none.
  double OverRetreat(size_t setting) const { return Ratio(LcMs(setting), LcMs(kRetreatSetting)); }

 private:
  static constexpr size_t kAlone = 2;  // on the whole GPU, on the SMs that BE's partition leaves

  void Round(size_t round, int launches, bool clear) {
    solo_ms_.push_back(be_.SoloMs());
    constexpr size_t kTurns = kAlone + kSettings.size();
    for (size_t i = 0; i < kTurns; ++i) {
      const size_t turn = (i + round) % kTurns;
      if (turn < kAlone) {
        RunAlone(turn == 0 ? gpu_.lc_whole() : gpu_.lc_rest(quota_), launches, alone_ms_[turn]);
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
      be_.ClearOutput();
      lc_.ClearOutputs();
    }
    Beside& beside = beside_[setting];
    const size_t wanted = beside.lc_ms.size() + static_cast<size_t>(launches);
    for (int i = 0; i < kBeLaunchesMax && beside.lc_ms.size() < wanted; ++i) {
      RunBesideOneLaunch(kSettings[setting], beside);
    }
    be_.CheckOutput(kSettings[setting].name, quota_);
    lc_.CheckOutputs(be_.name() + " under " + kSettings[setting].name);
  }

  void RunBesideOneLaunch(const Setting& setting, Beside& beside);
  void Settle() const {
    const TimeNs end_ns = gpu_.device().NowNs() + kSettleNs;
    while (gpu_.device().NowNs() < end_ns) {
    }
  }

  double LcMs(size_t setting) const { return Median(beside_[setting].lc_ms); }
  void ReportBeside(size_t setting, double be_ideal_ms) const;

  Gpu& gpu_;
  BeTask& be_;
  LcChain& lc_;
  int quota_;
  std::vector<double> solo_ms_;
  std::array<std::vector<double>, kAlone> alone_ms_;
  std::array<Beside, kSettings.size()> beside_;
};

void Row::RunBesideOneLaunch(const Setting& setting, Beside& beside) {
  CUstream_st* const stream = setting.partition ? gpu_.lc_rest(quota_) : gpu_.lc_whole();
  be_.Start(setting.way, quota_);
  Settle();
  const TimeNs first_ns = gpu_.device().NowNs();
  TimeNs now_ns = first_ns;
  std::vector<double> lc_ms;
  std::optional<double> be_ms;
  TimeNs be_ended_ns = 0;  // seen by then
  while (!be_ms.has_value()) {
    lc_.Issue(stream);
    std::optional<double> ms;
    while (!ms.has_value()) {
      if (now_ns - first_ns > kHungNs) {
        Fail(be_.name() + " or " + lc_.name() + " does not complete");
      }
      // LC first: where BE is still seen to run, it ran until LC's end.
      ms = lc_.PollMs();
      if (!be_ms.has_value()) be_ms = be_.PollMs();
      now_ns = gpu_.device().NowNs();
      if (be_ms.has_value() && be_ended_ns == 0) be_ended_ns = now_ns;
    }
    if (!be_ms.has_value()) lc_ms.push_back(*ms);
  }
  beside.be_ms.push_back(*be_ms);
  // Did BE run when LC began? Its own time reaches back before that.
  const TimeNs be_started_ns = be_ended_ns - static_cast<TimeNs>(*be_ms * 1e6);
  if (be_started_ns > first_ns || lc_ms.empty()) return;
  beside.lc_ms.insert(beside.lc_ms.end(), lc_ms.begin() + 1, lc_ms.end());
}

void Row::ReportBeside(size_t setting, double be_ideal_ms) const {
  const Beside& beside = beside_[setting];
  if (beside.lc_ms.empty()) {
    // LC launches that outlast each BE launch: there is no figure.
    std::printf(", \"%s\": {\"lc_launches\": 0, \"be_launches\": %zu}", kSettings[setting].name,
                beside.be_ms.size());
    std::fprintf(stderr, "  %22s", "none");
    return;
  }
  const double p99_ms = Quantile(beside.lc_ms, 0.99);
  std::printf(
      ", \"%s\": {\"lc_launches\": %zu, \"lc_ms\": %.4f, \"lc_p99_ms\": %.4f, "
      "\"over_alone\": %.4f, \"over_alone_rest\": %.4f, \"p99_over_alone\": %.4f, "
      "\"p99_over_alone_rest\": %.4f, \"be_launches\": %zu, \"be_ms\": %.4f, "
      "\"be_over_ideal\": %.4f}",
      kSettings[setting].name, beside.lc_ms.size(), LcMs(setting), p99_ms,
      Ratio(LcMs(setting), Median(alone_ms_[0])), Ratio(LcMs(setting), Median(alone_ms_[1])),
      Ratio(p99_ms, Quantile(alone_ms_[0], 0.99)), Ratio(p99_ms, Quantile(alone_ms_[1], 0.99)),
      beside.be_ms.size(), Median(beside.be_ms), Ratio(Median(beside.be_ms), be_ideal_ms));
  std::fprintf(stderr, "  %7.3f %7.3f %6.3f", Ratio(LcMs(setting), Median(alone_ms_[1])),
               Ratio(p99_ms, Quantile(alone_ms_[1], 0.99)),
               Ratio(Median(beside.be_ms), be_ideal_ms));
}

void Row::Report() const {
  const double solo_ms = Median(solo_ms_);
  const double be_ideal_ms = solo_ms * gpu_.sms() / quota_;
  const double alone_ms = Median(alone_ms_[0]);
  const double rest_ms = Median(alone_ms_[1]);
  std::printf(
      "{\"experiment\": \"quota_lc\", \"be\": \"%s\", \"lc\": \"%s\", \"quota_sms\": %d, "
      "\"sms\": %d, \"lc_kernels\": %zu, \"be_solo_ms\": %.4f, \"be_ideal_ms\": %.4f, "
      "\"alone\": {\"lc_launches\": %zu, \"lc_ms\": %.4f, \"lc_p99_ms\": %.4f}, "
      "\"alone_rest\": {\"lc_sms\": %d, \"lc_launches\": %zu, \"lc_ms\": %.4f, "
      "\"lc_p99_ms\": %.4f, \"over_alone\": %.4f}",
      be_.name().c_str(), lc_.name().c_str(), quota_, gpu_.sms(), lc_.kernels(), solo_ms,
      be_ideal_ms, alone_ms_[0].size(), alone_ms, Quantile(alone_ms_[0], 0.99), gpu_.sms() - quota_,
      alone_ms_[1].size(), rest_ms, Quantile(alone_ms_[1], 0.99), Ratio(rest_ms, alone_ms));
  std::fprintf(stderr, "%-10s %-10s %4d %8.4f %6.2f", lc_.name().c_str(), be_.name().c_str(),
               quota_, alone_ms, Ratio(rest_ms, alone_ms));
  for (size_t i = 0; i < kSettings.size(); ++i) ReportBeside(i, be_ideal_ms);
  for (size_t i = 0; i < kSettings.size(); ++i) {
    if (i == kRetreatSetting || OverRetreat(i) == 0) continue;
    std::printf(", \"%s_over_retreat\": %.4f", kSettings[i].name, OverRetreat(i));
    std::fprintf(stderr, "  %s %.3f", kSettings[i].name, OverRetreat(i));
  }
  std::printf(", \"answers\": \"right\"}\n");
  std::fprintf(stderr, "\n");
  std::fflush(stdout);
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

void ReportSummary(const Ratios& ratios, int left_out, double seconds) {
  std::printf("{\"experiment\": \"quota_lc_summary\", \"paper_over_retreat\": %.3f", kPaper);
  for (size_t i = 0; i < kSettings.size(); ++i) {
    if (i == kRetreatSetting) continue;
    double sum = 0;
    for (const double ratio : ratios[i]) sum += ratio;
    const double mean = Ratio(sum, static_cast<double>(ratios[i].size()));
    const double worst = Quantile(ratios[i], 1);
    std::printf(", \"%s_over_retreat\": {\"rows\": %zu, \"mean\": %.4f, \"worst\": %.4f}",
                kSettings[i].name, ratios[i].size(), mean, worst);
    std::fprintf(stderr, "%s over retreat: mean %.4f, worst %.4f, of %zu rows\n", kSettings[i].name,
                 mean, worst, ratios[i].size());
  }
  std::printf(", \"rows_left_out\": %d, \"seconds\": %.1f}\n", left_out, seconds);
  if (left_out > 0) std::fprintf(stderr, "%d rows are left out: no time\n", left_out);
  std::fflush(stdout);
}

std::vector<int> MakePlaces(Gpu& gpu, const std::vector<int>& wanted) {
  std::vector<int> quotas;
  for (const int quota : wanted) {
    if (quota >= gpu.sms()) {
      std::fprintf(stderr, "a quota of %d SMs leaves none for LC: it is left out\n", quota);
    } else if (gpu.MakePacked(quota)) {
      gpu.MakeLcStreams(quota);
      quotas.push_back(quota);
    }
  }
  return quotas;
}

}  // namespace

void RunLcSide(Gpu& gpu, const Arguments& arguments) {
  const std::vector<int> quotas = MakePlaces(gpu, arguments.lc_quotas);
  if (quotas.empty()) return;
  Probe probe(gpu, kProbeId);
  for (const int quota : quotas) probe.CheckRest(quota);
  std::vector<std::unique_ptr<BeTask>> bes;
  uint32_t id = kFirstId;
  for (const char* name : {"sincos", "streaming"}) {
    if (!arguments.only.empty() && arguments.only != name) continue;
    bes.push_back(std::make_unique<BeTask>(gpu, name, arguments.be_ms, arguments.seed, id++));
  }
  PrintTableHead();
  const TimeNs begin_ns = gpu.device().NowNs();
  const auto seconds = [&] { return static_cast<double>(gpu.device().NowNs() - begin_ns) / 1e9; };
  Ratios ratios;
  int left_out = 0;
  for (const char* name : {"ffma", "streaming"}) {
    LcChain lc(gpu, name, arguments.lc_us, arguments.seed);
    for (const std::unique_ptr<BeTask>& be : bes) {
      for (const int quota : quotas) {
        if (seconds() > arguments.lc_seconds) {
          ++left_out;
          continue;
        }
        Row row(gpu, *be, lc, quota);
        row.Measure(arguments.lc_launches);
        row.Report();
        for (size_t i = 0; i < ratios.size(); ++i) {
          if (row.OverRetreat(i) > 0) ratios[i].push_back(row.OverRetreat(i));
        }
      }
    }
  }
  ReportSummary(ratios, left_out, seconds());
}

}  // namespace gpushare::quota
