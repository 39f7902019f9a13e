// A cost model that asks another one for everything: a test says what it wants otherwise.

#ifndef GPUSHARE_TESTS_CORE_FORWARDING_MODEL_H_
#define GPUSHARE_TESTS_CORE_FORWARDING_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "src/core/seams/cost_model.h"

namespace gpushare::core {

class ForwardingModel : public CostModel,
                        protected Durations,
                        protected Neighbours,
                        protected Overlaps {
 public:
  explicit ForwardingModel(std::unique_ptr<CostModel> model)
      : CostModel(*this, *this, *this), model_(std::move(model)) {}
  void AddKernel(const KernelDesc& kernel) override { model_->AddKernel(kernel); }
  void AddFusedKernel(const FusedKernelDesc& kernel) override { model_->AddFusedKernel(kernel); }
  void AddApp(AppId app, const std::string& name) override { model_->AddApp(app, name); }
  Prediction PredictQuery(const QueryFeatures& query) const override {
    return model_->durations().PredictQuery(query);
  }
  void ObserveQuery(const QueryFeatures& query, int64_t measured_ns) override {
    model_->ObserveQuery(query, measured_ns);
  }
  void ObserveDelay(const DelayedQuery& query) override { model_->ObserveDelay(query); }
  Prediction PredictFused(const FusedFeatures& features) const override {
    return model_->overlaps().PredictFused(features);
  }
  FusedCurveView CurveOf(const FusedKernelDesc& kernel) const override {
    return model_->overlaps().CurveOf(kernel);
  }
  CoResidentPrediction PredictCoResident(const CoResidentSide& first,
                                         const CoResidentSide& second) const override {
    return model_->overlaps().PredictCoResident(first, second);
  }
  uint64_t fused_version() const override { return model_->overlaps().fused_version(); }
  uint64_t co_schedule_version() const override { return model_->overlaps().co_schedule_version(); }
  void TakeCoScheduleChanges(PairChanges& out) override {
    model_->overlaps().TakeCoScheduleChanges(out);
  }
  Prediction PredictSolo(const TaskFeatures& features) const override {
    return model_->durations().PredictSolo(features);
  }
  int64_t LearnedSoloNs(const std::string& name) const override {
    return model_->durations().LearnedSoloNs(name);
  }
  // As long as the eviction, which a test may replace.
  Prediction PredictBlocking(const KernelDesc& kernel) const override {
    return PredictEviction(kernel);
  }
  Prediction PredictEviction(const KernelDesc& kernel) const override {
    return model_->durations().PredictEviction(kernel);
  }
  double SpeedOn(const KernelDesc& kernel, int32_t sms) const override {
    return model_->durations().SpeedOn(kernel, sms);
  }
  double SpeedBeside(const KernelDesc& kernel, int32_t sms, const KernelDesc& neighbour,
                     int32_t neighbour_sms) const override {
    return model_->neighbours().SpeedBeside(kernel, sms, neighbour, neighbour_sms);
  }
  double ErrorBeside(const KernelDesc& kernel, int32_t sms, const KernelDesc& neighbour,
                     int32_t neighbour_sms) const override {
    return model_->neighbours().ErrorBeside(kernel, sms, neighbour, neighbour_sms);
  }
  double SpeedBesideCopies(const KernelDesc& kernel, LinkUse copies) const override {
    return model_->neighbours().SpeedBesideCopies(kernel, copies);
  }
  bool KnowsBeside(const KernelDesc& kernel, int32_t sms,
                   const KernelDesc& neighbour) const override {
    return model_->neighbours().KnowsBeside(kernel, sms, neighbour);
  }
  void GiveUpBeside(const KernelDesc& kernel, int32_t sms, const KernelDesc& neighbour,
                    double factor) override {
    model_->neighbours().GiveUpBeside(kernel, sms, neighbour, factor);
  }
  // A test's own answers may change at any time.
  void TakePairChanges(PairChanges& out) override { out.all = true; }
  void Observe(const Observation& observation) override { model_->Observe(observation); }
  uint64_t version() const override { return model_->version(); }
  double MeanRelativeError(int64_t* samples) const override {
    return model_->MeanRelativeError(samples);
  }
  std::string TakeReport() override { return model_->TakeReport(); }
  int64_t AnswersRefused() const override { return model_->AnswersRefused(); }
  std::string Save() const override { return model_->Save(); }
  absl::Status Load(const std::string& text) override { return model_->Load(text); }

 private:
  const std::unique_ptr<CostModel> model_;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_TESTS_CORE_FORWARDING_MODEL_H_
