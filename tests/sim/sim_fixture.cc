// See sim_fixture.h.

#include "tests/sim/sim_fixture.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include "src/core/base/random.h"
#include "tests/core/make_place.h"

namespace gpushare::sim {
namespace {

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

template <class T>
T Must(absl::StatusOr<T> value) {
  if (!value.ok()) Fail(value.status().ToString());
  return *std::move(value);
}

void Must(const absl::Status& status) {
  if (!status.ok()) Fail(status.ToString());
}

double Quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

const models::Profile* LoadWithIds(const char* path) {
  auto* profile = new models::Profile(Must(models::LoadProfile(path)));
  uint32_t id = 1;
  for (core::KernelDesc& kernel : profile->kernels) kernel.id = core::KernelId{id++};
  return profile;
}

// One LC app and one BE app on the seam.
class Loop {
 public:
  explicit Loop(const Colocation& colocation)
      : case_(colocation),
        device_(MakeDevice(colocation.tier, colocation.seed)),
        arrivals_(0xA11),
        lc_(Kernel(colocation.lc)),
        be_(Kernel(colocation.be)) {
    MakeLanes();
    const double sm_task =
        static_cast<double>(be_.simulation.block_task_ns) / be_.resources.workers_per_sm_max;
    tasks_ = static_cast<int64_t>(case_.be_task_ns / sm_task) * 132;
    solo_tasks_per_ns_ = 132 / sm_task;
  }

  ColocationResult Run() {
    NextArrival();
    LaunchBe();
    while (finished_ < case_.queries && device_->NowNs() < case_.give_up_ns) Step();
    ColocationResult result;
    result.elapsed_ns = static_cast<double>(device_->NowNs());
    result.lc_p50_ns = Quantile(latencies_, 0.50);
    result.lc_p99_ns = Quantile(latencies_, 0.99);
    result.service_ns = Quantile(services_, 0.50);
    result.eviction_p50_ns = Quantile(evictions_, 0.50);
    result.eviction_p99_ns = Quantile(evictions_, 0.99);
    result.be_rate = static_cast<double>(be_done_) / solo_tasks_per_ns_ / result.elapsed_ns;
    result.realised_load = case_.lc_solo_ns * finished_ / result.elapsed_ns;
    result.busy_share = static_cast<double>(device_->BusySmNs()) / 132 / result.elapsed_ns;
    result.queries = finished_;
    return result;
  }

 private:
  struct BeLane {
    core::LaneIndex lane = core::kNoLane;
    bool yields_to_lc = false;
    bool running = false;
    bool evicting = false;
    uint64_t epoch = 0;
    core::TimeNs evicted_at = 0;
  };

  bool HasBe() const { return case_.mechanism != Mechanism::kAlone; }

  void MakeLanes() {
    core::PlaceIndex lc_place = core::kWholeDevice;
    core::PlaceIndex be_place = core::kWholeDevice;
    if (case_.mechanism == Mechanism::kPartition || case_.mechanism == Mechanism::kElastic) {
      lc_place = Must(core::MakePlace(*device_, {0, case_.lc_groups, true}));
      be_place = Must(core::MakePlace(*device_, {case_.lc_groups, 15 - case_.lc_groups, false}));
    }
    const bool first = case_.mechanism != Mechanism::kStreams;
    lc_lane_ = Must(device_->CreateLane(
        {lc_place, first ? core::LanePriority::kHigh : core::LanePriority::kNormal, false}));
    const auto low = first ? core::LanePriority::kLow : core::LanePriority::kNormal;
    auto add = [&](core::PlaceIndex place, bool yields) {
      be_lanes_.push_back({Must(device_->CreateLane({place, low, true})), yields});
    };
    if (!HasBe()) return;
    const bool elastic = case_.mechanism == Mechanism::kElastic;
    add(be_place, case_.mechanism == Mechanism::kEvictAll);
    if (elastic) add(lc_place, true);
  }

  void NextArrival() {
    if (case_.lc_saturated) {
      next_arrival_ = lc_pending_ == 0 ? device_->NowNs() : core::kNever;
      return;
    }
    if (arrived_ == case_.queries) {
      next_arrival_ = core::kNever;
      return;
    }
    arrival_clock_ += arrivals_.Exponential(case_.lc_solo_ns / case_.load);
    next_arrival_ = static_cast<core::TimeNs>(arrival_clock_);
  }

  void Step() {
    const core::TimeNs next = std::min(device_->NextEventNs(), next_arrival_);
    if (next == core::kNever) Fail("The simulation stalls before its last query.");
    device_->AdvanceTo(next);
    Collect();
    if (device_->NowNs() >= next_arrival_) Arrive();
    LaunchBe();
  }

  void Arrive() {
    ++arrived_;
    ++lc_pending_;
    arrival_times_.push_back(next_arrival_);
    for (BeLane& be : be_lanes_) {
      if (!be.yields_to_lc || !be.running || be.evicting) continue;
      be.evicting = true;
      be.evicted_at = device_->NowNs();
      Must(device_->Evict(be.lane, be.epoch, 0));
    }
    ++backlog_;
    LaunchLc();
    NextArrival();
  }

  // A case without a steady state accumulates more queries than the device accepts launches.
  void LaunchLc() {
    constexpr int kInFlightMax = 500;
    for (; backlog_ > 0 && lc_in_flight_ < kInFlightMax; --backlog_, ++lc_in_flight_) {
      core::LaunchRequest request;
      request.parts[0].launch = core::LaunchId{next_launch_++};
      request.parts[0].lane = lc_lane_;
      request.form = core::Form::kGraph;
      request.parts[0].work.kernel = &lc_;
      Must(device_->Launch(request));
    }
  }

  void LaunchBe() {
    for (size_t i = 0; i < be_lanes_.size(); ++i) {
      BeLane& be = be_lanes_[i];
      if (be.running || (be.yields_to_lc && lc_pending_ > 0)) continue;
      // The other launch on the counter still runs the task's last block tasks.
      const bool others = std::any_of(be_lanes_.begin(), be_lanes_.end(),
                                      [](const BeLane& lane) { return lane.running; });
      if (tasks_left_ == 0 && others) continue;
      const bool fresh = tasks_left_ == 0;
      if (fresh) {
        tasks_left_ = tasks_;
        drained_ = false;
      }
      if (drained_) continue;
      core::LaunchRequest request;
      request.parts[0].launch = core::LaunchId{next_launch_++ | (uint64_t{i + 1} << 56)};
      request.parts[0].lane = be.lane;
      request.parts[0].work.kernel = &be_;
      const bool grid =
          case_.mechanism == Mechanism::kStreams || case_.mechanism == Mechanism::kPriority;
      request.form = grid ? core::Form::kOriginal : core::Form::kWorkers;
      request.parts[0].block_count = tasks_;
      request.parts[0].counter = grid ? -1 : 0;
      request.parts[0].reset_counter = fresh;
      request.workers = case_.mechanism == Mechanism::kQuota ? 2 * 132 : 0;
      request.parts[0].epoch = ++be.epoch;
      Must(device_->Launch(request));
      be.running = true;
      be.evicting = false;
    }
  }

  void Collect() {
    std::array<core::DeviceCompletion, 16> done;
    for (size_t n = device_->PollCompletions(absl::MakeSpan(done)); n > 0;
         n = device_->PollCompletions(absl::MakeSpan(done))) {
      for (size_t i = 0; i < n; ++i) Handle(done[i]);
    }
  }

  void Handle(const core::DeviceCompletion& done) {
    const size_t lane = static_cast<size_t>(done.launch.value >> 56);
    if (lane == 0) {
      latencies_.push_back(static_cast<double>(device_->NowNs() - arrival_times_[finished_]));
      services_.push_back(static_cast<double>(done.end_ns - done.start_ns) + 8000);
      ++finished_;
      --lc_pending_;
      --lc_in_flight_;
      LaunchLc();
      if (case_.lc_saturated) NextArrival();
      return;
    }
    BeLane& be = be_lanes_[lane - 1];
    be.running = false;
    be_done_ += done.block_tasks_done;
    tasks_left_ -= done.block_tasks_done;
    if (done.outcome == core::Outcome::kFinished && tasks_left_ > 0) drained_ = true;
    if (done.outcome == core::Outcome::kEvicted) {
      evictions_.push_back(static_cast<double>(done.end_ns - be.evicted_at));
    }
  }

  const Colocation case_;
  std::unique_ptr<core::Device> device_;
  core::Random arrivals_;
  const core::KernelDesc& lc_;
  const core::KernelDesc& be_;
  core::LaneIndex lc_lane_ = core::kNoLane;
  std::vector<BeLane> be_lanes_;
  int64_t tasks_ = 0;
  int64_t tasks_left_ = 0;
  bool drained_ = false;  // the counter is empty; its last block tasks still run
  double solo_tasks_per_ns_ = 0;
  double arrival_clock_ = 0;
  core::TimeNs next_arrival_ = 0;
  std::vector<core::TimeNs> arrival_times_;
  int arrived_ = 0;
  size_t lc_pending_ = 0;
  int backlog_ = 0;
  int lc_in_flight_ = 0;
  int finished_ = 0;
  int64_t be_done_ = 0;
  uint64_t next_launch_ = 1;
  std::vector<double> latencies_, services_, evictions_;
};

}  // namespace

const models::Profile& H200() {
  static const models::Profile* const kProfile = LoadWithIds(GPUSHARE_H200_PROFILE);
  return *kProfile;
}

const models::Profile& Calibrated() {
  static const models::Profile* const kProfile = LoadWithIds(GPUSHARE_CALIBRATED_PROFILE);
  return *kProfile;
}

const core::KernelDesc& Kernel(const std::string& name) {
  const core::KernelDesc* kernel = H200().FindKernel(name);
  if (kernel == nullptr) Fail("The profile has no kernel '" + name + "'.");
  return *kernel;
}

std::unique_ptr<core::Device> MakeDevice(Tier tier, uint64_t seed, const FaultPlan& faults) {
  SimOptions options = {.profile = H200().device, .seed = seed, .tier = tier, .faults = faults};
  auto device = Must(MakeSimDevice(options));
  for (const core::KernelDesc& kernel : H200().kernels) {
    const absl::Status status = device->PrepareKernel(kernel);
    if (!status.ok() && faults.kernel_out_of_memory.nth == 0) Must(status);
  }
  return device;
}

std::vector<core::DeviceCompletion> RunUntilIdle(core::Device& device) {
  std::vector<core::DeviceCompletion> all;
  std::array<core::DeviceCompletion, 16> batch;
  for (;;) {
    for (size_t n = device.PollCompletions(absl::MakeSpan(batch)); n > 0;
         n = device.PollCompletions(absl::MakeSpan(batch))) {
      all.insert(all.end(), batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(n));
    }
    const core::TimeNs next = device.NextEventNs();
    if (next == core::kNever) return all;
    device.AdvanceTo(next);
  }
}

ColocationResult Run(const Colocation& colocation) { return Loop(colocation).Run(); }

}  // namespace gpushare::sim
