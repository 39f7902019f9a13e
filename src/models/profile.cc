// Profiles: parse, check, format, load and save; see profile.h.
//
// The tables below are the file format: each field stands once, with its range, and drives both
// directions. Invariant: a profile that is returned passed every check of this file; SaveProfile
// writes nothing that ParseProfile would refuse.

#include "src/models/profile.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/core/base/file_io.h"
#include "src/core/base/limits.h"
#include "src/models/json_fields.h"

namespace gpushare::models {
namespace {

using core::DeviceProfile;
using core::GraphNode;
using core::KernelDesc;
using core::ResourceDemand;
using core::SimulationRecord;
using core::SpeedPoint;
using core::TaskKind;

constexpr int64_t kSchemaVersion = 1;
constexpr double kMaxDuration = static_cast<double>(core::kMaxDurationNs);
// A latency of more than a second is a unit error, whatever the device.
constexpr double kMaxLatencyNs = 1e9;
constexpr double kMaxSms = 4096;
// NVLink moves 900 bytes a ns; a thousand times that is a unit error.
constexpr double kMaxBytesPerNs = 1e6;
constexpr double kMinBytesPerNs = 1e-6;

const Field<DeviceProfile> kDeviceFields[] = {
    {"name", &DeviceProfile::name, 1, core::kMaxNameBytes},
    {"gpu_model", &DeviceProfile::gpu_model, 0, 256},
    {"sm_count", &DeviceProfile::sm_count, 1, kMaxSms},
    {"sm_granularity", &DeviceProfile::sm_granularity, 1, kMaxSms},
    {"sm_groups", &DeviceProfile::sm_groups, 0, kMaxSms},
    {"remainder_for_lc", &DeviceProfile::remainder_for_lc},
    {"registers_per_sm", &DeviceProfile::registers_per_sm, 1, 1 << 24},
    {"shared_memory_per_sm_bytes", &DeviceProfile::shared_memory_per_sm_bytes, 0, 1 << 28},
    {"threads_per_sm", &DeviceProfile::threads_per_sm, 1, 1 << 16},
    {"blocks_per_sm", &DeviceProfile::blocks_per_sm, 1, 1 << 12},
    {"hardware_queues", &DeviceProfile::hardware_queues, 1, 1024},
    {"launch_issue_ns", &DeviceProfile::launch_issue_ns, 0, kMaxLatencyNs},
    {"launch_latency_ns", &DeviceProfile::launch_latency_ns, 0, kMaxLatencyNs},
    {"graph_launch_latency_ns", &DeviceProfile::graph_launch_latency_ns, 0, kMaxLatencyNs},
    {"completion_latency_ns", &DeviceProfile::completion_latency_ns, 0, kMaxLatencyNs},
    {"eviction_write_issue_ns", &DeviceProfile::eviction_write_issue_ns, 0, kMaxLatencyNs},
    {"eviction_write_latency_ns", &DeviceProfile::eviction_write_latency_ns, 0, kMaxLatencyNs},
    {"event_record_ns", &DeviceProfile::event_record_ns, 0, kMaxLatencyNs},
    {"host_function_latency_ns", &DeviceProfile::host_function_latency_ns, 0, kMaxLatencyNs},
    {"submit_overhead_ns", &DeviceProfile::submit_overhead_ns, 0, kMaxLatencyNs},
    {"pinned_bytes_per_ns", &DeviceProfile::pinned_bytes_per_ns, kMinBytesPerNs, kMaxBytesPerNs},
    {"duplex_bytes_per_ns", &DeviceProfile::duplex_bytes_per_ns, kMinBytesPerNs, kMaxBytesPerNs},
    {"pageable_h2d_bytes_per_ns", &DeviceProfile::pageable_h2d_bytes_per_ns, kMinBytesPerNs,
     kMaxBytesPerNs},
    {"pageable_d2h_bytes_per_ns", &DeviceProfile::pageable_d2h_bytes_per_ns, kMinBytesPerNs,
     kMaxBytesPerNs},
    {"copy_latency_ns", &DeviceProfile::copy_latency_ns, 0, kMaxLatencyNs},
};

const Field<ResourceDemand> kDemandFields[] = {
    {"issue", &ResourceDemand::issue, 0, 1},     {"tensor", &ResourceDemand::tensor, 0, 1},
    {"special", &ResourceDemand::special, 0, 1}, {"dram", &ResourceDemand::dram, 0, 1},
    {"l2", &ResourceDemand::l2, 0, 1},
};

const Field<SpeedPoint> kSpeedFields[] = {
    {"sms", &SpeedPoint::sms, 1, kMaxSms},
    // A kernel that never advances on its SMs has no place there; hence more than 0.
    {"speed", &SpeedPoint::speed, 1e-6, 100},
};

// `demand` stands in nodes and in records.
template <class S>
typename Field<S>::Custom DemandField() {
  return {[](const Json& value, const JsonPath& path, S& out) {
            return ReadObject<ResourceDemand>(kDemandFields, value, path, out.demand);
          },
          [](const S& in) { return WriteObject<ResourceDemand>(kDemandFields, in.demand); }};
}

const Field<GraphNode> kNodeFields[] = {
    {"duration_ns", &GraphNode::duration_ns, 0, kMaxDuration},
    {"blocks", &GraphNode::blocks, 0, (1LL << 31) - 1},
    {"repeat", &GraphNode::repeat, 1, 1 << 20},
    {"whole_sm", &GraphNode::whole_sm},
    {"demand", DemandField<GraphNode>()},
};

absl::Status ReadSpeed(const Json& value, const JsonPath& path, SimulationRecord& out) {
  out.speed.clear();
  return ReadArray(value, path, core::kMaxSpeedPoints,
                   [&](const Json& element, const JsonPath& at) -> absl::Status {
                     SpeedPoint point;
                     point.speed = 0;
                     absl::Status status = ReadObject<SpeedPoint>(kSpeedFields, element, at, point);
                     if (!status.ok()) return status;
                     if (point.sms == 0 || point.speed == 0) {
                       return KeyError(at, "needs both 'sms' and 'speed'.");
                     }
                     if (!out.speed.empty() && point.sms <= out.speed.back().sms) {
                       return KeyError(
                           absl::StrCat(at, ".sms"),
                           absl::StrCat("is ", point.sms, ", and it must be above ",
                                        out.speed.back().sms, ", the point before it."));
                     }
                     out.speed.push_back(point);
                     return absl::OkStatus();
                   });
}

Json WriteSpeed(const SimulationRecord& in) {
  Json array = Json::array();
  for (const SpeedPoint& point : in.speed) {
    array.push_back(WriteObject<SpeedPoint>(kSpeedFields, point));
  }
  return array;
}

absl::Status ReadNodes(const Json& value, const JsonPath& path, SimulationRecord& out) {
  out.nodes.clear();
  return ReadArray(value, path, core::kMaxGraphNodes, [&](const Json& element, const JsonPath& at) {
    out.nodes.emplace_back();
    return ReadObject<GraphNode>(kNodeFields, element, at, out.nodes.back());
  });
}

Json WriteNodes(const SimulationRecord& in) {
  Json array = Json::array();
  for (const GraphNode& node : in.nodes) array.push_back(WriteObject<GraphNode>(kNodeFields, node));
  return array;
}

const Field<SimulationRecord> kSimulationFields[] = {
    {"present", &SimulationRecord::present},
    {"block_task_ns", &SimulationRecord::block_task_ns, 0, kMaxDuration},
    {"block_task_spread", &SimulationRecord::block_task_spread, 0, 10},
    {"worker_overhead", &SimulationRecord::worker_overhead, core::kMinWorkerOverhead,
     core::kMaxWorkerOverhead},
    {"memory_parallelism", &SimulationRecord::memory_parallelism, 0, 1000},
    {"saturating_occupancy", &SimulationRecord::saturating_occupancy, 1e-3, 1},
    {"demand", DemandField<SimulationRecord>()},
    {"speed", Field<SimulationRecord>::Custom{ReadSpeed, WriteSpeed}},
    {"nodes", Field<SimulationRecord>::Custom{ReadNodes, WriteNodes}},
    {"node_gap_ns", &SimulationRecord::node_gap_ns, 0, kMaxLatencyNs},
};

struct KindName {
  TaskKind kind;
  const char* name;
};
constexpr KindName kKindNames[] = {{TaskKind::kKernel, "kernel"},
                                   {TaskKind::kGraph, "graph"},
                                   {TaskKind::kLibrary, "library"},
                                   {TaskKind::kMemcpy, "memcpy"},
                                   {TaskKind::kOpaque, "opaque"}};

absl::Status ReadKind(const Json& value, const JsonPath& path, KernelDesc& out) {
  for (const KindName& known : kKindNames) {
    if (value.is_string() && value.get_ref<const std::string&>() == known.name) {
      out.kind = known.kind;
      return absl::OkStatus();
    }
  }
  return WrongType(path, value, "\"kernel\", \"graph\", \"library\", \"memcpy\" or \"opaque\"");
}

Json WriteKind(const KernelDesc& in) {
  for (const KindName& known : kKindNames) {
    if (known.kind == in.kind) return known.name;
  }
  return nullptr;  // refused by SaveProfile's check
}

absl::Status ReadSimulation(const Json& value, const JsonPath& path, KernelDesc& out) {
  out.simulation = SimulationRecord();
  out.simulation.present = true;  // an object that is there counts, unless it says otherwise
  return ReadObject<SimulationRecord>(kSimulationFields, value, path, out.simulation);
}

Json WriteSimulation(const KernelDesc& in) {
  return WriteObject<SimulationRecord>(kSimulationFields, in.simulation);
}

// Everything of KernelDesc but the id and the native handles, which have no meaning in a file.
const Field<KernelDesc> kKernelFields[] = {
    {"name", &KernelDesc::name, 1, core::kMaxNameBytes},
    {"kind", Field<KernelDesc>::Custom{ReadKind, WriteKind}},
    {"threads_per_block", &KernelDesc::threads_per_block, 1, 1 << 16},
    {"registers_per_thread", &KernelDesc::registers_per_thread, 0, 1024},
    {"shared_memory_bytes", &KernelDesc::shared_memory_bytes, 0, 1 << 28},
    {"workers_per_sm_max", &KernelDesc::workers_per_sm_max, 1, 1 << 12},
    {"evictable", &KernelDesc::evictable},
    {"confinable", &KernelDesc::confinable},
    {"roomy", &KernelDesc::roomy},
    {"yield_interval_ns", &KernelDesc::yield_interval_ns, 0, kMaxDuration},
    {"solo_hint_ns", &KernelDesc::solo_hint_ns, 0, kMaxDuration},
    {"simulation", Field<KernelDesc>::Custom{ReadSimulation, WriteSimulation}},
};

absl::Status ReadKernels(const Json& value, const JsonPath& path, Profile& out) {
  std::set<std::string> names;
  return ReadArray(
      value, path, core::kMaxKernels, [&](const Json& element, const JsonPath& at) -> absl::Status {
        out.kernels.emplace_back();
        KernelDesc& kernel = out.kernels.back();
        absl::Status status = ReadObject<KernelDesc>(kKernelFields, element, at, kernel);
        if (!status.ok()) return status;
        if (kernel.name.empty()) return KeyError(at, "needs a 'name'.");
        if (!names.insert(kernel.name).second) {
          return KeyError(
              absl::StrCat(at, ".name"),
              absl::StrCat("is ", ShowJson(kernel.name), ", and an earlier kernel has this name."));
        }
        return absl::OkStatus();
      });
}

Json WriteKernels(const Profile& in) {
  Json array = Json::array();
  for (const KernelDesc& kernel : in.kernels) {
    array.push_back(WriteObject<KernelDesc>(kKernelFields, kernel));
  }
  return array;
}

// --- calibration ---------------------------------------------------------------------------------

// More than the 16 MB of a profile hold (calibration_checks.h counts before it measures).
constexpr int64_t kMaxRecords = 1 << 16;
constexpr int64_t kMaxPoints = 4096;
constexpr double kMaxRatio = 1e6;
constexpr double kMaxCount = 1 << 20;

// Words of an enum, in the order of its values.
template <class S, class E, E S::*member, const char* const* words, int count>
typename Field<S>::Custom WordField() {
  return {[](const Json& value, const JsonPath& path, S& out) -> absl::Status {
            std::string known;
            for (int i = 0; i < count; ++i) {
              if (value == words[i]) {
                out.*member = static_cast<E>(i);
                return absl::OkStatus();
              }
              absl::StrAppend(&known, i == 0 ? "" : ", ", words[i]);
            }
            return WrongType(path, value, absl::StrCat("one of ", known));
          },
          [](const S& in) { return Json(words[static_cast<int>(in.*member)]); }};
}

constexpr const char* kIntensityWords[] = {"unknown", "compute", "memory"};
constexpr const char* kVerdictWords[] = {"kept", "slower", "never_gains", "spills"};

const Field<KernelRecord> kKernelRecordFields[] = {
    {"name", &KernelRecord::name, 1, core::kMaxNameBytes},
    {"intensity",
     WordField<KernelRecord, Intensity, &KernelRecord::intensity, kIntensityWords, 3>()},
    {"flat_from_sms", &KernelRecord::flat_from_sms, 0, kMaxSms},
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
    {"duration_ns", &CopyPoint::duration_ns, 0, kMaxDuration},
};

// A list of objects, each with the same fields.
template <class S, class E, std::vector<E> S::*member, const auto& fields, int64_t most>
typename Field<S>::Custom ListField() {
  return {[](const Json& value, const JsonPath& path, S& out) {
            (out.*member).clear();
            return ReadArray(value, path, most, [&](const Json& element, const JsonPath& at) {
              (out.*member).emplace_back();
              return ReadObject<E>(fields, element, at, (out.*member).back());
            });
          },
          [](const S& in) {
            Json array = Json::array();
            for (const E& element : in.*member) array.push_back(WriteObject<E>(fields, element));
            return array;
          }};
}

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
    {"verdict", WordField<FusedRecord, FusedVerdict, &FusedRecord::verdict, kVerdictWords, 4>()},
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

// -------------------------------------------------------------------------------------------------

absl::Status ReadVersion(const Json& value, const JsonPath& path, Profile&) {
  if (value.is_number_integer() && value.get<int64_t>() == kSchemaVersion) return absl::OkStatus();
  return WrongType(path, value, absl::StrCat(kSchemaVersion, ", the version that is read here"));
}

absl::Status ReadDevice(const Json& value, const JsonPath& path, Profile& out) {
  return ReadObject<DeviceProfile>(kDeviceFields, value, path, out.device);
}

const Field<Profile> kProfileFields[] = {
    {"schema_version",
     Field<Profile>::Custom{ReadVersion, [](const Profile&) { return Json(kSchemaVersion); }}},
    {"device", Field<Profile>::Custom{ReadDevice,
                                      [](const Profile& in) {
                                        return WriteObject<DeviceProfile>(kDeviceFields, in.device);
                                      }}},
    {"kernels", Field<Profile>::Custom{ReadKernels, WriteKernels}},
    {"calibration", Field<Profile>::Custom{
                        [](const Json& value, const JsonPath& path, Profile& out) {
                          return ReadObject<CalibrationRecord>(kCalibrationFields, value, path,
                                                               out.calibration);
                        },
                        [](const Profile& in) {
                          return WriteObject<CalibrationRecord>(kCalibrationFields, in.calibration);
                        }}},
    {"learned", &Profile::learned, 0, kLearnedBytesMax},
};

absl::Status Exceeds(const JsonPath& path, int64_t value, int64_t limit, absl::string_view what) {
  return KeyError(path, absl::StrCat("is ", value, ", and the limit is ", limit, ", ", what, "."));
}

// A block must fit into an SM of this device, and a graph's whole time must be a duration.
absl::Status CheckKernel(const DeviceProfile& device, const KernelDesc& kernel,
                         const JsonPath& path) {
  if (kernel.threads_per_block > device.threads_per_sm) {
    return Exceeds(absl::StrCat(path, ".threads_per_block"), kernel.threads_per_block,
                   device.threads_per_sm, "the threads of an SM");
  }
  if (kernel.shared_memory_bytes > device.shared_memory_per_sm_bytes) {
    return Exceeds(absl::StrCat(path, ".shared_memory_bytes"), kernel.shared_memory_bytes,
                   device.shared_memory_per_sm_bytes, "the shared memory of an SM");
  }
  const int64_t registers =
      static_cast<int64_t>(kernel.registers_per_thread) * kernel.threads_per_block;
  if (registers > device.registers_per_sm) {
    return Exceeds(absl::StrCat(path, ".registers_per_thread x threads_per_block"), registers,
                   device.registers_per_sm, "the registers of an SM");
  }
  if (kernel.workers_per_sm_max > device.blocks_per_sm) {
    return Exceeds(absl::StrCat(path, ".workers_per_sm_max"), kernel.workers_per_sm_max,
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
  if (total_ns > kMaxDuration) {
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
    absl::Status status = CheckKernel(device, profile.kernels[i], absl::StrCat("kernels[", i, "]"));
    if (!status.ok()) return status;
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
  absl::StatusOr<Json> json = ParseStrictJson(text, "The profile", kProfileBytesMax);
  if (!json.ok()) return json.status();
  Profile profile;
  absl::Status status = ReadObject<Profile>(kProfileFields, *json, "", profile);
  if (!status.ok()) return status;
  // Without a version or a device the text is not a profile, whatever else it holds.
  for (const char* key : {"schema_version", "device"}) {
    if (!json->contains(key)) return KeyError(key, "is missing, and a profile must have it.");
  }
  status = CheckProfile(profile);
  if (!status.ok()) return status;
  return profile;
}

absl::StatusOr<Profile> LoadProfile(const std::string& path) {
  absl::StatusOr<std::string> text = core::ReadWholeFile(path, kProfileBytesMax);
  if (!text.ok()) return text.status();
  absl::StatusOr<Profile> profile = ParseProfile(*text);
  if (!profile.ok()) {
    return absl::Status(profile.status().code(),
                        absl::StrCat("In '", path, "': ", profile.status().message()));
  }
  return profile;
}

std::string FormatProfile(const Profile& profile) {
  Json json = WriteObject<Profile>(kProfileFields, profile);
  // As profiles were before there was one.
  if (profile.calibration.empty()) json.erase("calibration");
  // Bytes that are no UTF-8 become U+FFFD: dump would throw otherwise.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::Status SaveProfile(const std::string& path, const Profile& profile) {
  const std::string text = FormatProfile(profile);
  absl::StatusOr<Profile> readable = ParseProfile(text);
  if (!readable.ok()) return readable.status();
  const absl::string_view piece = text;
  return core::WriteFileAtomically(path, absl::MakeConstSpan(&piece, 1));
}

}  // namespace gpushare::models
