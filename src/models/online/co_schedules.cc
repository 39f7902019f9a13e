// Measured and solved co-schedules; see co_schedules.h.

#include "src/models/online/co_schedules.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "src/core/base/limits.h"
#include "src/models/markov/co_schedule.h"
#include "src/models/markov/counters.h"
#include "src/models/markov/pipes/pipe_pair.h"
#include "src/models/markov/pipes/pre_run.h"
#include "src/models/markov/virtual_sm.h"

namespace gpushare::models {
namespace {

using core::CoResidentSide;

// Repeats of one pair differ by so much.
constexpr double kMeasuredError = 0.03;
// A pair that was measured with other numbers of workers.
constexpr double kOtherWorkersError = 0.15;
// Of the Markov model on held-out pairs of an H200, the root of the mean square of the relative
// errors (docs/models.md): with pipes, and as in the paper, for kernels without all counters.
constexpr double kPipesError = 0.35;
constexpr double kMarkovError = 0.54;

// How far the error of a prediction at other numbers of workers of the same pair tells that at
// these, one standard deviation (docs/models.md).
constexpr double kOtherRunsError = 0.2;

constexpr int32_t kSchedulers = 4;
constexpr int32_t kThreadsOfWarp = 32;
constexpr double kSectorsOfRequest = 4;  // 128 bytes
// Of an H200, whose training pairs fitted the line of memory latency (docs/models.md).
constexpr double kBandwidthBytesPerS = 4.8e12;
constexpr double kLatencyCycles = 50;
constexpr double kContentionSlope = 1;
constexpr double kContentionOffset = 0.5;
constexpr double kMegahertz = 1e6;

markov::GpuShape ShapeOf(const core::DeviceProfile& device) {
  markov::GpuShape gpu;
  gpu.sms = device.sm_count;
  gpu.schedulers_per_sm = kSchedulers;
  gpu.warps_per_sm = device.threads_per_sm / kThreadsOfWarp;
  gpu.blocks_per_sm = device.blocks_per_sm;
  gpu.registers_per_sm = device.registers_per_sm;
  gpu.shared_bytes_per_sm = device.shared_memory_per_sm_bytes;
  gpu.clock_hz = device.clock_mhz * kMegahertz;
  gpu.bandwidth_bytes_per_s = kBandwidthBytesPerS;
  gpu.latency_cycles = kLatencyCycles;
  gpu.contention_slope = kContentionSlope;
  gpu.contention_offset = kContentionOffset;
  return gpu;
}

markov::Side SideOf(const CoResidentSide& side) {
  const core::KernelDesc& kernel = *side.kernel;
  markov::Side out;
  out.counters.instructions_per_block = kernel.counters.instructions;
  out.counters.memory_share =
      std::min(1.0, kernel.counters.memory_instructions / kernel.counters.instructions);
  const double requests = kernel.counters.sectors_per_request / kSectorsOfRequest;
  out.counters.uncoalesced_share = requests > 1 ? 1 : 0;
  out.counters.uncoalesced_requests = std::clamp(requests, 1.0, 32.0);
  out.counters.warps_per_block =
      std::max(1, (kernel.resources.threads_per_block + kThreadsOfWarp - 1) / kThreadsOfWarp);
  out.counters.registers_per_block =
      int64_t{kernel.resources.threads_per_block} * kernel.resources.registers_per_thread;
  out.counters.shared_bytes_per_block = kernel.resources.shared_memory_bytes;
  out.blocks_per_sm = side.workers_per_sm;
  out.blocks = 1;
  return out;
}

markov::CalibratedKernel Calibrated(const core::KernelDesc& kernel,
                                    markov::ChainWorkspace& workspace) {
  const double warps =
      std::ceil(static_cast<double>(kernel.resources.threads_per_block) / kThreadsOfWarp);
  return markov::Calibrate(
      markov::MakePreRun(kernel.counters, kernel.simulation.saturating_occupancy,
                         kernel.resources.workers_per_sm_max, std::max(1.0, warps), kSchedulers),
      workspace);
}

markov::SideKey KeyOf(const CoResidentSide& side) {
  return {side.kernel->id.value, side.workers_per_sm, 1};
}

CoRunPair RunsOf(const CoResidentSide& own, const CoResidentSide& neighbour) {
  return {own.kernel->id.value, neighbour.kernel->id.value};
}

double SpeedOf(const markov::SidePrediction& side) {
  return side.ipc_alone > 0 ? std::clamp(side.ipc / side.ipc_alone, 0.0, 1.0) : 0;
}

}  // namespace

double ShareOf(const core::CoResidentSide& side) {
  const double occupancy = static_cast<double>(side.workers_per_sm) /
                           std::max(1, side.kernel->resources.workers_per_sm_max);
  const double saturating = side.kernel->simulation.saturating_occupancy;
  return std::clamp(occupancy / std::max(1e-3, saturating), 1e-3, 1.0);
}

std::array<core::Prediction, 2> FinishTimes(const std::array<core::Prediction, 2>& alone,
                                            const std::array<double, 2>& share,
                                            const CoScheduleSpeeds& speeds) {
  std::array<double, 2> end_ns;
  for (size_t i = 0; i < 2; ++i) {
    end_ns[i] = static_cast<double>(alone[i].duration_ns) / speeds.speed[i];
  }
  const size_t first = end_ns[0] <= end_ns[1] ? 0 : 1;
  const size_t last = 1 - first;
  const double left_ns =
      static_cast<double>(alone[last].duration_ns) - end_ns[first] * speeds.speed[last];
  end_ns[last] = end_ns[first] + left_ns / std::max(share[last], speeds.speed[last]);
  std::array<core::Prediction, 2> out;
  for (size_t i = 0; i < 2; ++i) {
    const double ns = std::clamp(end_ns[i], 0.0, static_cast<double>(core::kMaxDurationNs));
    const double solo_error = static_cast<double>(alone[i].error_ns) /
                              static_cast<double>(std::max<int64_t>(1, alone[i].duration_ns));
    const double error_ns = std::min(ns * std::hypot(speeds.error, solo_error),
                                     static_cast<double>(core::kMaxDurationNs));
    out[i] = {std::llround(ns), std::llround(error_ns), alone[i].trained};
  }
  return out;
}

CoSchedules::CoSchedules(const core::DeviceProfile& device, std::vector<CoResidentRecord> measured)
    : device_(device), records_(std::move(measured)) {}

CoSchedules::Prepared CoSchedules::Prepare(co_resident::State state) const {
  Prepared prepared;
  if (!state.known()) return prepared;
  prepared.model = std::make_unique<const co_resident::Model>(std::move(state));
  for (const auto& [id, kernel] : counted_) prepared.views[id] = prepared.model->ViewOf(kernel);
  return prepared;
}

void CoSchedules::Restore(Prepared prepared) {
  prepared_.model = std::move(prepared.model);
  prepared_.views.swap(prepared.views);
}

const co_resident::State* CoSchedules::learned() const {
  return prepared_.model == nullptr ? nullptr : &prepared_.model->state();
}

void CoSchedules::Add(const core::KernelDesc& kernel) {
  const uint32_t id = kernel.id.value;  // maybe of a kernel that is gone
  std::erase_if(ids_, [id](const auto& named) { return named.second == id; });
  std::erase_if(measured_, [id](const auto& pair) {
    return pair.first.first == id || pair.first.second == id;
  });
  calibrated_.erase(id);
  runs_.Forget(id);
  ids_[kernel.name] = id;
  if (kernel.counters.present()) {
    // Without a record 1 is what nobody timed.
    const double saturating = kernel.simulation.saturating_occupancy;
    const bool timed = kernel.simulation.present || saturating < 1;
    const co_resident::Kernel counted = {kernel.counters, timed ? saturating : 0,
                                         kernel.resources.workers_per_sm_max};
    counted_[kernel.id.value] = counted;
    if (prepared_.model != nullptr) {
      prepared_.views[kernel.id.value] = prepared_.model->ViewOf(counted);
    }
  } else {
    counted_.erase(kernel.id.value);
    prepared_.views.erase(kernel.id.value);
  }
  if (kernel.counters.present()) {
    if (workspace_ == nullptr) workspace_ = std::make_unique<markov::ChainWorkspace>();
    if (cache_ == nullptr) cache_ = std::make_unique<markov::PairCache>();
    cache_->Clear();
    calibrated_[kernel.id.value] = Calibrated(kernel, *workspace_);
  }
  for (const CoResidentRecord& record : records_) {
    if (record.first != kernel.name && record.second != kernel.name) continue;
    const auto first = ids_.find(record.first);
    const auto second = ids_.find(record.second);
    if (first == ids_.end() || second == ids_.end()) continue;
    measured_[{first->second, second->second}] = record.points;
  }
}

CoScheduleSpeeds CoSchedules::Measured(const CoResidentSide& first,
                                       const CoResidentSide& second) const {
  const auto found = measured_.find({first.kernel->id.value, second.kernel->id.value});
  if (found == measured_.end()) return {};
  const CoResidentPoint* nearest = nullptr;
  int32_t least = 0;
  for (const CoResidentPoint& point : found->second) {
    if (!(point.first_speed > 0 && point.second_speed > 0)) continue;
    const int32_t far = std::abs(point.first_workers_per_sm - first.workers_per_sm) +
                        std::abs(point.second_workers_per_sm - second.workers_per_sm);
    if (nearest != nullptr && far >= least) continue;
    nearest = &point;
    least = far;
  }
  if (nearest == nullptr) return {};
  return {{std::min(1.0, nearest->first_speed), std::min(1.0, nearest->second_speed)},
          least == 0 ? kMeasuredError : kOtherWorkersError};
}

bool CoSchedules::HavePipes(const CoResidentSide& first, const CoResidentSide& second) const {
  const auto one = calibrated_.find(first.kernel->id.value);
  const auto two = calibrated_.find(second.kernel->id.value);
  return one != calibrated_.end() && two != calibrated_.end() && one->second.known &&
         two->second.known;
}

double CoSchedules::ChainError(const CoResidentSide& first, const CoResidentSide& second) const {
  return HavePipes(first, second) ? kPipesError : kMarkovError;
}

markov::PairPrediction CoSchedules::SolvePair(const CoResidentSide& first,
                                              const CoResidentSide& second) const {
  const std::array<markov::Side, 2> sides = {SideOf(first), SideOf(second)};
  if (!HavePipes(first, second)) {
    return markov::PredictPair(ShapeOf(device_), sides, markov::Unit::kBlock, *workspace_);
  }
  return markov::PredictPairWithPipes(
      ShapeOf(device_), sides,
      {calibrated_.at(first.kernel->id.value), calibrated_.at(second.kernel->id.value)}, {},
      *workspace_);
}

CoScheduleSpeeds CoSchedules::FromCounters(const CoResidentSide& first,
                                           const CoResidentSide& second) const {
  const auto one = prepared_.views.find(first.kernel->id.value);
  const auto other = prepared_.views.find(second.kernel->id.value);
  if (one == prepared_.views.end() || other == prepared_.views.end()) return {};
  const co_resident::Speeds speeds = prepared_.model->Predict(
      {&one->second, first.workers_per_sm}, {&other->second, second.workers_per_sm});
  return {speeds.speed, speeds.error};
}

CoScheduleSpeeds CoSchedules::Solved(const CoResidentSide& first,
                                     const CoResidentSide& second) const {
  if (!first.kernel->counters.present() || !second.kernel->counters.present()) return {};
  if (workspace_ == nullptr || cache_ == nullptr) return {};  // of kernels that were never added
  const markov::PairPrediction* known = cache_->Find(KeyOf(first), KeyOf(second));
  markov::PairPrediction solved;
  if (known == nullptr) {
    solved = SolvePair(first, second);
    cache_->Insert(KeyOf(first), KeyOf(second), solved);
    known = &solved;
  }
  if (!known->known) return {};
  return {{SpeedOf(known->sides[0]), SpeedOf(known->sides[1])}, ChainError(first, second)};
}

bool CoSchedules::Observe(const CoResidentSide& own, const CoResidentSide& neighbour,
                          double speed) {
  return runs_.Observe(RunsOf(own, neighbour), own.workers_per_sm, neighbour.workers_per_sm, speed);
}

// Runs with the same workers count alone; without any, those with the closest ones.
UncertainSpeed CoSchedules::Corrected(const CoResidentSide& own, const CoResidentSide& neighbour,
                                      const UncertainSpeed& predicted) const {
  const CoRunPair pair = RunsOf(own, neighbour);
  if (const CoRunMean* const runs =
          runs_.Find(pair, own.workers_per_sm, neighbour.workers_per_sm)) {
    return Combine(predicted, *runs);
  }
  const CoRunPoint* const near = runs_.Nearest(pair, own.workers_per_sm, neighbour.workers_per_sm);
  if (near == nullptr || predicted.error >= 1) return predicted;
  const CoScheduleSpeeds there = Predicted({own.kernel, near->workers, own.block_tasks},
                                           {neighbour.kernel, near->neighbour_workers, 0});
  if (!(there.error < 1 && there.speed[0] > 0)) return predicted;
  const UncertainSpeed by_ratio = {
      std::min(1.0, predicted.speed * near->mean.speed / there.speed[0]),
      std::hypot(SpeedOf(near->mean).error, kOtherRunsError)};
  // On held-out pairs the speed came closer, but by less than both error bars together say.
  return {Combine(predicted, by_ratio).speed, predicted.error};
}

CoScheduleSpeeds CoSchedules::Predict(const CoResidentSide& first,
                                      const CoResidentSide& second) const {
  const CoScheduleSpeeds predicted = Predicted(first, second);
  if (runs_.empty()) return predicted;
  const UncertainSpeed one = Corrected(first, second, {predicted.speed[0], predicted.error});
  const UncertainSpeed other = Corrected(second, first, {predicted.speed[1], predicted.error});
  return {{one.speed, other.speed}, std::max(one.error, other.error)};
}

CoScheduleSpeeds CoSchedules::Predicted(const CoResidentSide& first,
                                        const CoResidentSide& second) const {
  if (first.workers_per_sm <= 0 || second.workers_per_sm <= 0) return {};
  if (const CoScheduleSpeeds speeds = Measured(first, second); speeds.error < 1) return speeds;
  CoScheduleSpeeds swapped = Measured(second, first);
  if (swapped.error < 1) {
    std::swap(swapped.speed[0], swapped.speed[1]);
    return swapped;
  }
  if (const CoScheduleSpeeds speeds = FromCounters(first, second);
      speeds.error < ChainError(first, second)) {
    return speeds;
  }
  return Solved(first, second);
}

}  // namespace gpushare::models
