// The calls of one table of a user cost model: converts what is asked, checks what is answered.
//
// Where in the flow: the predict and learn stages, behind UserCostModel. Each predict function
// returns false where the table has no function, where that asks for the built-in model, throws, or
// gives an answer that no prediction can be. The last two are counted, and the first of each is
// reported. Invariants: a prediction allocates nothing unless it makes a report. Threads: the one
// that runs the flow, under its lock; the destructor runs destroy(user) with no lock held.

#ifndef GPUSHARE_BINDINGS_C_COST_MODEL_CALLS_H_
#define GPUSHARE_BINDINGS_C_COST_MODEL_CALLS_H_

#include <gpushare/gpushare_cost_model.h>

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "bindings/c/log.h"
#include "bindings/c/user_data.h"
#include "src/core/seams/cost_model.h"

namespace gpushare::abi {

// A kernel on SMs that nothing else uses.
struct ConfinedKernel {
  const core::KernelDesc& kernel;
  int32_t sms;
};

class CostModelCalls {
 public:
  // `table` must be checked already. `log` must outlive the object.
  CostModelCalls(const gpushare_cost_model_table& table, const Log& log);
  // From here on the object destroys `user` when it goes.
  void Arm() { user_.Arm(); }

  bool PredictSolo(const core::TaskFeatures& task, core::Prediction& out);
  bool PredictBeside(ConfinedKernel kernel, ConfinedKernel neighbour, double& out);
  bool PredictFused(const core::FusedFeatures& fused, core::Prediction& out);
  bool PredictCoResident(const core::CoResidentSide& first, const core::CoResidentSide& second,
                         core::CoResidentPrediction& out);
  void Observe(const core::Observation& observation);

  // Grows when predictions may have changed, and when there is a report.
  uint64_t changes() const { return changes_; }
  int64_t refused() const { return refused_; }
  std::string TakeReport();

 private:
  // Runs `call`, which returns the answer of `function`. Returns whether the answer is 1.
  bool Ask(const char* function, absl::FunctionRef<gpushare_bool()> call);
  // Counts an answer that is not used, reports the first, and returns false.
  bool Refuse(absl::FunctionRef<std::string()> describe);
  void RefuseException(const char* function, const std::string& thrown);
  void Report(absl::FunctionRef<std::string()> sentence);

  gpushare_cost_model_table table_;
  UserData user_;
  uint64_t changes_ = 0;
  int64_t refused_ = 0;
  bool reported_answer_ = false;
  bool reported_exception_ = false;
  std::string report_;
};

}  // namespace gpushare::abi

#endif  // GPUSHARE_BINDINGS_C_COST_MODEL_CALLS_H_
