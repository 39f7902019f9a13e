// The reader of clusters; see cluster_file.h.

#include "src/models/placement/cluster_file.h"

#include <cstddef>
#include <initializer_list>
#include <string>

#include "src/models/json/json_document.h"
#include "src/models/json/json_fields.h"

namespace gpushare::models::placement {

namespace {

constexpr double kNameBytesMax = 63;
constexpr double kIntMax = 1e9;
constexpr double kMemoryMax = static_cast<double>(kMemoryBytesMax);
constexpr double kNsMax = static_cast<double>(kTargetNsMax);
constexpr auto kListMax = int64_t{kAppsMax};

constexpr Field<GpuGroup> kGpuFields[] = {
    {"name", &GpuGroup::name, 1, kNameBytesMax},
    {"memory_bytes", &GpuGroup::memory_bytes, 1, kMemoryMax},
    {"count", &GpuGroup::count, 1, static_cast<double>(kGpusMax)},
};

constexpr Field<LcApp> kLcFields[] = {
    {"name", &LcApp::name, 1, kNameBytesMax},
    {"kind", &LcApp::kind, 1, kNameBytesMax},
    {"load", &LcApp::load, 0, 1},
    {"memory_bytes", &LcApp::memory_bytes, 0, kMemoryMax},
    {"p99_bound", &LcApp::p99_bound, 1, kRatioMax},
    {"target_ns", &LcApp::target_ns, 1, kNsMax},
    {"p99_alone_ns", &LcApp::p99_alone_ns, 1, kNsMax},
    {"replicas", &LcApp::replicas, 0, static_cast<double>(kGpusMax)},
};

constexpr Field<BeApp> kBeFields[] = {
    {"name", &BeApp::name, 1, kNameBytesMax},
    {"kind", &BeApp::kind, 1, kNameBytesMax},
    {"memory_bytes", &BeApp::memory_bytes, 0, kMemoryMax},
    {"weight", &BeApp::weight, 1e-3, 1e3},
    {"instances", &BeApp::instances, 0, static_cast<double>(kInstancesMax)},
};

constexpr Field<PairRow> kPairFields[] = {
    {"lc", &PairRow::lc, 1, kNameBytesMax},
    {"be", &PairRow::be, 1, kNameBytesMax},
    {"load", &PairRow::load, 0, 1},
    {"p99_ratio", &PairRow::p99_ratio, 0, kRatioMax},
    {"p99_error", &PairRow::p99_error, 0, kRatioMax},
    {"be_rate", &PairRow::be_rate, 0, 1},
    {"be_error", &PairRow::be_error, 0, 1},
};

constexpr Field<Running> kRunningFields[] = {
    {"gpu", &Running::gpu, 1, kNameBytesMax + 8},
    {"app", &Running::app, 1, kNameBytesMax},
    {"instances", &Running::instances, 1, kIntMax},
};

// In the order of Together.
constexpr absl::string_view kTogetherWords[] = {"in_turns", "at_once"};

const Field<Cluster> kClusterFields[] = {
    {"gpus", ListField<Cluster, GpuGroup, &Cluster::gpus, kGpuFields, kGpusMax>()},
    {"lc_apps", ListField<Cluster, LcApp, &Cluster::lc, kLcFields, kListMax>()},
    {"be_apps", ListField<Cluster, BeApp, &Cluster::be, kBeFields, kListMax>()},
    {"pairs", ListField<Cluster, PairRow, &Cluster::pairs, kPairFields, int64_t{kPairRowsMax}>()},
    {"running", ListField<Cluster, Running, &Cluster::running, kRunningFields, kInstancesMax>()},
    {"be_per_gpu", &Cluster::be_per_gpu, 1, kBePerGpuMax},
    {"together", WordField<Cluster, Together, &Cluster::together, kTogetherWords>()},
};

// A row without a rate or a ratio is a mistake, and 0 and 1 are values.
absl::Status RequireMembers(const JsonValue& root, absl::string_view list,
                            std::initializer_list<absl::string_view> keys) {
  for (const JsonValue item : root) {
    if (item.key() != list) continue;
    size_t i = 0;
    for (const JsonValue element : item) {
      for (const absl::string_view key : keys) {
        if (!element.Has(key)) {
          return KeyError(JsonPath(JsonPath(JsonPath(list), i), key), "is missing.");
        }
      }
      ++i;
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Cluster> ParseCluster(absl::string_view text) {
  absl::StatusOr<JsonDocument> document = ParseStrictJson(text, "The cluster", kClusterBytesMax);
  if (!document.ok()) return document.status();
  Cluster cluster;
  if (!document->root().is_object()) {
    return absl::InvalidArgumentError("The cluster is not a JSON object.");
  }
  absl::Status status = ReadObject<Cluster>(kClusterFields, document->root(), "", cluster);
  if (!status.ok()) return status;
  for (const absl::Status& missing :
       {RequireMembers(document->root(), "gpus", {"name", "memory_bytes"}),
        RequireMembers(document->root(), "lc_apps", {"name", "kind", "load", "memory_bytes"}),
        RequireMembers(document->root(), "be_apps", {"name", "kind", "memory_bytes"}),
        RequireMembers(document->root(), "pairs", {"lc", "be", "load", "p99_ratio", "be_rate"}),
        RequireMembers(document->root(), "running", {"gpu", "app"}), Check(cluster)}) {
    if (!missing.ok()) return missing;
  }
  return cluster;
}

}  // namespace gpushare::models::placement
