// Which rows judge a model and which may train it: decided by a hash of what the row is about, so
// that a row stays on its side when samples are taken again, on whatever machine.
//
// Pure. Threads: any.

#ifndef GPUSHARE_SRC_MODELS_SAMPLES_HOLD_OUT_H_
#define GPUSHARE_SRC_MODELS_SAMPLES_HOLD_OUT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "src/models/samples/sample_row.h"

namespace gpushare::models {

// One of so many subjects is held out.
inline constexpr uint64_t kHeldOutOf = 4;

// By a hash of the text that is the same everywhere.
bool IsHeldOut(absl::string_view subject);

// What the row is about, without how it was measured: kernel, size, SMs and workers; the pair and
// its split. The name of a library call has its shape. Rows with one subject are all held out or
// none.
std::string SubjectOf(const SampleRow& row);

// Library calls whose names begin so were drawn after the models and their weights were chosen.
// They train nothing, and are judged by themselves.
inline constexpr absl::string_view kBlindPrefix = "blind.";
bool IsBlind(const SampleRow& row);

bool IsHeldOut(const SampleRow& row);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_SAMPLES_HOLD_OUT_H_
