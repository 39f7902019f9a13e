// What making and ending a place costs an LC app, at the device seam.
//
// LC queries come by a Poisson process at half of the load that fills the device; each is a launch
// of a catalogue kernel's original grid. Between them BE workers fill the device and are evicted at
// each arrival. Meanwhile a second thread makes a place with its lanes and ends it again, once a
// period: not at all ('none'), whatever runs ('any_time'), or only while no query is in flight
// ('quiet'), as the library does (src/core/flow/places). The three take turns with the same
// arrivals in each round.
//
// One JSON object on stdout: for each way p50 and p99 of the latency from the intended arrival,
// their ratio to 'none', and how long making and ending took.
//
// Use: places_benchmark [--queries N] [--rounds N] [--period-ms MS] [--load L] [--lc KERNEL]
//                       [--be KERNEL] [--lc-ms MS] [--seed S]

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/harness/arguments.h"
#include "benchmarks/harness/gpu_device.h"
#include "benchmarks/harness/gpu_forms.h"
#include "benchmarks/harness/gpu_seam.h"
#include "benchmarks/harness/json.h"
#include "benchmarks/harness/quantiles.h"
#include "benchmarks/harness/random.h"
#include "benchmarks/kernels/catalogue.h"

namespace gpushare::benchmarks {
namespace {

using core::DeviceCompletion;
using core::LaneIndex;
using core::TimeNs;

enum class Churn : uint8_t { kNone, kAnyTime, kQuiet };
constexpr std::array<Churn, 3> kWays = {Churn::kNone, Churn::kAnyTime, Churn::kQuiet};
constexpr std::array<const char*, 3> kNames = {"none", "any_time", "quiet"};

// A query waits for no longer than this for a quiet moment.
constexpr int64_t kQuietNs = 1'000'000'000;

struct Kernel {
  Kernel(core::Device& device, const std::string& name, uint32_t id, double solo_ms) {
    const kernels::CatalogueKernel& known = KernelNamed(name);
    kernels::WorkloadOptions options;
    options.solo_ms = solo_ms;
    made = MakeTask(known, options);
    desc.simulation.block_task_ns = static_cast<int64_t>(1000 * known.block_task_us);
    Prepare(device, known.name, id, made.task.variants, &desc);
  }
  core::KernelDesc desc;
  WorkloadTask made;
};

struct Latencies {
  std::vector<int64_t> query_ns;
  std::vector<int64_t> make_ns;
  std::vector<int64_t> end_ns;
  int64_t be_block_tasks = 0;
};

class Rig {
 public:
  Rig(const std::string& lc, const std::string& be, double lc_ms)
      : device_(OpenSeam()),
        lc_(*device_, lc, 1, lc_ms),
        be_(*device_, be, 2, 50),
        lc_lane_(Take(device_->CreateLane({.priority = core::LanePriority::kHigh}))),
        be_lane_(
            Take(device_->CreateLane({.priority = core::LanePriority::kLow, .evictable = true}))) {}

  core::Device& device() { return *device_; }

  // The median of a query's latency alone.
  int64_t SoloNs() {
    std::vector<int64_t> alone;
    for (int i = 0; i < 50; ++i) {
      const TimeNs begin_ns = device_->NowNs();
      LaunchLc();
      while (lc_in_flight_.load() > 0) Look();
      alone.push_back(device_->NowNs() - begin_ns);
    }
    return Median(alone);
  }

  // One round: `gaps_ns` between the intended arrivals.
  void Run(const std::vector<int64_t>& gaps_ns, Churn churn, int64_t period_ns, Latencies& into) {
    std::atomic<bool> stop{false};
    std::thread churner;
    if (churn != Churn::kNone) {
      churner = std::thread([&]() noexcept { ChurnPlaces(churn, period_ns, stop, into); });
    }
    latencies_ = &into.query_ns;
    TimeNs arrival_ns = device_->NowNs();
    for (const int64_t gap_ns : gaps_ns) {
      arrival_ns += gap_ns;
      while (device_->NowNs() < arrival_ns) {
        Look();
        if (lc_in_flight_.load() == 0) LaunchBe();
      }
      EvictBe();
      arrivals_.push_back(arrival_ns);
      LaunchLc();
    }
    EvictBe();
    while (lc_in_flight_.load() > 0 || be_running_) Look();
    into.be_block_tasks += be_block_tasks_;
    be_block_tasks_ = 0;
    latencies_ = nullptr;
    stop.store(true);
    if (churner.joinable()) churner.join();
  }

 private:
  static constexpr uint64_t kBeLaunch = uint64_t{1} << 62;

  void Launch(const Kernel& kernel, core::Form form, LaneIndex lane, core::LaunchId launch) {
    core::LaunchRequest request;
    request.form = form;
    core::LaunchPart& part = request.parts[0];
    const kernels::FormTask& task = kernel.made.task;
    part.launch = launch;
    part.lane = lane;
    part.work.kernel = &kernel.desc;
    part.work.grid = {static_cast<int32_t>(task.grid.x), static_cast<int32_t>(task.grid.y),
                      static_cast<int32_t>(task.grid.z)};
    part.work.arguments = kernel.made.workload->params();
    part.work.arguments_bytes = kernel.made.workload->params_bytes();
    part.block_count = task.block_tasks();
    if (form == core::Form::kWorkers) {
      part.counter = 0;
      part.reset_counter = true;
      part.epoch = ++be_epoch_;
    }
    Require(device_->Launch(request));
  }
  void LaunchLc() {
    lc_in_flight_.fetch_add(1);
    Launch(lc_, core::Form::kOriginal, lc_lane_, core::LaunchId{++launches_});
  }
  void LaunchBe() {
    if (be_running_) return;
    be_running_ = true;
    Launch(be_, core::Form::kWorkers, be_lane_, core::LaunchId{kBeLaunch | ++launches_});
  }
  void EvictBe() {
    if (be_running_) Require(device_->Evict(be_lane_, be_epoch_, 0));
  }

  void Look() {
    std::array<DeviceCompletion, 16> out;
    const size_t count = device_->PollCompletions(absl::MakeSpan(out));
    for (size_t i = 0; i < count; ++i) {
      if ((out[i].launch.value & kBeLaunch) != 0) {
        be_running_ = false;
        be_block_tasks_ += out[i].block_tasks_done;
        continue;
      }
      lc_in_flight_.fetch_sub(1);
      if (latencies_ == nullptr) continue;
      latencies_->push_back(out[i].end_ns - arrivals_[reported_]);
      if (++reported_ == arrivals_.size()) {
        arrivals_.clear();
        reported_ = 0;
      }
    }
  }

  // A place of half of the groups with the lanes of a split's LC side.
  void ChurnPlaces(Churn churn, int64_t period_ns, const std::atomic<bool>& stop, Latencies& into) {
    const int32_t half = device_->capabilities().profile.Groups() / 2;
    const auto quiet = [&] {
      const TimeNs give_up_ns = device_->NowNs() + kQuietNs;
      while (churn == Churn::kQuiet && lc_in_flight_.load() > 0 && !stop.load() &&
             device_->NowNs() < give_up_ns) {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    };
    const auto timed = [&](std::vector<int64_t>& times_ns, const auto& call) {
      const TimeNs begin_ns = device_->NowNs();
      call();
      times_ns.push_back(device_->NowNs() - begin_ns);
    };
    for (int round = 0; !stop.load(); ++round) {
      std::this_thread::sleep_for(std::chrono::nanoseconds(period_ns));
      quiet();
      const core::PlaceSpec spec = {0, half - round % 4, false};
      timed(into.make_ns, [&] {
        Require(device_->CreatePlace(1, spec));
        quiet();
        Require(device_->CreateLane({1, core::LanePriority::kHigh, false}).status());
        quiet();
        Require(device_->CreateLane({1, core::LanePriority::kLow, true}).status());
      });
      quiet();
      timed(into.end_ns, [&] { Require(device_->DestroyPlace(1)); });
    }
  }

  const std::unique_ptr<core::Device> device_;
  Kernel lc_;
  Kernel be_;
  const LaneIndex lc_lane_;
  const LaneIndex be_lane_;
  std::atomic<int> lc_in_flight_{0};
  bool be_running_ = false;
  uint64_t be_epoch_ = 0;
  uint64_t launches_ = 0;
  int64_t be_block_tasks_ = 0;
  std::vector<TimeNs> arrivals_;  // of the queries that were not reported
  size_t reported_ = 0;
  std::vector<int64_t>* latencies_ = nullptr;
};

Json UsOf(const std::vector<int64_t>& ns, double quantile) {
  if (ns.empty()) return nullptr;
  return Rounded(static_cast<double>(Quantile(ns, quantile)) / 1000, 1);
}

int Run(Arguments& given) {
  const int queries = given.Number("--queries", 4000, 100);
  const int rounds = given.Number("--rounds", 3, 1);
  const double period_ms = given.Real("--period-ms", 1000, 1);
  const double load = given.Real("--load", 0.5, 0.01);
  const std::string lc = given.Text("--lc", "sgemm");
  const std::string be = given.Text("--be", "sincos");
  const double lc_ms = given.Real("--lc-ms", 0.5, 0.05);
  const uint64_t seed = given.Seed();
  given.Finish();
  Rig rig(lc, be, lc_ms);
  const int64_t solo_ns = rig.SoloNs();
  std::array<Latencies, kWays.size()> ways;
  for (int round = 0; round < rounds; ++round) {
    Random random(seed + static_cast<uint64_t>(round));
    std::vector<int64_t> gaps_ns;
    for (int i = 0; i < queries; ++i) {
      gaps_ns.push_back(random.Exponential(static_cast<double>(solo_ns) / load));
    }
    for (size_t i = 0; i < kWays.size(); ++i) {
      const size_t way = (i + static_cast<size_t>(round)) % kWays.size();
      rig.Run(gaps_ns, kWays[way], static_cast<int64_t>(period_ms * 1e6), ways[way]);
    }
  }
  const double none_ns = static_cast<double>(Quantile(ways[0].query_ns, 0.99));
  Report report({{"gpu", rig.device().capabilities().profile.gpu_model},
                 {"lc", lc},
                 {"be", be},
                 {"solo_us", Rounded(static_cast<double>(solo_ns) / 1000, 1)},
                 {"load", load},
                 {"period_ms", period_ms},
                 {"queries", queries * rounds}},
                "ways");
  for (size_t way = 0; way < kWays.size(); ++way) {
    const Latencies& seen = ways[way];
    const double p99_ns = static_cast<double>(Quantile(seen.query_ns, 0.99));
    report.Row({{"places", kNames[way]},
                {"p50_us", UsOf(seen.query_ns, 0.5)},
                {"p99_us", UsOf(seen.query_ns, 0.99)},
                {"p99_over_none", Rounded(p99_ns / none_ns, 4)},
                {"longest_us", UsOf(seen.query_ns, 1)},
                {"be_block_tasks", seen.be_block_tasks},
                {"made", seen.make_ns.size()},
                {"make_p50_us", UsOf(seen.make_ns, 0.5)},
                {"make_longest_us", UsOf(seen.make_ns, 1)},
                {"end_p50_us", UsOf(seen.end_ns, 0.5)},
                {"end_longest_us", UsOf(seen.end_ns, 1)}});
  }
  report.End();
  return 0;
}

}  // namespace
}  // namespace gpushare::benchmarks

int main(int argc, char** argv) {
  return gpushare::benchmarks::Main("places_benchmark", argc, argv, gpushare::benchmarks::Run);
}
