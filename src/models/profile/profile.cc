// Profiles: parse, check, format, load and save; see profile.h.
//
// The tables here and in json_kernel.cc and json_calibration_record.cc are the file format: each
// field stands once, with its range, and drives both directions. Invariant: a profile that is
// returned has passed every check; SaveProfile writes nothing that ParseProfile would refuse.

#include "src/models/profile/profile.h"

#include <new>

#include "absl/strings/str_cat.h"
#include "src/core/base/exhaustion.h"
#include "src/core/base/file_io.h"
#include "src/core/base/limits.h"
#include "src/core/base/status.h"
#include "src/models/json/json_fields.h"
#include "src/models/profile/json_calibration_record.h"
#include "src/models/profile/json_kernel.h"

namespace gpushare::models {
namespace {

using core::DeviceProfile;
using core::GraphNode;
using core::KernelDesc;
using core::SimulationRecord;

constexpr int64_t kSchemaVersion = 1;
// NVLink moves 900 bytes a ns; a thousand times that is a unit error.
constexpr double kMaxBytesPerNs = 1e6;
constexpr double kMinBytesPerNs = 1e-6;

const Field<DeviceProfile> kDeviceFields[] = {
    {"name", &DeviceProfile::name, 1, core::kMaxNameBytes},
    {"gpu_model", &DeviceProfile::gpu_model, 0, 256},
    {"sm_count", &DeviceProfile::sm_count, 1, kSmsMax},
    {"sm_granularity", &DeviceProfile::sm_granularity, 1, kSmsMax},
    {"sm_groups", &DeviceProfile::sm_groups, 0, kSmsMax},
    {"remainder_for_lc", &DeviceProfile::remainder_for_lc},
    {"registers_per_sm", &DeviceProfile::registers_per_sm, 1, 1 << 24},
    {"shared_memory_per_sm_bytes", &DeviceProfile::shared_memory_per_sm_bytes, 0, 1 << 28},
    {"threads_per_sm", &DeviceProfile::threads_per_sm, 1, 1 << 16},
    {"blocks_per_sm", &DeviceProfile::blocks_per_sm, 1, 1 << 12},
    {"clock_mhz", &DeviceProfile::clock_mhz, 1, 100000},
    {"hardware_queues", &DeviceProfile::hardware_queues, 1, 1024},
    {"launch_issue_ns", &DeviceProfile::launch_issue_ns, 0, kLatencyMaxNs},
    {"launch_latency_ns", &DeviceProfile::launch_latency_ns, 0, kLatencyMaxNs},
    {"graph_launch_latency_ns", &DeviceProfile::graph_launch_latency_ns, 0, kLatencyMaxNs},
    {"completion_latency_ns", &DeviceProfile::completion_latency_ns, 0, kLatencyMaxNs},
    {"eviction_write_issue_ns", &DeviceProfile::eviction_write_issue_ns, 0, kLatencyMaxNs},
    {"eviction_write_latency_ns", &DeviceProfile::eviction_write_latency_ns, 0, kLatencyMaxNs},
    {"event_record_ns", &DeviceProfile::event_record_ns, 0, kLatencyMaxNs},
    {"host_function_latency_ns", &DeviceProfile::host_function_latency_ns, 0, kLatencyMaxNs},
    {"submit_overhead_ns", &DeviceProfile::submit_overhead_ns, 0, kLatencyMaxNs},
    {"cut_node_ns", &DeviceProfile::cut_node_ns, 0, kLatencyMaxNs},
    {"pinned_bytes_per_ns", &DeviceProfile::pinned_bytes_per_ns, kMinBytesPerNs, kMaxBytesPerNs},
    {"duplex_bytes_per_ns", &DeviceProfile::duplex_bytes_per_ns, kMinBytesPerNs, kMaxBytesPerNs},
    {"pageable_h2d_bytes_per_ns", &DeviceProfile::pageable_h2d_bytes_per_ns, kMinBytesPerNs,
     kMaxBytesPerNs},
    {"pageable_d2h_bytes_per_ns", &DeviceProfile::pageable_d2h_bytes_per_ns, kMinBytesPerNs,
     kMaxBytesPerNs},
    {"copy_latency_ns", &DeviceProfile::copy_latency_ns, 0, kLatencyMaxNs},
    {"copy_in_slowdown", &DeviceProfile::copy_in_slowdown, 0, kCopySlowdownMax},
    {"copy_out_slowdown", &DeviceProfile::copy_out_slowdown, 0, kCopySlowdownMax},
};

const Field<Profile> kProfileFields[] = {
    {"schema_version", VersionField<Profile, kSchemaVersion>()},
    {"device", ObjectField<Profile, DeviceProfile, &Profile::device, kDeviceFields>()},
    {"kernels", Field<Profile>::Custom{
                    [](const JsonValue& value, const JsonPath& path, Profile& out) {
                      return ReadKernels(value, path, out.kernels);
                    },
                    [](const Profile& in, JsonWriter& json) { WriteKernels(in.kernels, json); }}},
    {"calibration",
     Field<Profile>::Custom{
         [](const JsonValue& value, const JsonPath& path, Profile& out) {
           return ReadCalibrationRecord(value, path, out.calibration);
         },
         [](const Profile& in, JsonWriter& json) { WriteCalibrationRecord(in.calibration, json); },
         // Files without one look as they did before calibration existed.
         [](const Profile& in) { return in.calibration.empty(); }}},
    {"learned", &Profile::learned, 0, kLearnedBytesMax},
};

absl::Status Exceeds(const JsonPath& path, int64_t value, int64_t limit, absl::string_view what) {
  return KeyError(path, absl::StrCat("is ", value, ", and the limit is ", limit, ", ", what, "."));
}

// A block must fit into an SM of this device, and a graph's whole time must be a duration.
absl::Status CheckKernel(const DeviceProfile& device, const KernelDesc& kernel,
                         const JsonPath& path) {
  if (kernel.resources.threads_per_block > device.threads_per_sm) {
    return Exceeds(absl::StrCat(path, ".threads_per_block"), kernel.resources.threads_per_block,
                   device.threads_per_sm, "the threads of an SM");
  }
  if (kernel.resources.shared_memory_bytes > device.shared_memory_per_sm_bytes) {
    return Exceeds(absl::StrCat(path, ".shared_memory_bytes"), kernel.resources.shared_memory_bytes,
                   device.shared_memory_per_sm_bytes, "the shared memory of an SM");
  }
  const int64_t registers = static_cast<int64_t>(kernel.resources.registers_per_thread) *
                            kernel.resources.threads_per_block;
  if (registers > device.registers_per_sm) {
    return Exceeds(absl::StrCat(path, ".registers_per_thread x threads_per_block"), registers,
                   device.registers_per_sm, "the registers of an SM");
  }
  if (kernel.resources.workers_per_sm_max > device.blocks_per_sm) {
    return Exceeds(absl::StrCat(path, ".workers_per_sm_max"), kernel.resources.workers_per_sm_max,
                   device.blocks_per_sm, "the blocks of an SM");
  }
  const SimulationRecord& record = kernel.simulation;
  if (!record.speed.empty() && record.speed.back().sms > device.sm_count) {
    return Exceeds(absl::StrCat(path, ".simulation.speed"), record.speed.back().sms,
                   device.sm_count, "the SMs of the device");
  }
  double total_ns = 0;
  for (const GraphNode& node : record.nodes) {
    total_ns += static_cast<double>(node.duration_ns + record.node_gap_ns) * node.repeat;
  }
  if (total_ns > kDurationMaxNs) {
    return KeyError(absl::StrCat(path, ".simulation.nodes"),
                    absl::StrCat("take ", total_ns, " ns together, and the limit is ",
                                 core::kMaxDurationNs, "."));
  }
  return absl::OkStatus();
}

absl::Status CheckProfile(const Profile& profile) {
  const DeviceProfile& device = profile.device;
  if (device.sm_granularity > device.sm_count) {
    return Exceeds("device.sm_granularity", device.sm_granularity, device.sm_count,
                   "the SMs of the device");
  }
  if (device.Remainder() < 0) {
    return Exceeds("device.sm_groups", device.sm_groups, device.sm_count / device.sm_granularity,
                   "the groups that the device's SMs hold");
  }
  for (size_t i = 0; i < profile.kernels.size(); ++i) {
    GPUSHARE_RETURN_IF_ERROR(
        CheckKernel(device, profile.kernels[i], JsonPath(JsonPath("kernels"), i)));
  }
  return absl::OkStatus();
}

}  // namespace

const core::KernelDesc* Profile::FindKernel(absl::string_view name) const {
  for (const KernelDesc& kernel : kernels) {
    if (kernel.name == name) return &kernel;
  }
  return nullptr;
}

absl::StatusOr<Profile> ParseProfile(absl::string_view text) {
  GPUSHARE_ASSIGN_OR_RETURN(const JsonDocument json,
                            ParseStrictJson(text, "The profile", kProfileBytesMax));
  return ReadProfile(json);
}

absl::StatusOr<Profile> ReadProfile(const JsonDocument& json) {
  Profile profile;
  GPUSHARE_RETURN_IF_ERROR(ReadObject<Profile>(kProfileFields, json.root(), "", profile));
  // A text without a version or a device is not a profile.
  for (const char* key : {"schema_version", "device"}) {
    if (!json.root().Has(key)) return KeyError(key, "is missing, and a profile must have it.");
  }
  GPUSHARE_RETURN_IF_ERROR(CheckProfile(profile));
  return profile;
}

namespace {

absl::StatusOr<Profile> ReadProfileFile(const std::string& path) {
  GPUSHARE_ASSIGN_OR_RETURN(const std::string text, core::ReadWholeFile(path, kProfileBytesMax));
  absl::StatusOr<Profile> profile = ParseProfile(text);
  if (profile.ok()) return profile;
  return absl::Status(profile.status().code(),
                      absl::StrCat("In '", path, "': ", profile.status().message()));
}

absl::Status WriteProfile(const std::string& path, const Profile& profile) {
  const std::string text = FormatProfile(profile);
  GPUSHARE_RETURN_IF_ERROR(ParseProfile(text).status());
  const absl::string_view piece = text;
  return core::WriteFileAtomically(path, absl::MakeConstSpan(&piece, 1));
}

absl::Status Exhausted(absl::string_view action, const std::string& path) {
  return core::StatusOf(absl::StatusCode::kResourceExhausted, [&] {
    return absl::StrCat("Memory is exhausted while ", action, " the profile '", path, "'.");
  });
}

}  // namespace

absl::StatusOr<Profile> LoadProfile(const std::string& path) {
  try {
    return ReadProfileFile(path);
  } catch (const std::bad_alloc&) {
    return Exhausted("reading", path);
  }
}

std::string FormatProfile(const Profile& profile) {
  std::string text;
  JsonWriter json(text, 1);
  WriteObject<Profile>(kProfileFields, profile, json);
  text += '\n';
  return text;
}

absl::Status SaveProfile(const std::string& path, const Profile& profile) {
  try {
    return WriteProfile(path, profile);
  } catch (const std::bad_alloc&) {
    return Exhausted("writing", path);
  }
}

}  // namespace gpushare::models
