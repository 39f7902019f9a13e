// Durations of library calls from their parameters (Baymax 4.2 to 4.4): the least time that the
// device could need, times a ratio that is learned.
//
//   LibraryModel model;
//   model.Fit(device, samples);                   // offline: seconds of samples take milliseconds
//   LibraryState kept = model.state();            // what a profile keeps
//
//   model.Restore(device, kept);                  // in the scheduler
//   model.Prepare(call);                          // once for each registered call, as the next
//   core::Prediction one = model.Predict(call);
//
// Each class of calls (operation, precision, alignment) predicts the ratio by what is least off
// when one sample at a time is left out: ridge regression over the features, the five nearest
// neighbours, or the line plus its neighbours' errors. Invariants: a prediction lies between 1 ns
// and one hour, whatever the samples were; a call unlike every sample is not `trained`. A
// prediction allocates nothing. Threads: one while fitting, any afterwards.

#ifndef GPUSHARE_SRC_MODELS_LIBRARY_LIBRARY_MODEL_H_
#define GPUSHARE_SRC_MODELS_LIBRARY_LIBRARY_MODEL_H_

#include <array>
#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "src/core/seams/cost_model.h"
#include "src/core/seams/library_call.h"
#include "src/models/library/library_features.h"
#include "src/models/library/library_state.h"

namespace gpushare::models {

struct LibrarySample {
  core::LibraryCall call;
  double duration_ns = 0;  // alone, on the whole device
};

class LibraryModel {
 public:
  LibraryModel();
  ~LibraryModel();
  LibraryModel(LibraryModel&&) noexcept;
  LibraryModel& operator=(LibraryModel&&) noexcept;

  // Replaces what was fitted before. Samples that are not finite and above 0, and those beyond
  // kLibrarySamplesMax, do not count. Of a class with more than kLibraryRowsMax, so many count.
  void Fit(const LibraryDevice& device, absl::Span<const LibrarySample> samples);

  // Takes the place of a fit. Rows that are not of their class do not count.
  void Restore(const LibraryDevice& device, LibraryState state);
  const LibraryState& state() const { return state_; }

  // Builds what Predict needs of the call's class, if it was restored; allocates.
  void Prepare(const core::LibraryCall& call);

  // A call of a restored class that is not prepared gets what an unknown class gets.
  core::Prediction Predict(const core::LibraryCall& call) const;

  // What predicts calls of its class.
  LibraryMethod MethodOf(const core::LibraryCall& call) const;

 private:
  struct ClassModel;

  void Build(const LibraryClass& of_class);

  LibraryDevice device_;
  LibraryState state_;
  std::array<std::unique_ptr<ClassModel>, kLibraryClasses> classes_;
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_LIBRARY_LIBRARY_MODEL_H_
