// The cost model of every runtime: the caller's own table first, else the built-in model.
//
// Where in the flow: it stands between the flow and the built-in model
// (src/models/online/online_model.h). Without a table a prediction costs a branch and a virtual
// call more: 9.1 ns instead of 7.7 ns. With a trivial one it costs 13 ns. Invariants: the built-in
// model observes every measurement, also of work that the table predicts. Save and Load keep what
// the built-in model learned, nothing else. Threads: as the seam says; Exchange inside
// Scheduler::ChangeModel.

#ifndef GPUSHARE_BINDINGS_C_USER_COST_MODEL_H_
#define GPUSHARE_BINDINGS_C_USER_COST_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "bindings/c/cost_model_calls.h"
#include "src/core/seams/cost_model.h"

namespace gpushare::abi {

class UserCostModel final : public core::CostModel,
                            private core::Durations,
                            private core::Neighbours,
                            private core::Overlaps {
 public:
  UserCostModel(std::unique_ptr<core::CostModel> built_in, int32_t sm_count);

  // Replaces the calls by `calls` (null: none), and leaves the former ones there. The caller lets
  // them go with no lock held. Does not throw.
  void Exchange(std::unique_ptr<CostModelCalls>& calls);

  core::Prediction PredictSolo(const core::TaskFeatures& features) const override;
  core::Prediction PredictFused(const core::FusedFeatures& features) const override;
  core::CoResidentPrediction PredictCoResident(const core::CoResidentSide& first,
                                               const core::CoResidentSide& second) const override;
  double SpeedBeside(const core::KernelDesc& kernel, int32_t sms, const core::KernelDesc& neighbour,
                     int32_t neighbour_sms) const override;
  bool KnowsBeside(const core::KernelDesc& kernel, int32_t sms,
                   const core::KernelDesc& neighbour) const override;
  double SpeedBesideCopies(const core::KernelDesc& kernel, core::LinkUse copies) const override;
  double ErrorBeside(const core::KernelDesc& kernel, int32_t sms, const core::KernelDesc& neighbour,
                     int32_t neighbour_sms) const override;
  void TakePairChanges(core::PairChanges& out) override;
  void Observe(const core::Observation& observation) override;
  uint64_t version() const override;
  uint64_t fused_version() const override { return built_in_->overlaps().fused_version(); }
  uint64_t co_schedule_version() const override;
  void TakeCoScheduleChanges(core::PairChanges& out) override;
  std::string TakeReport() override;
  int64_t AnswersRefused() const override;

  // These go to the built-in model alone: the table has no such functions.
  void AddKernel(const core::KernelDesc& kernel) override { built_in_->AddKernel(kernel); }
  void AddFusedKernel(const core::FusedKernelDesc& kernel) override {
    built_in_->AddFusedKernel(kernel);
  }
  void AddApp(core::AppId app, const std::string& name) override { built_in_->AddApp(app, name); }
  core::Prediction PredictQuery(const core::QueryFeatures& query) const override {
    return built_in_->durations().PredictQuery(query);
  }
  void ObserveQuery(const core::QueryFeatures& query, int64_t measured_ns) override {
    built_in_->ObserveQuery(query, measured_ns);
  }
  void ObserveDelay(const core::DelayedQuery& query) override { built_in_->ObserveDelay(query); }
  core::FusedCurveView CurveOf(const core::FusedKernelDesc& kernel) const override {
    return built_in_->overlaps().CurveOf(kernel);
  }
  int64_t LearnedSoloNs(const std::string& name) const override {
    return built_in_->durations().LearnedSoloNs(name);
  }
  core::Prediction PredictEviction(const core::KernelDesc& kernel) const override {
    return built_in_->durations().PredictEviction(kernel);
  }
  core::Prediction PredictBlocking(const core::KernelDesc& kernel) const override {
    return built_in_->durations().PredictBlocking(kernel);
  }
  double SpeedOn(const core::KernelDesc& kernel, int32_t sms) const override {
    return built_in_->durations().SpeedOn(kernel, sms);
  }
  void GiveUpBeside(const core::KernelDesc& kernel, int32_t sms, const core::KernelDesc& neighbour,
                    double factor) override {
    built_in_->neighbours().GiveUpBeside(kernel, sms, neighbour, factor);
  }
  double MeanRelativeError(int64_t* samples) const override {
    return built_in_->MeanRelativeError(samples);
  }
  std::string Save() const override { return built_in_->Save(); }
  absl::Status Load(const std::string& text) override { return built_in_->Load(text); }

 private:
  const std::unique_ptr<core::CostModel> built_in_;
  const int32_t sm_count_;
  std::unique_ptr<CostModelCalls> calls_;  // null: the built-in model alone
  bool exchanged_ = false;                 // since the last TakePairChanges
  uint64_t changes_taken_ = 0;             // of the tables, at the last TakeCoScheduleChanges
  // The counts and the report of the tables that were replaced.
  uint64_t past_changes_ = 0;
  int64_t past_refused_ = 0;
  std::string past_report_;
};

}  // namespace gpushare::abi

#endif  // GPUSHARE_BINDINGS_C_USER_COST_MODEL_H_
