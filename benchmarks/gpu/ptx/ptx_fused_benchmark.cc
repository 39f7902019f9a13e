// Fused twins of recorded launches: what they gain over serial, co-resident and partitioned runs,
// and whether both parts keep their bits.
//
//   record_launches.py --cases pairs --out FOLDER; ptx_fused_benchmark --launches FOLDER
//   record_launches.py --cases network:gpt2 --out FOLDER; ptx_fused_benchmark --launches FOLDER
//       --network
//
// The first form takes at least eight pairs of a GEMM or attention with a memory- or compute-bound
// kernel. The second takes every GEMM of a network with its memory-bound kernels, and says which
// share of the GEMM nodes gains. --dry-run needs no GPU: it fuses and assembles what it can.
// Rows are JSON on stdout, a table is on stderr.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "benchmarks/gpu/ptx/dry_run.h"
#include "benchmarks/gpu/ptx/fused_plan.h"
#include "benchmarks/gpu/ptx/fused_ratios.h"
#include "benchmarks/gpu/ptx/fused_runs.h"
#include "benchmarks/gpu/ptx/fused_twins.h"
#include "benchmarks/gpu/ptx/launchable.h"
#include "benchmarks/gpu/ptx/on_threads.h"
#include "benchmarks/gpu/ptx/recorded_folder.h"
#include "benchmarks/gpu/ptx/twin_gpu.h"
#include "benchmarks/harness/arguments.h"
#include "benchmarks/harness/json.h"
#include "src/models/fused/fused_curve.h"
#include "tests/cuda/code/ptx_code.h"

namespace gpushare::benchmarks {
namespace {

// For the evictions of a pair: where a launch is so short that few come in the middle, they would
// take all the time.
constexpr double kEvictionsUs = 2e6;

struct Options {
  std::string launches;
  bool network = false;
  bool dry_run = false;
  double seconds = 90;
  size_t pairs = 10;
  size_t kernels = 6;     // of each side that are loaded
  size_t neighbours = 2;  // of each GEMM of a network
  RatioBounds bounds;
  int rounds = 5;
  int evictions = 100;
  int threads = 1;
  uint64_t seed = 1;
  std::vector<int> load_percents;
};

Options Read(Arguments& given) {
  Options options;
  options.launches = given.Text("--launches", "");
  options.network = given.Has("--network");
  options.dry_run = given.Has("--dry-run");
  options.seconds = given.Real("--seconds", 90, 1);
  options.pairs = static_cast<size_t>(given.Number("--pairs", 10, 1));
  options.kernels = static_cast<size_t>(given.Number("--kernels", options.network ? 24 : 6, 1));
  options.neighbours = static_cast<size_t>(given.Number("--neighbours", 2, 1));
  options.bounds.ratios = static_cast<size_t>(given.Number("--ratios", 6, 1));
  options.bounds.copies = static_cast<uint32_t>(given.Number("--copies", 5, 2));
  options.rounds = given.Number("--rounds", 5, 1);
  options.evictions = given.Number("--evictions", options.network ? 10 : 100, 1);
  const auto cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  options.threads = given.Number("--threads", cores, 1);
  options.seed = given.Seed();
  options.load_percents = given.Numbers("--load-percents", {25, 50, 100, 150, 200}, 1);
  given.Finish();
  if (options.launches.empty()) {
    throw Failure("--launches names no folder, and the recorded launches are read from one.",
                  kBadUse);
  }
  return options;
}

// A network's kernels are what they are: only those of some microseconds are left out, whose time
// is mostly that of a launch.
CandidateLimits LimitsOf(const Options& options) {
  return options.network ? CandidateLimits{8, 66} : CandidateLimits{};
}

// Until when each step may begin something new, by the host's clock.
struct Times {
  Times(double begin_us, double seconds)
      : loading_us(begin_us + 0.25e6 * seconds),
        making_us(begin_us + 0.5e6 * seconds),
        measuring_us(begin_us + 0.92e6 * seconds) {}
  double loading_us;
  double making_us;
  double measuring_us;
};

// Assembles the modules on all cores, so that loading them one by one finds them in the cache.
void WarmCache(TwinGpu& gpu, const std::vector<RecordedFile>& files, int threads, double until_us) {
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    const std::unique_ptr<cuda::Assembly> assembly = gpu.MakeAssembly();
    for (size_t i = next.fetch_add(1); i < files.size() && NowUs() < until_us;
         i = next.fetch_add(1)) {
      const core::PtxCode code = cuda::PtxCodeOf(ReadText(files[i].ptx), files[i].entry);
      // An error comes again, with its sentence, when the launch is loaded.
      if (code.worker.made()) {
        (void)gpu.CodeOf(*assembly, code.module, "original+worker+slice", code.entry);
      }
    }
  };
  OnThreads("warming the code cache", threads, work);
}

class Benchmark {
 public:
  Benchmark(const Options& options, std::vector<RecordedFile> files)
      : options_(options), times_(NowUs(), options.seconds), files_(std::move(files)) {}

  int Run() {
    Load();
    ChoosePairsAndMake();
    PrintHead();
    for (TwinsOfPair& pair : pairs_) {
      const std::string name =
          pair.tensor->recorded().kernel.name + " with " + pair.cuda->recorded().kernel.name;
      if (NowUs() > times_.measuring_us) {
        LeaveOut(name, "no time was left");
        continue;
      }
      try {
        MeasurePair(pair);
      } catch (const Failure& failure) {
        LeaveOut(name, failure.what());
        failed_ = true;
      }
    }
    report_->End(Tail());
    return failed_ || measured_ == 0 ? kFailed : 0;
  }

 private:
  void LeaveOut(const std::string& name, const std::string& why) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(), why.c_str());
    left_out_.push_back({{"name", name}, {"why", why}});
  }

  void Load() {
    WarmCache(gpu_, files_, options_.threads, times_.loading_us);
    const std::unique_ptr<cuda::Assembly> assembly = gpu_.MakeAssembly();
    for (const RecordedFile& file : files_) {
      if (NowUs() > times_.loading_us) {
        LeaveOut(file.entry, "no time was left to load it");
        continue;
      }
      try {
        auto launch = std::make_unique<Launchable>(gpu_, *assembly, file);
        launch->candidate().calls = options_.network ? file.calls : 1;
        candidates_.push_back(launch->candidate());
        launches_.push_back(std::move(launch));
      } catch (const Failure& failure) {
        LeaveOut(file.entry, failure.what());
      }
    }
  }

  void ChoosePairsAndMake() {
    const std::vector<PairChoice> chosen =
        options_.network ? ChooseNetworkPairs(candidates_, options_.neighbours, LimitsOf(options_))
                         : ChoosePairs(candidates_, 2 * options_.pairs, LimitsOf(options_));
    for (const PairChoice& choice : chosen) {
      if (!options_.network && pairs_.size() == options_.pairs) break;
      TwinsOfPair pair =
          RatiosOf(*launches_[choice.tensor], *launches_[choice.cuda], options_.bounds);
      if (pair.refusal.empty()) {
        pairs_.push_back(std::move(pair));
        chosen_.push_back(choice);
      } else {
        LeaveOut(candidates_[choice.tensor].name + " with " + candidates_[choice.cuda].name,
                 pair.refusal);
      }
    }
    if (pairs_.empty()) {
      Fail("No pair can be fused of the " + std::to_string(launches_.size()) +
           " launches that were loaded.");
    }
    MakeTwins(gpu_, pairs_, options_.threads, times_.making_us);
  }

  void PrintHead() {
    report_ = std::make_unique<Report>(
        Json{{"benchmark", "ptx_fused_benchmark"},
             {"network", options_.network},
             {"seconds", options_.seconds},
             {"seed", options_.seed},
             {"sms", gpu_.sms()},
             {"partition_sms", Json{gpu_.halves_sms()[0], gpu_.halves_sms()[1]}}},
        "pairs");
    std::fprintf(stderr, "%-44s %5s %5s %9s %9s %9s %9s %7s %7s\n", "pair", "load", "ratio",
                 "serial us", "co-res.", "halves", "fused", "/serial", "/co-res");
  }

  Json RowOf(const Launchable& launch) const {
    const Candidate& candidate = launch.candidate();
    return {{"entry", launch.recorded().kernel.name},
            {"source", launch.recorded().source},
            {"kind", NameOf(candidate.kind)},
            {"blocks", candidate.blocks},
            {"threads", launch.recorded().kernel.resources.threads_per_block},
            {"worker_registers", launch.worker_registers()},
            {"claim_batch", launch.claim_batch()},
            {"alone_us", Rounded(candidate.alone_us, 2)},
            {"bytes", launch.bytes()},
            {"calls", candidate.calls}};
  }

  // Bits and the time at load ratio 1 of each twin that was made.
  Json ScreenRatios(TwinsOfPair& pair, FusedRuns& runs) {
    const Amounts amounts = AmountsAt(1, pair.tensor->candidate(), pair.cuda->candidate());
    Json rows = Json::array();
    for (FusedTwinCode& twin : pair.twins) {
      if (twin.made()) {
        runs.CheckBits(twin);
        twin.us = runs.TimeFused(amounts, twin, 3);
      }
      Json row = {{"ratio", RatioOf(twin)},
                  {"capped", twin.ratio.capped},
                  {"registers_move", twin.ratio.move_registers},
                  {"blocks_per_sm", twin.blocks_per_sm}};
      if (twin.made()) {
        row["registers"] = twin.registers;
        row["spilled_bytes"] = twin.spilled_bytes;
        row["made_ms"] = Rounded(twin.made_ms, 1);
        row["us"] = Rounded(twin.us, 2);
      } else {
        row["why_not"] = twin.why_not;
      }
      rows.push_back(std::move(row));
    }
    return rows;
  }

  static std::string RatioOf(const FusedTwinCode& twin) {
    return std::to_string(twin.ratio.tensor_copies) + ":" + std::to_string(twin.ratio.cuda_copies);
  }

  void MeasurePair(TwinsOfPair& pair) {
    FusedRuns runs(gpu_, *pair.tensor, *pair.cuda, options_.seed);
    Json row = {{"tensor", RowOf(*pair.tensor)}, {"cuda", RowOf(*pair.cuda)}};
    row["ratios"] = ScreenRatios(pair, runs);
    std::vector<double> times;
    for (const FusedTwinCode& twin : pair.twins) times.push_back(twin.us);
    const size_t best = IndexOfBest(times);
    if (best == times.size()) Fail("No ratio of it was made in time.");
    const FusedTwinCode& twin = pair.twins[best];
    row["best"] = RatioOf(twin);
    NodeGain gain = {chosen_[static_cast<size_t>(&pair - pairs_.data())].tensor, 0};
    NodeGain over_both = gain;
    row["points"] = Json::array();
    std::vector<core::FusedPoint> curve;
    for (const int percent : options_.load_percents) {
      row["points"].push_back(PointOf(pair, twin, percent / 100.0, runs, gain, over_both));
      curve.push_back(
          {row["points"].back()["measured_load_ratio"], row["points"].back()["duration_ratio"]});
    }
    const models::FusedCurve fit = models::FitFusedCurve(curve);
    row["two_lines"] = {{"inflection", Rounded(fit.inflection, 3)},
                        {"duration_there", Rounded(fit.At(fit.inflection), 4)},
                        {"error", Rounded(fit.error, 4)}};
    const EvictedRuns evicted =
        runs.CheckEvictions(twin, options_.evictions, NowUs() + kEvictionsUs);
    // Bits that differ are a Failure.
    row["bits"] = evicted.each_evicted() ? "same" : "not evicted";
    row["evictable"] = Json{evicted.evictable[0], evicted.evictable[1]};
    failed_ = failed_ || evicted.missed(0) || evicted.missed(1);
    row["evicted_runs"] = evicted.runs;
    row["evictions"] = evicted.evictions;
    row["evictions_of_parts"] = Json{evicted.of_part[0], evicted.of_part[1]};
    report_->Row(row);
    gains_.push_back(gain);
    gains_over_both_.push_back(over_both);
    ++measured_;
  }

  Json PointOf(const TwinsOfPair& pair, const FusedTwinCode& twin, double load_ratio,
               FusedRuns& runs, NodeGain& gain, NodeGain& over_both) {
    const Amounts amounts = AmountsAt(load_ratio, pair.tensor->candidate(), pair.cuda->candidate());
    const std::array<double, kWays> us = runs.Time(amounts, &twin, options_.rounds);
    const auto of = [&us](Way way) { return us[static_cast<size_t>(way)]; };
    Json point = {{"load_ratio", load_ratio},
                  {"tensor_blocks", amounts.tensor},
                  {"cuda_blocks", amounts.cuda}};
    const double tensor_us = pair.tensor->Time(amounts.tensor);
    point["measured_load_ratio"] = Rounded(pair.cuda->Time(amounts.cuda) / tensor_us, 4);
    point["duration_ratio"] = Rounded(of(Way::kFused) / tensor_us, 4);
    for (size_t i = 0; i < kWays; ++i) {
      point[std::string(NameOf(static_cast<Way>(i))) + "_us"] =
          us[i] > 0 ? Rounded(us[i], 2) : Json(nullptr);
    }
    const double over_serial = Gain(of(Way::kFused), of(Way::kSerial));
    const double over_co_resident = Gain(of(Way::kFused), of(Way::kCoResident));
    point["gain_over_serial"] = Rounded(over_serial, 4);
    point["gain_over_co_resident"] = Rounded(over_co_resident, 4);
    point["gain_over_partition"] = Rounded(Gain(of(Way::kFused), of(Way::kPartition)), 4);
    gain.gain = std::max(gain.gain, over_serial);
    over_both.gain = std::max(over_both.gain, std::min(over_serial, over_co_resident));
    const std::string name = pair.tensor->recorded().source + " + " + pair.cuda->recorded().source;
    std::fprintf(stderr, "%-44.44s %5.2f %5s %9.1f %9.1f %9.1f %9.1f %7.3f %7.3f\n", name.c_str(),
                 load_ratio, RatioOf(twin).c_str(), of(Way::kSerial), of(Way::kCoResident),
                 of(Way::kPartition), of(Way::kFused), 1 - over_serial, 1 - over_co_resident);
    return point;
  }

  Json Tail() const {
    Json tail = {{"left_out", left_out_}, {"measured_pairs", measured_}};
    if (!options_.network) return tail;
    const auto share_of = [this](const std::vector<NodeGain>& gains) -> Json {
      const NetworkShare share = ShareThatGains(candidates_, gains);
      const auto of = [](double part, double whole) {
        return whole > 0 ? Rounded(part / whole, 4) : Json(nullptr);
      };
      return {{"gemm_nodes", share.nodes},
              {"that_gain", share.nodes_that_gain},
              {"share", of(share.nodes_that_gain, share.nodes)},
              {"share_of_their_time", of(share.us_that_gains, share.us)}};
    };
    tail["gain_min"] = kGainMin;
    tail["over_serial"] = share_of(gains_);
    tail["over_serial_and_co_resident"] = share_of(gains_over_both_);
    std::fprintf(stderr, "GEMM nodes that gain over serial: %s\n",
                 tail["over_serial"].dump().c_str());
    return tail;
  }

  const Options& options_;
  const Times times_;
  const std::vector<RecordedFile> files_;
  TwinGpu gpu_;
  std::vector<std::unique_ptr<Launchable>> launches_;
  std::vector<Candidate> candidates_;  // of launches_
  std::vector<TwinsOfPair> pairs_;
  std::vector<PairChoice> chosen_;  // of pairs_
  std::unique_ptr<Report> report_;
  std::vector<NodeGain> gains_;
  std::vector<NodeGain> gains_over_both_;
  Json left_out_ = Json::array();
  int measured_ = 0;
  bool failed_ = false;
};

int Run(Arguments& given) {
  const Options options = Read(given);
  std::vector<RecordedFile> files =
      Shortlist(ReadRecordedFolder(options.launches), options.kernels,
                options.dry_run ? 1 : LimitsOf(options).blocks_min, options.network);
  if (options.dry_run) return DryRun(files, options.pairs, options.bounds, options.seconds);
  return Benchmark(options, std::move(files)).Run();
}

}  // namespace
}  // namespace gpushare::benchmarks

int main(int argc, char** argv) {
  return gpushare::benchmarks::Main("ptx_fused_benchmark", argc, argv, gpushare::benchmarks::Run);
}
