// What calibration measures beyond kernels and durations: a part of the profile for people, and for
// programs that register kernels. A fused kernel that is registered takes its curve from here.
//
// Plain data; JSON keys are the field names (json_calibration_record.cc). Every list may be empty,
// and profiles without one load. docs/calibration.md explains how each value is measured.

#ifndef GPUSHARE_SRC_MODELS_PROFILE_CALIBRATION_RECORD_H_
#define GPUSHARE_SRC_MODELS_PROFILE_CALIBRATION_RECORD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "src/core/seams/kernel.h"

namespace gpushare::models {

// Definition 1 of the thesis on predictable GPUs: a kernel is memory-intensive if more SMs do not
// help beyond some number of them, else compute-intensive.
enum class Intensity : uint8_t { kUnknown = 0, kCompute = 1, kMemory = 2 };

struct KernelRecord {
  std::string name;
  Intensity intensity = Intensity::kUnknown;
  int32_t flat_from_sms = 0;         // kMemory: more SMs than these do not help
  int64_t slice_block_tasks = 0;     // Kernelet: smallest slice within the overhead; 0: none found
  double slice_overhead = 0;         // there, over one launch
  int32_t workers_per_sm_least = 0;  // fewest within 1 % of full speed; 0: not measured
};

// Two kernels on the same SMs with some workers an SM each. Speeds are relative to each alone on
// the whole device; 0: not measured. If the first is a graph or a library call, it has no workers.
struct CoResidentPoint {
  int32_t first_workers_per_sm = 0;
  int32_t second_workers_per_sm = 0;
  double first_speed = 0;
  double second_speed = 0;
};

struct CoResidentRecord {
  std::string first, second;
  std::vector<CoResidentPoint> points;
};

enum class FusedVerdict : uint8_t {
  kKept = 0,        // the best of its pair
  kSlower = 1,      // another ratio or form of the pair saves more
  kNeverGains = 2,  // one after the other is as fast at every load ratio
  kSpills = 3,      // it spills to local memory and is not measured
};

using core::FusedPoint;

struct FusedRecord {
  std::string name;
  std::string tensor, cuda;
  int32_t tensor_blocks = 1;
  int32_t cuda_blocks = 1;
  FusedVerdict verdict = FusedVerdict::kSpills;
  double opportune_load_ratio = 0;  // both parts end together; 0: not measured
  double opportune_duration_ratio = 0;
  double saving = 0;               // of the time one after the other, at the best point
  std::vector<FusedPoint> points;  // in the order measured
};

struct CopyPoint {
  bool to_device = true;
  bool pinned = true;
  int64_t bytes = 0;
  int64_t duration_ns = 0;  // one copy, from its call until the host sees the end
};

struct CalibrationRecord {
  std::vector<KernelRecord> kernels;
  std::vector<CoResidentRecord> co_resident;
  std::vector<FusedRecord> fused;
  std::vector<CopyPoint> copies;

  bool empty() const {
    return kernels.empty() && co_resident.empty() && fused.empty() && copies.empty();
  }
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_PROFILE_CALIBRATION_RECORD_H_
