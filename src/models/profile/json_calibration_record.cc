// The calibration record in a profile file; see json_calibration_record.h.

#include "src/models/profile/json_calibration_record.h"

#include "src/core/base/limits.h"
#include "src/models/profile/profile_limits.h"

namespace gpushare::models {
namespace {

// More records than the 16 MB of a profile hold.
constexpr int64_t kMaxRecords = 1 << 16;
constexpr int64_t kMaxPoints = 4096;
constexpr double kMaxRatio = 1e6;
constexpr double kMaxCount = 1 << 20;

constexpr const char* kIntensityWords[] = {"unknown", "compute", "memory"};
constexpr const char* kVerdictWords[] = {"kept", "slower", "never_gains", "spills"};

const Field<KernelRecord> kKernelRecordFields[] = {
    {"name", &KernelRecord::name, 1, core::kMaxNameBytes},
    {"intensity", WordField<KernelRecord, Intensity, &KernelRecord::intensity, kIntensityWords>()},
    {"flat_from_sms", &KernelRecord::flat_from_sms, 0, kSmsMax},
    {"slice_block_tasks", &KernelRecord::slice_block_tasks, 0,
     static_cast<double>(core::kMaxBlockTasks)},
    {"slice_overhead", &KernelRecord::slice_overhead, -1, kMaxRatio},
    {"workers_per_sm_least", &KernelRecord::workers_per_sm_least, 0, 1 << 12},
};

const Field<CoResidentPoint> kCoResidentPointFields[] = {
    {"first_workers_per_sm", &CoResidentPoint::first_workers_per_sm, 0, 1 << 12},
    {"second_workers_per_sm", &CoResidentPoint::second_workers_per_sm, 0, 1 << 12},
    {"first_speed", &CoResidentPoint::first_speed, 0, kMaxRatio},
    {"second_speed", &CoResidentPoint::second_speed, 0, kMaxRatio},
};

const Field<FusedPoint> kFusedPointFields[] = {
    {"load_ratio", &FusedPoint::load_ratio, 0, kMaxRatio},
    {"duration_ratio", &FusedPoint::duration_ratio, 0, kMaxRatio},
};

const Field<CopyPoint> kCopyFields[] = {
    {"to_device", &CopyPoint::to_device},
    {"pinned", &CopyPoint::pinned},
    {"bytes", &CopyPoint::bytes, 0, static_cast<double>(core::kMaxCopyBytes)},
    {"duration_ns", &CopyPoint::duration_ns, 0, kDurationMaxNs},
};

const Field<CoResidentRecord> kCoResidentFields[] = {
    {"first", &CoResidentRecord::first, 1, core::kMaxNameBytes},
    {"second", &CoResidentRecord::second, 1, core::kMaxNameBytes},
    {"points", ListField<CoResidentRecord, CoResidentPoint, &CoResidentRecord::points,
                         kCoResidentPointFields, kMaxPoints>()},
};

const Field<FusedRecord> kFusedFields[] = {
    {"name", &FusedRecord::name, 1, core::kMaxNameBytes},
    {"tensor", &FusedRecord::tensor, 1, core::kMaxNameBytes},
    {"cuda", &FusedRecord::cuda, 1, core::kMaxNameBytes},
    {"tensor_blocks", &FusedRecord::tensor_blocks, 1, kMaxCount},
    {"cuda_blocks", &FusedRecord::cuda_blocks, 1, kMaxCount},
    {"verdict", WordField<FusedRecord, FusedVerdict, &FusedRecord::verdict, kVerdictWords>()},
    {"opportune_load_ratio", &FusedRecord::opportune_load_ratio, 0, kMaxRatio},
    {"opportune_duration_ratio", &FusedRecord::opportune_duration_ratio, 0, kMaxRatio},
    {"saving", &FusedRecord::saving, -kMaxRatio, 1},
    {"points",
     ListField<FusedRecord, FusedPoint, &FusedRecord::points, kFusedPointFields, kMaxPoints>()},
};

const Field<CalibrationRecord> kCalibrationFields[] = {
    {"kernels", ListField<CalibrationRecord, KernelRecord, &CalibrationRecord::kernels,
                          kKernelRecordFields, core::kMaxKernels>()},
    {"co_resident", ListField<CalibrationRecord, CoResidentRecord, &CalibrationRecord::co_resident,
                              kCoResidentFields, kMaxRecords>()},
    {"fused", ListField<CalibrationRecord, FusedRecord, &CalibrationRecord::fused, kFusedFields,
                        kMaxRecords>()},
    {"copies", ListField<CalibrationRecord, CopyPoint, &CalibrationRecord::copies, kCopyFields,
                         kMaxPoints>()},
};

}  // namespace

absl::Status ReadCalibrationRecord(const JsonValue& value, const JsonPath& path,
                                   CalibrationRecord& out) {
  return ReadObject<CalibrationRecord>(kCalibrationFields, value, path, out);
}

void WriteCalibrationRecord(const CalibrationRecord& in, JsonWriter& json) {
  WriteObject<CalibrationRecord>(kCalibrationFields, in, json);
}

}  // namespace gpushare::models
