// How long one simulated second takes on one core: an LC graph of 72 nodes, 450 times a second,
// beside a worker launch of 27 us block tasks that is evicted and launched again for every query.
// Goals: 0.02 s at kernel level (0.05 s with the scheduler), 1 s at block level.

#include <benchmark/benchmark.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "src/core/seams/device.h"
#include "src/models/profile/profile.h"
#include "src/sim/sim_device.h"

namespace gpushare::sim {
namespace {

constexpr core::TimeNs kSecond = 1'000'000'000;
constexpr core::TimeNs kPeriod = kSecond / 450;

class EvictionLoop {
 public:
  EvictionLoop(Tier tier, const models::Profile& profile) {
    SimOptions options;
    options.profile = profile.device;
    options.tier = tier;
    device_ = *MakeSimDevice(options);
    core::LaunchPart& lc = lc_.parts[0];
    core::LaunchPart& be = be_.parts[0];
    lc.work.kernel = profile.FindKernel("chain1");
    be.work.kernel = profile.FindKernel("sincos_27us");
    for (const core::LaunchPart* part : {&lc, &be}) {
      if (!device_->PrepareKernel(*part->work.kernel).ok()) std::abort();
    }
    lc.lane = *device_->CreateLane({core::kWholeDevice, core::LanePriority::kHigh, false});
    lc_.form = core::Form::kGraph;
    be.lane = *device_->CreateLane({core::kWholeDevice, core::LanePriority::kLow, true});
    be_.form = core::Form::kWorkers;
    be.counter = 0;
    be.block_count = int64_t{1} << 39;
    be.reset_counter = true;
  }

  int64_t RunOneSecond() {
    const core::TimeNs start = device_->NowNs();
    int64_t completions = 0;
    for (core::TimeNs arrival = start; arrival < start + kSecond; arrival += kPeriod) {
      completions += RunUntil(arrival);
      if (be_runs_ && !device_->Evict(be_.parts[0].lane, be_.parts[0].epoch, 0).ok()) std::abort();
      lc_.parts[0].launch = core::LaunchId{1};
      if (!device_->Launch(lc_).ok()) std::abort();
      lc_runs_ = true;
    }
    return completions + RunUntil(start + kSecond);
  }

 private:
  int64_t RunUntil(core::TimeNs time) {
    int64_t completions = 0;
    for (core::TimeNs next = device_->NextEventNs(); next <= time; next = device_->NextEventNs()) {
      device_->AdvanceTo(next);
      std::array<core::DeviceCompletion, 8> out;
      const size_t count = device_->PollCompletions(absl::MakeSpan(out));
      for (size_t i = 0; i < count; ++i) (out[i].launch.value == 1 ? lc_runs_ : be_runs_) = false;
      completions += static_cast<int64_t>(count);
      if (count > 0 && !lc_runs_ && !be_runs_) LaunchBe();
    }
    device_->AdvanceTo(time);
    return completions;
  }

  void LaunchBe() {
    be_.parts[0].launch = core::LaunchId{2};
    ++be_.parts[0].epoch;
    if (!device_->Launch(be_).ok()) std::abort();
    be_.parts[0].reset_counter = false;
    be_runs_ = true;
  }

  std::unique_ptr<core::Device> device_;
  core::LaunchRequest lc_, be_;
  bool lc_runs_ = false;
  bool be_runs_ = false;
};

void OneSimulatedSecond(benchmark::State& state, Tier tier) {
  const char* path = std::getenv("GPUSHARE_PROFILE");
  auto profile = models::LoadProfile(path != nullptr ? path : "profiles/h200.json");
  if (!profile.ok()) {
    state.SkipWithError(std::string(profile.status().message()).c_str());
    return;
  }
  EvictionLoop loop(tier, *profile);
  int64_t completions = 0;
  for (auto _ : state) completions += loop.RunOneSecond();
  state.counters["completions"] =
      benchmark::Counter(static_cast<double>(completions), benchmark::Counter::kAvgIterations);
}

BENCHMARK_CAPTURE(OneSimulatedSecond, kernel, Tier::kKernel)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(OneSimulatedSecond, block, Tier::kBlock)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace gpushare::sim
