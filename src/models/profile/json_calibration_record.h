// The calibration record in a profile file.
//
// The tables in the .cc file are the format: each field stands once, with its range. Threads: any.

#ifndef GPUSHARE_SRC_MODELS_PROFILE_JSON_CALIBRATION_RECORD_H_
#define GPUSHARE_SRC_MODELS_PROFILE_JSON_CALIBRATION_RECORD_H_

#include "absl/status/status.h"
#include "src/models/json/json_fields.h"
#include "src/models/profile/calibration_record.h"

namespace gpushare::models {

absl::Status ReadCalibrationRecord(const JsonValue& value, const JsonPath& path,
                                   CalibrationRecord& out);
void WriteCalibrationRecord(const CalibrationRecord& in, JsonWriter& json);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_PROFILE_JSON_CALIBRATION_RECORD_H_
