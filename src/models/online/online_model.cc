// The online cost model; see online_model.h.
//
// For each kernel it has a line over block tasks and an eviction model; copies, opaque work and
// pairs have models of their own. AddKernel, Save and Load allocate; predictions and observations
// do not.

#include "src/models/online/online_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <map>
#include <new>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/core/base/limits.h"
#include "src/core/base/status.h"
#include "src/models/durations/copy_contention.h"
#include "src/models/durations/eviction_model.h"
#include "src/models/durations/kernel_durations.h"
#include "src/models/durations/linear_model.h"
#include "src/models/durations/opaque_model.h"
#include "src/models/durations/prior.h"
#include "src/models/durations/query_models.h"
#include "src/models/durations/scaling.h"
#include "src/models/learned/learned.h"
#include "src/models/library/library_model.h"
#include "src/models/online/co_schedules.h"
#include "src/models/online/copy_model.h"
#include "src/models/online/fused_models.h"
#include "src/models/pairs/neighbour_model.h"
#include "src/models/pairs/pair_model.h"

namespace gpushare::models {
namespace {

using core::CostModel;
using core::DeviceProfile;
using core::Form;
using core::KernelDesc;
using core::Observation;
using core::Prediction;
using core::TaskFeatures;
using core::TaskKind;

// An eviction adds at most this many times its p99 to the query that waits for it.
constexpr double kBlockingOfEviction = 2;
// A launch that kept less beside copies met something else.
constexpr double kKeptBesideCopiesMin = 0.5;
// Error bar of a measured speed beside copies: launches scatter by 1 to 3 %, and the mean is of
// four or more. A smaller change changes no plan.
constexpr double kCopySpeedError = 0.005;
// A smaller change of a blocking time changes no plan.
constexpr double kAnnouncedBlockingNs = 2000;

struct KernelModel {
  std::string name;
  KernelPrior prior;
  KernelDurations solo;
  int64_t segments = 0;  // of a graph that is cut
  EvictionModel eviction;
  FollowedMean blocking;  // what its evictions added to LC launches, ns
  NeighbourModel neighbours;
  core::LibraryCall call = {};
  core::ResourceDemand demand = {};  // of a graph, the mean of its nodes
  CopySpeeds beside_copies = {};
};

Prediction Predicted(const KernelModel& model, int64_t block_tasks) {
  Prediction out = model.solo.Predict(block_tasks, model.prior.NsOf(block_tasks));
  if (model.prior.error() > 0 && model.solo.line().samples == 0) {
    out.error_ns = std::llround(static_cast<double>(out.duration_ns) * model.prior.error());
  }
  return out;
}

// Work that hardly uses what partitions share: a query without weights loses 1.4 % beside it, the
// mean of 149 measured rows.
constexpr double kLittleUse = 0.05;
bool UsesLittle(const core::KernelCounters& counters) {
  return counters.present() && counters.dram < kLittleUse && counters.l2 < kLittleUse;
}

// Whether the roofline of scaling.h says what `kernel` keeps beside `neighbour`. A kernel without a
// record has no demands: by the roofline it would keep all of its speed beside anything.
bool HasRoofline(const KernelDesc& kernel, const KernelDesc& neighbour) {
  if (!neighbour.simulation.present) return false;
  const core::ResourceDemand& demand = neighbour.simulation.demand;
  const bool little =
      neighbour.kind != TaskKind::kGraph && demand.dram < kLittleUse && demand.l2 < kLittleUse;
  return kernel.simulation.present || little;
}

class OnlineModel final : public CostModel,
                          private core::Durations,
                          private core::Neighbours,
                          private core::Overlaps {
 public:
  OnlineModel(const DeviceProfile& device, std::vector<CoResidentRecord> measured)
      : CostModel(*this, *this, *this),
        device_(device),
        co_schedules_(device, std::move(measured)) {
    by_id_.reserve(core::kMaxKernels);
    library_.Restore(CallDevice(), {});
  }

  void AddKernel(const KernelDesc& kernel) override {
    const bool cut = kernel.kind == TaskKind::kGraph && kernel.cut.segments > 1;
    KernelModel model{kernel.name,
                      KernelPrior(device_, kernel),
                      KernelDurations(),
                      cut ? kernel.cut.segments : 0,
                      EvictionModel(EvictionPrior(device_, kernel)),
                      FollowedMean(),
                      NeighbourModel(),
                      kernel.library_call,
                      MeanDemand(kernel)};
    PrepareCall(library_, model);
    SetCallPrior(library_, model);
    const auto learned = pending_.find(kernel.name);
    if (learned != pending_.end()) Apply(learned->second, model);
    const auto known = by_id_.find(kernel.id.value);
    if (known != by_id_.end()) {
      *known->second = std::move(model);
    } else if (kernels_.size() < core::kMaxKernels) {
      KernelModel*& entry = by_id_[kernel.id.value];
      try {
        kernels_.push_back(std::move(model));
      } catch (const std::bad_alloc&) {
        by_id_.erase(kernel.id.value);
        throw;
      }
      entry = &kernels_.back();
    }
    ApplyPairs(kernel.name);
    pair_changes_.all = true;
    co_schedules_.Add(kernel);
    ++version_;
  }

  void AddFusedKernel(const core::FusedKernelDesc& kernel) override {
    fused_.Add(kernel);
    ++fused_version_;
  }

  void AddApp(core::AppId app, const std::string& name) override { queries_.Add(app, name); }
  Prediction PredictQuery(const core::QueryFeatures& query) const override {
    return queries_.Predict(query);
  }
  void ObserveQuery(const core::QueryFeatures& query, int64_t measured_ns) override {
    queries_.Observe(query, measured_ns);
  }

  Prediction PredictFused(const core::FusedFeatures& features) const override {
    const std::array<Prediction, 2> parts = PartsOf(features);
    return fused_.Predict(*features.kernel, parts[0], parts[1]);
  }

  core::FusedCurveView CurveOf(const core::FusedKernelDesc& kernel) const override {
    return fused_.CurveOf(kernel);
  }

  core::CoResidentPrediction PredictCoResident(const core::CoResidentSide& first,
                                               const core::CoResidentSide& second) const override {
    const CoScheduleSpeeds speeds = co_schedules_.Predict(first, second);
    core::CoResidentPrediction out;
    out.known = speeds.error < 1 && speeds.speed[0] > 0 && speeds.speed[1] > 0;
    if (!out.known) return out;
    out.speed = speeds.speed;
    out.speed_error = speeds.error;
    out.finish =
        FinishTimes({SoloOf(first), SoloOf(second)}, {ShareOf(first), ShareOf(second)}, speeds);
    return out;
  }

  uint64_t fused_version() const override { return fused_version_; }
  uint64_t co_schedule_version() const override { return 0; }

  Prediction PredictSolo(const TaskFeatures& features) const override {
    if (features.kind == TaskKind::kMemcpy) return copies_.Predict(device_, features);
    if (features.kernel == nullptr) return opaque_.Predict(features);
    const KernelModel* model = Find(*features.kernel);
    if (model != nullptr) return Predicted(*model, features.block_tasks);
    const KernelPrior prior(device_, *features.kernel);
    return LinearModel().Predict(static_cast<double>(features.block_tasks),
                                 prior.NsOf(features.block_tasks));
  }

  int64_t LearnedSoloNs(const std::string& name) const override {
    const auto learned = pending_.find(name);
    if (learned == pending_.end() || learned->second.solo.samples == 0) return 0;
    LinearModel solo;
    solo.Restore(learned->second.solo);
    return solo.Predict(0, 0).duration_ns;
  }

  Prediction PredictEviction(const KernelDesc& kernel) const override {
    if (!kernel.evictable) return {core::kNever, 0, false};
    const KernelModel* model = Find(kernel);
    if (model != nullptr) return model->eviction.Predict();
    return EvictionModel(EvictionPrior(device_, kernel)).Predict();
  }

  Prediction PredictBlocking(const KernelDesc& kernel) const override {
    const KernelModel* model = Find(kernel);
    if (!kernel.evictable || model == nullptr || !model->blocking.trusted()) {
      return PredictEviction(kernel);
    }
    return {static_cast<int64_t>(model->blocking.mean), 0, true};
  }

  double SpeedOn(const KernelDesc& kernel, int32_t sms) const override {
    return SpeedOnSms(kernel, sms, device_.sm_count);
  }

  double SpeedBeside(const KernelDesc& kernel, int32_t sms, const KernelDesc& neighbour,
                     int32_t neighbour_sms) const override {
    const double measured = pairs_.SpeedOf({kernel.id.value, neighbour.id.value, sms});
    if (measured > 0) return measured;
    const FactorPrediction predicted = FromCounters(kernel, neighbour, neighbour_sms);
    if (predicted.error < 1) return predicted.factor;
    return SpeedBesideNeighbour({&kernel, sms}, DemandOf(kernel), {&neighbour, neighbour_sms},
                                DemandOf(neighbour), device_.sm_count);
  }

  double ErrorBeside(const KernelDesc& kernel, int32_t sms, const KernelDesc& neighbour,
                     int32_t neighbour_sms) const override {
    if (pairs_.SpeedOf({kernel.id.value, neighbour.id.value, sms}) > 0) return 0;
    const FactorPrediction predicted = FromCounters(kernel, neighbour, neighbour_sms);
    return predicted.error < 1 ? predicted.error : 0;
  }

  bool KnowsBeside(const KernelDesc& kernel, int32_t sms,
                   const KernelDesc& neighbour) const override {
    return HasRoofline(kernel, neighbour) || UsesLittle(neighbour.counters) ||
           FromCounters(kernel, neighbour, device_.sm_count - sms).error < 1 ||
           pairs_.SpeedOf({kernel.id.value, neighbour.id.value, sms}) > 0;
  }

  double SpeedBesideCopies(const KernelDesc& kernel, core::LinkUse copies) const override {
    if (copies == 0 || copies >= core::kLinkUses) return 1;
    const KernelModel* model = Find(kernel);
    if (model != nullptr && model->beside_copies[copies].trusted()) {
      return std::max(0.0, model->beside_copies[copies].mean - kCopySpeedError);
    }
    const double dram = kernel.counters.present() ? kernel.counters.dram : DemandOf(kernel).dram;
    return UnmeasuredSpeedBesideCopies(device_, dram, copies);
  }

  void GiveUpBeside(const KernelDesc& kernel, int32_t sms, const KernelDesc& neighbour,
                    double factor) override {
    pairs_.GiveUp({kernel.id.value, neighbour.id.value, sms}, factor);
    pair_changes_.Note(kernel.id, neighbour.id);
    ++version_;
  }

  void TakePairChanges(core::PairChanges& out) override {
    out = pair_changes_;
    pair_changes_.Clear();
  }

  void Observe(const Observation& observation) override {
    if (observation.measured_ns < 0 || observation.measured_ns > core::kMaxDurationNs) return;
    if (observation.evicted) {
      KernelModel* model = FindMutable(observation.features.kernel);
      if (model != nullptr &&
          model->eviction.Observe(static_cast<double>(observation.measured_ns))) {
        ++version_;
      }
      return;
    }
    if (observation.fused != nullptr) return ObserveFused(observation);
    if (observation.copies != 0 && ObserveBesideCopies(observation)) return;
    if (!observation.beside.empty() && !IsFirstOfBe(observation)) {
      if (ObserveBeside(observation, observation.beside.front())) ++version_;
      return;
    }
    const double measured_ns = WholeDeviceNs(observation);
    if (measured_ns <= 0) return;
    Count(observation, measured_ns);
    if (Train(observation.features, measured_ns)) ++version_;
  }

  uint64_t version() const override { return version_; }
  std::string TakeReport() override { return {}; }
  int64_t AnswersRefused() const override { return 0; }

  double MeanRelativeError(int64_t* samples) const override {
    if (samples != nullptr) *samples = error_samples_;
    return error_samples_ == 0 ? 0 : error_sum_ / static_cast<double>(error_samples_);
  }

  std::string Save() const override {
    Learned learned;
    for (const KernelModel& model : kernels_) {
      if (model.solo.line().samples == 0 && !model.eviction.state().trained &&
          model.blocking.samples == 0 && !model.neighbours.known()) {
        continue;
      }
      learned.kernels.push_back({model.name, model.solo.line(), model.solo.shape(), model.segments,
                                 model.eviction.state(), model.blocking, model.neighbours.state(),
                                 model.beside_copies});
    }
    SavePairs(learned.pairs);
    // The next run gets what was loaded for kernels that this run never registered.
    for (const auto& [name, kernel] : pending_) {
      const bool registered =
          std::any_of(kernels_.begin(), kernels_.end(),
                      [&known = name](const KernelModel& model) { return model.name == known; });
      if (!registered && learned.kernels.size() < core::kMaxKernels) {
        learned.kernels.push_back(kernel);
      }
    }
    learned.copies = copies_.Save();
    learned.fused = fused_.Save();
    if (const co_resident::State* state = co_schedules_.learned()) learned.co_resident = *state;
    learned.library = library_.state();
    learned.queries = queries_.Save();
    return FormatLearned(learned);
  }

  absl::Status Load(const std::string& text) override {
    GPUSHARE_ASSIGN_OR_RETURN(Learned learned, ParseLearned(text));
    Take(std::move(learned));
    return absl::OkStatus();
  }

  void Take(Learned learned) {
    std::map<std::string, LearnedKernel> pending;
    for (LearnedKernel& kernel : learned.kernels) {
      LearnedKernel& entry = pending[kernel.name];
      entry = std::move(kernel);
    }
    FusedModels::ByName fused;
    for (const LearnedFused& one : learned.fused) fused[one.name] = one;
    CoSchedules::Prepared pairs = co_schedules_.Prepare(std::move(learned.co_resident));
    QueryModels::ByName queries;
    for (LearnedQueries& one : learned.queries) {
      const std::string name = one.app;
      queries[name] = std::move(one);
    }
    LibraryModel library;
    library.Restore(CallDevice(), std::move(learned.library));
    for (KernelModel& model : kernels_) PrepareCall(library, model);
    // From here on nothing allocates: a text is taken completely or not at all.
    pending_.swap(pending);
    library_ = std::move(library);
    queries_.Restore(std::move(queries));
    for (KernelModel& model : kernels_) {
      SetCallPrior(library_, model);
      const auto found = pending_.find(model.name);
      if (found != pending_.end()) Apply(found->second, model);
    }
    pending_pairs_ = std::move(learned.pairs);
    for (const KernelModel& model : kernels_) ApplyPairs(model.name);
    copies_.Restore(learned.copies);
    fused_.Restore(std::move(fused));
    co_schedules_.Restore(std::move(pairs));
    pair_changes_.all = true;
    ++fused_version_;
    ++version_;
  }

 private:
  LibraryDevice CallDevice() const {
    LibraryDevice device;
    device.sm_count = device_.sm_count;
    return device;
  }
  static void PrepareCall(LibraryModel& library, const KernelModel& model) {
    if (model.prior.IsOpenForCall()) library.Prepare(model.call);
  }
  // Once for each registration: predicting a call takes microseconds.
  static void SetCallPrior(const LibraryModel& library, KernelModel& model) {
    if (model.prior.IsOpenForCall()) model.prior.SetCall(library.Predict(model.call));
  }

  static void Apply(const LearnedKernel& learned, KernelModel& model) {
    model.solo.Restore(learned.solo, learned.shape);
    model.neighbours.Restore(learned.neighbours);
    model.beside_copies = learned.beside_copies;
    for (FollowedMean& speed : model.beside_copies) speed.announced = speed.mean;
    if (learned.segments != model.segments) return;  // another cut has other latencies
    if (learned.eviction.trained) model.eviction.Restore(learned.eviction);
    model.blocking = learned.blocking;
    model.blocking.announced = learned.blocking.mean;
  }

  uint32_t IdOf(const std::string& name) const {
    for (const auto& [id, model] : by_id_) {
      if (model->name == name) return id;
    }
    return 0;
  }

  // Restores the loaded pairs with a kernel that has just been registered.
  void ApplyPairs(const std::string& name) {
    for (const LearnedPair& pair : pending_pairs_) {
      if (pair.kernel != name && pair.neighbour != name) continue;
      const PairKey key{IdOf(pair.kernel), IdOf(pair.neighbour), pair.sms};
      if (key.kernel == 0 || key.neighbour == 0) continue;
      FollowedMean state = pair.speed;
      state.announced = state.mean;
      pairs_.Restore(key, state);
    }
  }

  // Sorted, so that one state gives one text. Includes loaded pairs whose kernels never came.
  void SavePairs(std::vector<LearnedPair>& out) const {
    for (const auto& [key, state] : pairs_.speeds()) {
      const auto kernel = by_id_.find(key.kernel);
      const auto neighbour = by_id_.find(key.neighbour);
      if (kernel == by_id_.end() || neighbour == by_id_.end() || state.samples == 0) continue;
      out.push_back({kernel->second->name, neighbour->second->name, key.sms, state});
    }
    for (const LearnedPair& pair : pending_pairs_) {
      const bool registered = IdOf(pair.kernel) != 0 && IdOf(pair.neighbour) != 0;
      if (!registered && out.size() < kMaxPairs) out.push_back(pair);
    }
    std::sort(out.begin(), out.end(), [](const LearnedPair& a, const LearnedPair& b) {
      return std::tie(a.kernel, a.neighbour, a.sms) < std::tie(b.kernel, b.neighbour, b.sms);
    });
  }

  // Learns from an LC launch that began beside one BE kernel: a kernel that ran on the other SMs
  // all along, or one that held the launch's SMs until it was evicted.
  bool ObserveBeside(const Observation& observation, const core::CoResident& beside) {
    const KernelDesc* kernel = observation.features.kernel;
    if (kernel == nullptr || beside.kernel == nullptr || observation.measured_ns <= 0) return false;
    const Prediction solo = PredictSolo(observation.features);
    // Against a guess the sample would blame the neighbour for the error of the guess.
    const bool known = solo.trained || kernel->simulation.present || kernel->counters.present() ||
                       kernel->solo_hint_ns > 0 || IsKnownCall(*kernel);
    if (!known) return false;
    BesideSample sample;
    sample.key = {kernel->id.value, beside.kernel->id.value, observation.sms};
    sample.alone_ns = static_cast<double>(solo.duration_ns) / SpeedOn(*kernel, observation.sms);
    sample.measured_ns = static_cast<double>(observation.measured_ns);
    if (beside.same_sms) return ObserveEvicted(sample, beside);
    return beside.sms > 0 && ObservePair(sample);
  }

  // Learns from an LC launch that ran beside copies all along. Returns false where its duration
  // alone is not known yet: then the launch says more of that.
  bool ObserveBesideCopies(const Observation& observation) {
    KernelModel* model = FindMutable(observation.features.kernel);
    if (model == nullptr || observation.copies >= core::kLinkUses) return false;
    const Prediction solo = PredictSolo(observation.features);
    if (!solo.trained || observation.measured_ns <= 0) return false;
    const double alone_ns = static_cast<double>(solo.duration_ns) /
                            SpeedOn(*observation.features.kernel, observation.sms);
    const double kept = alone_ns / static_cast<double>(observation.measured_ns);
    if (kept < kKeptBesideCopiesMin) return true;  // something else held it up
    FollowedMean& speed = model->beside_copies[observation.copies];
    if (speed.Observe(std::min(kept, 1.0), kCopySpeedError)) ++version_;
    return true;
  }

  struct BesideSample {
    PairKey key;
    double alone_ns = 0;  // on the launch's SMs
    double measured_ns = 0;
  };

  // Returns whether predictions have changed enough to plan anew.
  bool ObservePair(const BesideSample& sample) {
    // The mean moves with each sample, and the next plan after an announced change reads it.
    pair_changes_.Note(core::KernelId{sample.key.kernel}, core::KernelId{sample.key.neighbour});
    return pairs_.ObserveSpeed(sample.key, sample.alone_ns / sample.measured_ns);
  }

  // The kernel held the launch's SMs until it was evicted, and may have stayed on the others.
  bool ObserveEvicted(const BesideSample& sample, const core::CoResident& beside) {
    KernelModel* neighbour = FindMutable(beside.kernel);
    if (neighbour == nullptr || !beside.kernel->evictable) return false;
    const double speed = beside.sms > 0 ? pairs_.SpeedOf(sample.key) : 0;
    const double expected_ns = sample.alone_ns / (speed > 0 ? speed : 1);
    const Prediction eviction = neighbour->eviction.Predict();
    const auto eviction_ns = static_cast<double>(eviction.duration_ns + 2 * eviction.error_ns);
    // A much longer delay has another cause than the eviction. Cut it: one such sample would keep
    // the neighbour out, and no better samples would follow.
    const double added_most_ns = kBlockingOfEviction * eviction_ns;
    const double added_ns = sample.measured_ns - expected_ns;
    // The likely cause of a longer delay is the part that stays. If every query evicts a part, only
    // such samples show the pair's speed. A query that is faster than expected shows that the speed
    // is too low. Any other sample does not contradict it.
    bool changed = false;
    if (beside.sms > 0 && added_ns > added_most_ns) {
      changed = ObservePair({sample.key, sample.alone_ns, sample.measured_ns - eviction_ns});
    } else if (beside.sms > 0 && added_ns < 0) {
      changed = ObservePair(sample);
    } else if (beside.sms > 0) {
      pairs_.Confirm(sample.key);
    }
    const bool announced =
        neighbour->blocking.Observe(std::min(std::clamp(added_ns, 0.0, added_most_ns),
                                             static_cast<double>(core::kMaxDurationNs)),
                                    kAnnouncedBlockingNs);
    return changed || announced;
  }

  // Of an unknown kernel nothing.
  Prediction SoloOf(core::KernelId id, int64_t block_tasks) const {
    const auto found = by_id_.find(id.value);
    if (found == by_id_.end()) return {};
    return Predicted(*found->second, block_tasks);
  }
  Prediction SoloOf(const core::CoResidentSide& side) const {
    return SoloOf(side.kernel->id, side.block_tasks);
  }
  std::array<Prediction, 2> PartsOf(const core::FusedFeatures& features) const {
    return {SoloOf(features.kernel->tensor_part, features.tensor_block_tasks),
            SoloOf(features.kernel->cuda_part, features.cuda_block_tasks)};
  }
  // Speed of the side's workers without a neighbour.
  static double ShareOf(const core::CoResidentSide& side) {
    const double occupancy =
        static_cast<double>(side.workers_per_sm) / std::max(1, side.kernel->workers_per_sm_max);
    const double saturating = side.kernel->simulation.saturating_occupancy;
    return std::clamp(occupancy / std::max(1e-3, saturating), 1e-3, 1.0);
  }

  void ObserveFused(const Observation& observation) {
    if (observation.sms < device_.sm_count || !observation.beside.empty()) return;
    const std::array<Prediction, 2> parts = PartsOf(*observation.fused);
    if (fused_.Observe(*observation.fused->kernel, parts[0], parts[1], observation.measured_ns)) {
      ++fused_version_;
    }
  }

  // What the counters of a neighbour that `kernel` never met tell; an error of 1: nothing.
  FactorPrediction FromCounters(const KernelDesc& kernel, const KernelDesc& neighbour,
                                int32_t neighbour_sms) const {
    const KernelModel* model = Find(kernel);
    if (model == nullptr || !model->neighbours.known() || !neighbour.counters.present()) return {};
    return model->neighbours.Predict(UseOf(neighbour.counters),
                                     {static_cast<double>(neighbour_sms) / device_.sm_count,
                                      SpeedOnSms(neighbour, neighbour_sms, device_.sm_count)});
  }

  core::ResourceDemand DemandOf(const KernelDesc& kernel) const {
    const KernelModel* model = Find(kernel);
    return model != nullptr ? model->demand : MeanDemand(kernel);
  }

  bool IsKnownCall(const KernelDesc& kernel) const {
    const KernelModel* model = Find(kernel);
    return model != nullptr && model->prior.IsOpenForCall() && model->prior.known();
  }

  const KernelModel* Find(const KernelDesc& kernel) const {
    const auto found = by_id_.find(kernel.id.value);
    return found == by_id_.end() ? nullptr : found->second;
  }
  KernelModel* FindMutable(const KernelDesc* kernel) {
    if (kernel == nullptr) return nullptr;
    const auto found = by_id_.find(kernel->id.value);
    return found == by_id_.end() ? nullptr : found->second;
  }

  static constexpr int64_t kFirstSamples = 8;  // then the guess that it began with hardly counts

  // Beside a neighbour a kernel is slower than alone, which says nothing about a known duration. Of
  // a BE kernel of which nothing is known it is a first idea, though, without which the kernel
  // would never be given a second part.
  bool IsFirstOfBe(const Observation& observation) const {
    if (observation.features.kernel == nullptr || observation.beside.front().sms != 0) return false;
    const KernelModel* model = Find(*observation.features.kernel);
    return model != nullptr && !model->prior.known() && model->solo.line().samples < kFirstSamples;
  }

  // The duration on the whole device that the sample implies; 0 if it implies none.
  double WholeDeviceNs(const Observation& observation) const {
    const double measured = static_cast<double>(observation.measured_ns);
    const KernelDesc* kernel = observation.features.kernel;
    if (kernel == nullptr || observation.sms <= 0) return measured;
    const bool capped = observation.form == Form::kWorkers && observation.workers > 0 &&
                        observation.workers < observation.sms * kernel->workers_per_sm_max &&
                        observation.workers < observation.features.block_tasks;
    if (capped || observation.form == Form::kFused) return 0;
    if (observation.sms >= device_.sm_count) return measured;
    return measured * SpeedOnSms(*kernel, observation.sms, device_.sm_count);
  }

  // Compares with the prediction of the plan, if that was for the whole device, else with one now.
  void Count(const Observation& observation, double measured_ns) {
    const bool whole = observation.sms <= 0 || observation.sms >= device_.sm_count;
    const int64_t predicted = whole && observation.predicted_ns > 0
                                  ? observation.predicted_ns
                                  : PredictSolo(observation.features).duration_ns;
    error_sum_ += std::abs(static_cast<double>(predicted) - measured_ns) / measured_ns;
    ++error_samples_;
  }

  bool Train(const TaskFeatures& features, double measured_ns) {
    if (features.kind == TaskKind::kMemcpy) return copies_.Observe(device_, features, measured_ns);
    if (features.kernel == nullptr) return opaque_.Observe(features, measured_ns);
    KernelModel* model = FindMutable(features.kernel);
    return model != nullptr && model->solo.Observe(features.block_tasks, measured_ns,
                                                   model->prior.NsOf(features.block_tasks));
  }

  DeviceProfile device_;
  std::deque<KernelModel> kernels_;  // stable addresses
  std::unordered_map<uint32_t, KernelModel*> by_id_;
  std::map<std::string, LearnedKernel> pending_;  // loaded, by kernel name
  std::vector<LearnedPair> pending_pairs_;
  PairModel pairs_;
  core::PairChanges pair_changes_;
  CopyModel copies_;
  OpaqueModel opaque_;
  FusedModels fused_;
  LibraryModel library_;
  QueryModels queries_;
  CoSchedules co_schedules_;
  uint64_t version_ = 1;
  uint64_t fused_version_ = 1;
  double error_sum_ = 0;
  int64_t error_samples_ = 0;
};

}  // namespace

std::unique_ptr<CostModel> MakeOnlineModel(const DeviceProfile& device,
                                           std::vector<CoResidentRecord> measured) {
  return std::make_unique<OnlineModel>(device, std::move(measured));
}

std::unique_ptr<CostModel> MakeOnlineModel(const DeviceProfile& device,
                                           std::vector<CoResidentRecord> measured,
                                           Learned learned) {
  auto model = std::make_unique<OnlineModel>(device, std::move(measured));
  model->Take(std::move(learned));
  return model;
}

}  // namespace gpushare::models
