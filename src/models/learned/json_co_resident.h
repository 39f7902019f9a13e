// How the model of kernels that share every SM stands in the learned text of a profile.
//
// For the .cc files of models. Invariant: a state that was read keeps the invariants of
// co_resident::State. Threads: any.

#ifndef GPUSHARE_SRC_MODELS_LEARNED_JSON_CO_RESIDENT_H_
#define GPUSHARE_SRC_MODELS_LEARNED_JSON_CO_RESIDENT_H_

#include "absl/status/status.h"
#include "src/models/co_resident/model.h"
#include "src/models/json/json_fields.h"

namespace gpushare::models {

absl::Status ReadCoResident(const JsonValue& value, const JsonPath& path, co_resident::State& out);
void WriteCoResident(const co_resident::State& in, JsonWriter& json);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_LEARNED_JSON_CO_RESIDENT_H_
