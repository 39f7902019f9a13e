// Measurements to models; see sample_router.h.

#include "src/models/online/sample_router.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "src/core/base/limits.h"
#include "src/models/durations/scaling.h"

namespace gpushare::models {

using core::Form;
using core::KernelDesc;
using core::Observation;
using core::Prediction;
using core::TaskFeatures;
using core::TaskKind;

namespace {

// An eviction adds at most this many times its p99 to the query that waits for it.
constexpr double kBlockingOfEviction = 2;
// A launch that kept less beside copies met something else.
constexpr double kKeptBesideCopiesMin = 0.5;
// A smaller change of a blocking time changes no plan.
constexpr double kAnnouncedBlockingNs = 2000;
// Then the guess that a duration began with hardly counts.
constexpr int64_t kFirstSamples = 8;

}  // namespace

void SampleRouter::Route(const Observation& observation) {
  if (observation.measured_ns < 0 || observation.measured_ns > core::kMaxDurationNs) return;
  if (observation.evicted) return TrainEviction(observation);
  if (observation.fused != nullptr) return TrainFused(observation);
  if (observation.co_run != nullptr) {
    return TrainCoRun(*observation.co_run, observation.measured_ns);
  }
  if (observation.copies != 0 && TrainBesideCopies(observation)) return;
  if (!observation.beside.empty() && !IsFirstOfBe(observation)) {
    if (TrainBeside(observation, observation.beside.front())) ++models_.version;
    return;
  }
  const double measured_ns = WholeDeviceNs(observation);
  if (measured_ns <= 0) return;
  CountError(observation, measured_ns);
  if (TrainSolo(observation.features, measured_ns)) ++models_.version;
}

double SampleRouter::MeanRelativeError(int64_t* samples) const {
  if (samples != nullptr) *samples = error_samples_;
  return error_samples_ == 0 ? 0 : error_sum_ / static_cast<double>(error_samples_);
}

void SampleRouter::TrainEviction(const Observation& observation) {
  KernelModel* model = Find(observation.features.kernel);
  if (model != nullptr && model->eviction.Observe(static_cast<double>(observation.measured_ns))) {
    ++models_.version;
  }
}

void SampleRouter::TrainFused(const Observation& observation) {
  if (observation.sms < models_.device.sm_count || !observation.beside.empty()) return;
  const std::array<Prediction, 2> parts = PartsOf(models_, *observation.fused);
  if (models_.fused.Observe(*observation.fused->kernel, parts[0], parts[1],
                            observation.measured_ns)) {
    ++models_.fused_version;
  }
}

// Without its neighbour the launch had the speed of its workers alone, for the rest of its time.
void SampleRouter::TrainCoRun(const core::CoRun& run, int64_t measured_ns) {
  const Prediction solo = SoloOf(models_, run.own.kernel->id, run.own.block_tasks);
  // Against a guess the run would blame the neighbour for the error of the guess.
  if (!solo.trained || measured_ns <= 0 || !(run.beside_share > 0)) return;
  const double whole = static_cast<double>(solo.duration_ns) / static_cast<double>(measured_ns);
  const double speed = (whole - ShareOf(run.own) * (1 - run.beside_share)) / run.beside_share;
  if (!models_.co_schedules.Observe(run.own, run.neighbour, speed)) return;
  models_.co_schedule_changes.Note(run.own.kernel->id, run.neighbour.kernel->id);
  ++models_.co_schedule_version;
}

// Learns from an LC launch that ran beside copies all along. Returns false where its duration
// alone is not known yet: then the launch says more of that.
bool SampleRouter::TrainBesideCopies(const Observation& observation) {
  KernelModel* model = Find(observation.features.kernel);
  if (model == nullptr || observation.copies >= core::kLinkUses) return false;
  const Prediction solo = durations_.PredictSolo(observation.features);
  if (!solo.trained || observation.measured_ns <= 0) return false;
  const double alone_ns = static_cast<double>(solo.duration_ns) /
                          durations_.SpeedOn(*observation.features.kernel, observation.sms);
  const double kept = alone_ns / static_cast<double>(observation.measured_ns);
  if (kept < kKeptBesideCopiesMin) return true;  // something else held it up
  FollowedMean& speed = model->beside_copies[observation.copies];
  if (speed.Observe(std::min(kept, 1.0), kCopySpeedError)) ++models_.version;
  return true;
}

// Learns from an LC launch that began beside one BE kernel: a kernel that ran on the other SMs
// all along, or one that held the launch's SMs until it was evicted.
bool SampleRouter::TrainBeside(const Observation& observation, const core::CoResident& beside) {
  const KernelDesc* kernel = observation.features.kernel;
  if (kernel == nullptr || beside.kernel == nullptr || observation.measured_ns <= 0) return false;
  const Prediction solo = durations_.PredictSolo(observation.features);
  // Against a guess the sample would blame the neighbour for the error of the guess.
  if (!IsKnownAlone(*kernel, solo)) return false;
  BesideSample sample;
  sample.key = {kernel->id.value, beside.kernel->id.value, observation.sms};
  sample.alone_ns =
      static_cast<double>(solo.duration_ns) / durations_.SpeedOn(*kernel, observation.sms);
  sample.measured_ns = static_cast<double>(observation.measured_ns);
  if (beside.same_sms) return TrainEvicting(sample, beside);
  return beside.sms > 0 && TrainPair(sample);
}

// Returns whether predictions have changed enough to plan anew.
bool SampleRouter::TrainPair(const BesideSample& sample) {
  // The mean moves with each sample, and the next plan after an announced change reads it.
  models_.pair_changes.Note(core::KernelId{sample.key.kernel},
                            core::KernelId{sample.key.neighbour});
  return models_.pairs.ObserveSpeed(sample.key, sample.alone_ns / sample.measured_ns);
}

// A much longer delay has another cause than the eviction.
double SampleRouter::MostAddedBy(const KernelDesc& evicted) const {
  const Prediction eviction = durations_.PredictEviction(evicted);
  return kBlockingOfEviction * static_cast<double>(eviction.duration_ns + 2 * eviction.error_ns);
}

// The kernel held the launch's SMs until it was evicted, and may have stayed on the others.
bool SampleRouter::TrainEvicting(const BesideSample& sample, const core::CoResident& beside) {
  if (beside.sms <= 0 || Find(beside.kernel) == nullptr || !beside.kernel->evictable) return false;
  const double speed = models_.pairs.SpeedOf(sample.key);
  const double added_ns = sample.measured_ns - sample.alone_ns / (speed > 0 ? speed : 1);
  // The likely cause of a longer delay is the part that stays. If every query evicts a part, only
  // such samples show the pair's speed. A query that is faster than expected shows that the speed
  // is too low. Any other sample does not contradict it.
  const double added_most_ns = MostAddedBy(*beside.kernel);
  if (added_ns > added_most_ns) {
    const double eviction_ns = added_most_ns / kBlockingOfEviction;
    return TrainPair({sample.key, sample.alone_ns, sample.measured_ns - eviction_ns});
  }
  if (added_ns < 0) return TrainPair(sample);
  models_.pairs.Confirm(sample.key);
  return false;
}

void SampleRouter::Train(const core::DelayedQuery& query) {
  KernelModel* const evicted = Find(query.evicted);
  if (evicted == nullptr || query.kernel == nullptr || !query.evicted->evictable) return;
  if (!IsKnownAlone(*query.kernel, {.trained = query.kernel_trained})) return;
  // Cut where it has another cause: one such sample would keep the kernel out, and no better ones
  // would follow.
  const double most_ns =
      std::min(MostAddedBy(*query.evicted), static_cast<double>(core::kMaxDurationNs));
  const double added_ns = std::clamp(static_cast<double>(query.added_ns), -most_ns, most_ns);
  if (evicted->blocking.Observe(added_ns, kAnnouncedBlockingNs)) ++models_.version;
}

bool SampleRouter::TrainSolo(const TaskFeatures& features, double measured_ns) {
  if (features.kind == TaskKind::kMemcpy) {
    return models_.copies.Observe(models_.device, features, measured_ns);
  }
  if (features.kernel == nullptr) return models_.opaque.Observe(features, measured_ns);
  KernelModel* model = Find(features.kernel);
  return model != nullptr && model->solo.Observe(features.block_tasks, measured_ns,
                                                 model->prior.NsOf(features.block_tasks));
}

bool SampleRouter::IsKnownAlone(const KernelDesc& kernel, const Prediction& solo) const {
  if (solo.trained || kernel.simulation.present || kernel.counters.present() ||
      kernel.solo_hint_ns > 0) {
    return true;
  }
  const KernelModel* model = models_.kernels.Find(kernel.id);
  return model != nullptr && model->prior.IsOpenForCall() && model->prior.known();
}

// Beside a neighbour a kernel is slower than alone, which says nothing about a known duration. Of
// a BE kernel of which nothing is known it is a first idea, though, without which the kernel
// would never be given a second part.
bool SampleRouter::IsFirstOfBe(const Observation& observation) const {
  if (observation.features.kernel == nullptr || observation.beside.front().sms != 0) return false;
  const KernelModel* model = models_.kernels.Find(observation.features.kernel->id);
  return model != nullptr && !model->prior.known() && model->solo.line().samples < kFirstSamples;
}

// The duration on the whole device that the sample implies; 0 if it implies none.
double SampleRouter::WholeDeviceNs(const Observation& observation) const {
  const double measured = static_cast<double>(observation.measured_ns);
  const KernelDesc* kernel = observation.features.kernel;
  if (kernel == nullptr || observation.sms <= 0) return measured;
  const bool capped =
      observation.form == Form::kWorkers && observation.workers > 0 &&
      observation.workers < observation.sms * kernel->resources.workers_per_sm_max &&
      observation.workers < observation.features.block_tasks;
  if (capped || observation.form == Form::kFused) return 0;
  if (observation.sms >= models_.device.sm_count) return measured;
  return measured * SpeedOnSms(*kernel, observation.sms, models_.device.sm_count);
}

// Compares with the prediction of the plan, if that was for the whole device, else with one now.
void SampleRouter::CountError(const Observation& observation, double measured_ns) {
  const bool whole = observation.sms <= 0 || observation.sms >= models_.device.sm_count;
  const int64_t predicted = whole && observation.predicted_ns > 0
                                ? observation.predicted_ns
                                : durations_.PredictSolo(observation.features).duration_ns;
  error_sum_ += std::abs(static_cast<double>(predicted) - measured_ns) / measured_ns;
  ++error_samples_;
}

KernelModel* SampleRouter::Find(const KernelDesc* kernel) {
  return kernel == nullptr ? nullptr : models_.kernels.FindMutable(kernel->id);
}

}  // namespace gpushare::models
