// The online cost model; see online_model.h.
//
// Here are the predictions. The models are in model_set.h, what trains them in sample_router.h, and
// what a profile keeps of them in learned_exchange.h.

#include "src/models/online/online_model.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/core/base/status.h"
#include "src/models/durations/copy_contention.h"
#include "src/models/durations/linear_model.h"
#include "src/models/durations/scaling.h"
#include "src/models/learned/learned.h"
#include "src/models/online/learned_exchange.h"
#include "src/models/online/model_set.h"
#include "src/models/online/sample_router.h"

namespace gpushare::models {
namespace {

using core::CostModel;
using core::DeviceProfile;
using core::KernelDesc;
using core::Prediction;
using core::TaskKind;

// Work that hardly uses what partitions share: a query without weights loses 1.4 % beside it, the
// mean of 149 measured rows.
constexpr double kLittleUse = 0.05;
bool UsesLittle(const core::KernelCounters& counters) {
  return counters.present() && counters.dram < kLittleUse && counters.l2 < kLittleUse;
}

// Whether the roofline of scaling.h counts as knowing what `kernel` keeps beside `neighbour`.
// Demands that only counters state are a first guess: no pair has confirmed them, so a trial does.
bool HasRoofline(const KernelDesc& kernel, const KernelDesc& neighbour) {
  if (!neighbour.simulation.present) return false;
  const core::ResourceDemand& demand = neighbour.simulation.demand;
  const bool little =
      neighbour.kind() != TaskKind::kGraph && demand.dram < kLittleUse && demand.l2 < kLittleUse;
  return kernel.simulation.present || little;
}

class OnlineModel final : public CostModel,
                          private core::Durations,
                          private core::Neighbours,
                          private core::Overlaps {
 public:
  OnlineModel(const DeviceProfile& device, std::vector<CoResidentRecord> measured)
      : CostModel(*this, *this, *this),
        models_(device, std::move(measured)),
        router_(models_, *this) {}

  void AddKernel(const KernelDesc& kernel) override {
    const core::LibraryCall* const call = kernel.library_call();
    KernelModel model{kernel.name,
                      KernelPrior(models_.device, kernel),
                      KernelDurations(),
                      kernel.segments() > 1 ? kernel.segments() : 0,
                      EvictionModel(EvictionPrior(models_.device, kernel)),
                      FollowedMean(),
                      NeighbourModel(),
                      call == nullptr ? core::LibraryCall() : *call,
                      MeanDemand(kernel)};
    if (models_.kernels.Find(kernel.id) != nullptr) models_.pairs.Forget(kernel.id.value);
    PrepareCall(models_.library, model);
    SetCallPrior(models_.library, model);
    ApplyPending(models_, model);
    models_.kernels.Put(kernel.id, std::move(model));
    ApplyPendingPairs(models_, kernel.name);
    models_.pair_changes.all = true;
    models_.co_schedules.Add(kernel);
    ApplyPendingCoRuns(models_, kernel.name);
    ++models_.version;
  }

  void AddFusedKernel(const core::FusedKernelDesc& kernel) override {
    models_.fused.Add(kernel);
    ++models_.fused_version;
  }

  void AddApp(core::AppId app, const std::string& name) override { models_.queries.Add(app, name); }

  void Observe(const core::Observation& observation) override { router_.Route(observation); }
  void ObserveQuery(const core::QueryFeatures& query, int64_t measured_ns) override {
    models_.queries.Observe(query, measured_ns);
  }
  void ObserveDelay(const core::DelayedQuery& query) override { router_.Train(query); }

  uint64_t version() const override { return models_.version; }
  std::string TakeReport() override { return {}; }
  int64_t AnswersRefused() const override { return 0; }
  double MeanRelativeError(int64_t* samples) const override {
    return router_.MeanRelativeError(samples);
  }

  std::string Save() const override { return FormatLearned(Collect(models_)); }
  absl::Status Load(const std::string& text) override {
    GPUSHARE_ASSIGN_OR_RETURN(Learned learned, ParseLearned(text));
    Restore(std::move(learned));
    return absl::OkStatus();
  }
  void Restore(Learned learned) { Take(models_, std::move(learned)); }

 private:
  // Durations.

  Prediction PredictSolo(const core::TaskFeatures& features) const override {
    if (features.kind == TaskKind::kMemcpy) return models_.copies.Predict(models_.device, features);
    if (features.kernel == nullptr) return models_.opaque.Predict(features);
    const KernelModel* model = Find(*features.kernel);
    if (model != nullptr) return model->Predict(features.block_tasks);
    const KernelPrior prior(models_.device, *features.kernel);
    return LinearModel().Predict(static_cast<double>(features.block_tasks),
                                 prior.NsOf(features.block_tasks));
  }

  int64_t LearnedSoloNs(const std::string& name) const override {
    const auto learned = models_.pending_kernels.find(name);
    if (learned == models_.pending_kernels.end() || learned->second.solo.samples == 0) return 0;
    LinearModel solo;
    solo.Restore(learned->second.solo);
    return solo.Predict(0, 0).duration_ns;
  }

  double SpeedOn(const KernelDesc& kernel, int32_t sms) const override {
    return SpeedOnSms(kernel, sms, models_.device.sm_count);
  }

  Prediction PredictQuery(const core::QueryFeatures& query) const override {
    return models_.queries.Predict(query);
  }

  Prediction PredictEviction(const KernelDesc& kernel) const override {
    if (!kernel.evictable) return {core::kNever, 0, false};
    const KernelModel* model = Find(kernel);
    if (model != nullptr) return model->eviction.Predict();
    return EvictionModel(EvictionPrior(models_.device, kernel)).Predict();
  }

  Prediction PredictBlocking(const KernelDesc& kernel) const override {
    const KernelModel* model = Find(kernel);
    if (!kernel.evictable || model == nullptr || !model->blocking.trusted()) {
      return PredictEviction(kernel);
    }
    return {std::max<int64_t>(0, static_cast<int64_t>(model->blocking.mean)), 0, true};
  }

  // Neighbours.

  double SpeedBeside(const KernelDesc& kernel, int32_t sms, const KernelDesc& neighbour,
                     int32_t neighbour_sms) const override {
    const double measured = MeasuredBeside(kernel, sms, neighbour);
    if (measured > 0) return measured;
    const FactorPrediction predicted = FromCounters(kernel, neighbour, neighbour_sms);
    if (predicted.error < 1) return predicted.factor;
    return SpeedBesideNeighbour({&kernel, sms}, DemandOf(kernel), {&neighbour, neighbour_sms},
                                DemandOf(neighbour), models_.device.sm_count);
  }

  double ErrorBeside(const KernelDesc& kernel, int32_t sms, const KernelDesc& neighbour,
                     int32_t neighbour_sms) const override {
    if (MeasuredBeside(kernel, sms, neighbour) > 0) return 0;
    const FactorPrediction predicted = FromCounters(kernel, neighbour, neighbour_sms);
    return predicted.error < 1 ? predicted.error : 0;
  }

  bool KnowsBeside(const KernelDesc& kernel, int32_t sms,
                   const KernelDesc& neighbour) const override {
    return HasRoofline(kernel, neighbour) || UsesLittle(neighbour.counters) ||
           FromCounters(kernel, neighbour, models_.device.sm_count - sms).error < 1 ||
           MeasuredBeside(kernel, sms, neighbour) > 0;
  }

  void GiveUpBeside(const KernelDesc& kernel, int32_t sms, const KernelDesc& neighbour,
                    double factor) override {
    models_.pairs.GiveUp({kernel.id.value, neighbour.id.value, sms}, factor);
    models_.pair_changes.Note(kernel.id, neighbour.id);
    ++models_.version;
  }

  void TakePairChanges(core::PairChanges& out) override {
    out = models_.pair_changes;
    models_.pair_changes.Clear();
  }

  double SpeedBesideCopies(const KernelDesc& kernel, core::LinkUse copies) const override {
    if (copies == 0 || copies >= core::kLinkUses) return 1;
    const KernelModel* model = Find(kernel);
    if (model != nullptr && model->beside_copies[copies].trusted()) {
      return std::max(0.0, model->beside_copies[copies].mean - kCopySpeedError);
    }
    const double dram = kernel.counters.present() ? kernel.counters.dram : DemandOf(kernel).dram;
    return UnmeasuredSpeedBesideCopies(models_.device, dram, copies);
  }

  // Overlaps.

  Prediction PredictFused(const core::FusedFeatures& features) const override {
    const std::array<Prediction, 2> parts = PartsOf(models_, features);
    return models_.fused.Predict(*features.kernel, parts[0], parts[1]);
  }

  core::FusedCurveView CurveOf(const core::FusedKernelDesc& kernel) const override {
    return models_.fused.CurveOf(kernel);
  }

  core::CoResidentPrediction PredictCoResident(const core::CoResidentSide& first,
                                               const core::CoResidentSide& second) const override {
    const CoScheduleSpeeds speeds = models_.co_schedules.Predict(first, second);
    core::CoResidentPrediction out;
    out.known = speeds.error < 1 && speeds.speed[0] > 0 && speeds.speed[1] > 0;
    if (!out.known) return out;
    out.speed = speeds.speed;
    out.speed_error = speeds.error;
    out.finish = FinishTimes({SoloOf(models_, first.kernel->id, first.block_tasks),
                              SoloOf(models_, second.kernel->id, second.block_tasks)},
                             {ShareOf(first), ShareOf(second)}, speeds);
    return out;
  }

  uint64_t fused_version() const override { return models_.fused_version; }
  // A kernel that is registered has its co-schedules read anyway: only runs and profiles count.
  uint64_t co_schedule_version() const override { return models_.co_schedule_version; }
  void TakeCoScheduleChanges(core::PairChanges& out) override {
    out = models_.co_schedule_changes;
    models_.co_schedule_changes.Clear();
  }

  // 0: never measured.
  double MeasuredBeside(const KernelDesc& kernel, int32_t sms, const KernelDesc& neighbour) const {
    return models_.pairs.SpeedOf({kernel.id.value, neighbour.id.value, sms});
  }

  // From the counters of a neighbour that `kernel` never met; an error of 1: unknown.
  FactorPrediction FromCounters(const KernelDesc& kernel, const KernelDesc& neighbour,
                                int32_t neighbour_sms) const {
    const KernelModel* model = Find(kernel);
    if (model == nullptr || !model->neighbours.known() || !neighbour.counters.present()) return {};
    const int32_t sm_count = models_.device.sm_count;
    return model->neighbours.Predict(UseOf(neighbour.counters),
                                     {static_cast<double>(neighbour_sms) / sm_count,
                                      SpeedOnSms(neighbour, neighbour_sms, sm_count)});
  }

  core::ResourceDemand DemandOf(const KernelDesc& kernel) const {
    const KernelModel* model = Find(kernel);
    return model != nullptr ? model->demand : MeanDemand(kernel);
  }

  const KernelModel* Find(const KernelDesc& kernel) const {
    return models_.kernels.Find(kernel.id);
  }

  ModelSet models_;
  SampleRouter router_;
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
  model->Restore(std::move(learned));
  return model;
}

}  // namespace gpushare::models
