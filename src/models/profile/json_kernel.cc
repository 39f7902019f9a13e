// Kernels in a profile file; see json_kernel.h.

#include "src/models/profile/json_kernel.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "src/core/base/limits.h"
#include "src/core/base/status.h"
#include "src/models/profile/profile_limits.h"

namespace gpushare::models {
namespace {

using core::GraphNode;
using core::KernelCounters;
using core::KernelDesc;
using core::KernelResources;
using core::ResourceDemand;
using core::SimulationRecord;
using core::SpeedPoint;
using core::TaskKind;

const Field<ResourceDemand> kDemandFields[] = {
    {"issue", &ResourceDemand::issue, 0, 1},     {"tensor", &ResourceDemand::tensor, 0, 1},
    {"special", &ResourceDemand::special, 0, 1}, {"dram", &ResourceDemand::dram, 0, 1},
    {"l2", &ResourceDemand::l2, 0, 1},
};

const Field<KernelCounters> kCounterFields[] = {
    {"instructions", &KernelCounters::instructions, 0, kCountedInstructionsMax},
    {"memory_instructions", &KernelCounters::memory_instructions, 0, kCountedInstructionsMax},
    {"sectors_per_request", &KernelCounters::sectors_per_request, 0, kSectorsPerRequestMax},
    {"issue", &KernelCounters::issue, 0, 1},
    {"fma", &KernelCounters::fma, 0, 1},
    {"alu", &KernelCounters::alu, 0, 1},
    {"tensor", &KernelCounters::tensor, 0, 1},
    {"special", &KernelCounters::special, 0, 1},
    {"lsu", &KernelCounters::lsu, 0, 1},
    {"shared", &KernelCounters::shared, 0, 1},
    {"l1", &KernelCounters::l1, 0, 1},
    {"l2", &KernelCounters::l2, 0, 1},
    {"dram", &KernelCounters::dram, 0, 1},
    {"dram_write", &KernelCounters::dram_write, 0, 1},
};

const Field<SpeedPoint> kSpeedFields[] = {
    {"sms", &SpeedPoint::sms, 1, kSmsMax},
    // Above 0, because a kernel that never advances on its SMs has no place there.
    {"speed", &SpeedPoint::speed, 1e-6, 100},
};

// Left out where the node is of no registered kernel, as most are.
absl::Status ReadNodeKernel(const JsonValue& value, const JsonPath& path, GraphNode& out) {
  return ReadString(value, path, 1, core::kMaxNameBytes, out.kernel);
}
void WriteNodeKernel(const GraphNode& in, JsonWriter& json) { json.Write(in.kernel); }

const Field<GraphNode> kNodeFields[] = {
    {"duration_ns", &GraphNode::duration_ns, 0, kDurationMaxNs},
    {"blocks", &GraphNode::blocks, 0, (1LL << 31) - 1},
    {"repeat", &GraphNode::repeat, 1, 1 << 20},
    {"whole_sm", &GraphNode::whole_sm},
    {"block_task_ns", &GraphNode::block_task_ns, 0, kDurationMaxNs},
    {"kernel", Field<GraphNode>::Custom{ReadNodeKernel, WriteNodeKernel,
                                        [](const GraphNode& in) { return in.kernel.empty(); }}},
    {"demand", ObjectField<GraphNode, ResourceDemand, &GraphNode::demand, kDemandFields>()},
};

absl::Status ReadSpeed(const JsonValue& value, const JsonPath& path, SimulationRecord& out) {
  out.speed.clear();
  return ReadArray(
      value, path, core::kMaxSpeedPoints,
      [&](const JsonValue& element, const JsonPath& at) -> absl::Status {
        SpeedPoint point;
        point.speed = 0;
        GPUSHARE_RETURN_IF_ERROR(ReadObject<SpeedPoint>(kSpeedFields, element, at, point));
        if (point.sms == 0 || point.speed == 0) {
          return KeyError(at, "needs both 'sms' and 'speed'.");
        }
        if (!out.speed.empty() && point.sms <= out.speed.back().sms) {
          return KeyError(absl::StrCat(at, ".sms"),
                          absl::StrCat("is ", point.sms, ", and it must be above ",
                                       out.speed.back().sms, ", the point before it."));
        }
        out.speed.push_back(point);
        return absl::OkStatus();
      });
}

void WriteSpeed(const SimulationRecord& in, JsonWriter& json) {
  WriteArray<SpeedPoint>(kSpeedFields, in.speed, json);
}

const Field<SimulationRecord> kSimulationFields[] = {
    {"present", &SimulationRecord::present},
    {"block_task_ns", &SimulationRecord::block_task_ns, 0, kDurationMaxNs},
    {"block_task_spread", &SimulationRecord::block_task_spread, 0, 10},
    {"worker_overhead", &SimulationRecord::worker_overhead, core::kMinWorkerOverhead,
     core::kMaxWorkerOverhead},
    {"memory_parallelism", &SimulationRecord::memory_parallelism, 0, 1000},
    {"saturating_occupancy", &SimulationRecord::saturating_occupancy, 1e-3, 1},
    {"demand",
     ObjectField<SimulationRecord, ResourceDemand, &SimulationRecord::demand, kDemandFields>()},
    {"speed", Field<SimulationRecord>::Custom{ReadSpeed, WriteSpeed}},
    {"nodes", ListField<SimulationRecord, GraphNode, &SimulationRecord::nodes, kNodeFields,
                        core::kMaxGraphNodes>()},
    {"node_gap_ns", &SimulationRecord::node_gap_ns, 0, kLatencyMaxNs},
};

struct KindName {
  TaskKind kind;
  const char* name;
};
constexpr KindName kKindNames[] = {
    {TaskKind::kKernel, "kernel"}, {TaskKind::kGraph, "graph"}, {TaskKind::kLibrary, "library"}};

absl::Status ReadKind(const JsonValue& value, const JsonPath& path, KernelDesc& out) {
  for (const KindName& known : kKindNames) {
    if (value.is_text() && value.text() == known.name) {
      out.code = core::CodeOfKind(known.kind);
      return absl::OkStatus();
    }
  }
  return WrongType(path, value, "\"kernel\", \"graph\" or \"library\"");
}

void WriteKind(const KernelDesc& in, JsonWriter& json) {
  for (const KindName& known : kKindNames) {
    if (known.kind == in.kind()) return json.Write(known.name);
  }
}

absl::Status ReadSimulation(const JsonValue& value, const JsonPath& path, KernelDesc& out) {
  out.simulation.present = true;  // unless the object says otherwise
  return ReadObject<SimulationRecord>(kSimulationFields, value, path, out.simulation);
}

void WriteSimulation(const KernelDesc& in, JsonWriter& json) {
  WriteObject<SimulationRecord>(kSimulationFields, in.simulation, json);
}

absl::Status ReadCounters(const JsonValue& value, const JsonPath& path, KernelDesc& out) {
  return ReadObject<KernelCounters>(kCounterFields, value, path, out.counters);
}

void WriteCounters(const KernelDesc& in, JsonWriter& json) {
  WriteObject<KernelCounters>(kCounterFields, in.counters, json);
}

bool NobodyCounted(const KernelDesc& in) { return !in.counters.present(); }

// A field of the kernel's resources, which the file has beside the kernel's own.
template <auto member, int64_t min = 0, int64_t max = 0>
Field<KernelDesc>::Custom ResourceField() {
  return {[](const JsonValue& value, const JsonPath& path, KernelDesc& out) {
            const Field<KernelResources> field = {"", member, static_cast<double>(min),
                                                  static_cast<double>(max)};
            return ReadField(field, value, path, out.resources);
          },
          [](const KernelDesc& in, JsonWriter& json) { json.Write(in.resources.*member); }};
}

// All of KernelDesc except what has a meaning in one process only: the id, and of the code more
// than its kind.
const Field<KernelDesc> kKernelFields[] = {
    {"name", &KernelDesc::name, 1, core::kMaxNameBytes},
    {"kind", Field<KernelDesc>::Custom{ReadKind, WriteKind}},
    {"threads_per_block", ResourceField<&KernelResources::threads_per_block, 1, 1 << 16>()},
    {"registers_per_thread", ResourceField<&KernelResources::registers_per_thread, 0, 1024>()},
    {"shared_memory_bytes", ResourceField<&KernelResources::shared_memory_bytes, 0, 1 << 28>()},
    {"workers_per_sm_max", ResourceField<&KernelResources::workers_per_sm_max, 1, 1 << 12>()},
    {"evictable", &KernelDesc::evictable},
    {"confinable", &KernelDesc::confinable},
    {"roomy", ResourceField<&KernelResources::roomy>()},
    {"yield_interval_ns", &KernelDesc::yield_interval_ns, 0, kDurationMaxNs},
    {"solo_hint_ns", &KernelDesc::solo_hint_ns, 0, kDurationMaxNs},
    {"counters", Field<KernelDesc>::Custom{ReadCounters, WriteCounters, NobodyCounted}},
    {"simulation", Field<KernelDesc>::Custom{ReadSimulation, WriteSimulation}},
};

}  // namespace

absl::Status ReadKernels(const JsonValue& value, const JsonPath& path,
                         std::vector<KernelDesc>& out) {
  std::set<std::string> names;
  const auto read = [&](const JsonValue& element, const JsonPath& at) -> absl::Status {
    KernelDesc& kernel = out.emplace_back();
    GPUSHARE_RETURN_IF_ERROR(ReadObject<KernelDesc>(kKernelFields, element, at, kernel));
    if (kernel.name.empty()) return KeyError(at, "needs a 'name'.");
    if (names.insert(kernel.name).second) return absl::OkStatus();
    return KeyError(
        absl::StrCat(at, ".name"),
        absl::StrCat("is ", ShowText(kernel.name), ", and an earlier kernel has this name."));
  };
  return ReadArray(value, path, core::kMaxKernels, read);
}

void WriteKernels(const std::vector<KernelDesc>& in, JsonWriter& json) {
  WriteArray<KernelDesc>(kKernelFields, in, json);
}

}  // namespace gpushare::models
