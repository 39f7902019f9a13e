// One row of a samples file as a line of JSON. Threads: any.

#ifndef GPUSHARE_SRC_MODELS_SAMPLES_JSON_SAMPLE_ROW_H_
#define GPUSHARE_SRC_MODELS_SAMPLES_JSON_SAMPLE_ROW_H_

#include <string>

#include "absl/status/statusor.h"
#include "src/models/json/json_document.h"
#include "src/models/samples/sample_row.h"

namespace gpushare::models {

// Errors: INVALID_ARGUMENT names the key.
absl::StatusOr<SampleRow> ReadSampleRow(const JsonValue& value);

// Appends the row without a line end. Only the keys of its kind are written.
void WriteSampleRow(const SampleRow& row, std::string& out);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_SAMPLES_JSON_SAMPLE_ROW_H_
