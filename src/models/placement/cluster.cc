// Ranges of a cluster; see cluster.h.

#include "src/models/placement/cluster.h"

#include <cmath>
#include <cstdint>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "src/models/placement/tables.h"

namespace gpushare::models::placement {

namespace {

absl::Status Refuse(absl::string_view what, absl::string_view name, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(what, " '", name, "' ", problem));
}

absl::Status CheckNumber(absl::string_view what, absl::string_view name, absl::string_view field,
                         double value, double low, double high) {
  if (std::isfinite(value) && value >= low && value <= high) return absl::OkStatus();
  return Refuse(what, name,
                absl::StrCat("has the ", field, " ", value, ", and it must be from ", low, " to ",
                             high, "."));
}

// A count, so that the sentence has its digits and no exponent.
absl::Status CheckCount(absl::string_view what, absl::string_view name, absl::string_view field,
                        int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return Refuse(what, name,
                absl::StrCat("has the ", field, " ", value, ", and it must be from ", low, " to ",
                             high, "."));
}

absl::Status CheckGpus(const Cluster& cluster) {
  int64_t count = 0;
  Texts names;
  for (const GpuGroup& group : cluster.gpus) {
    if (group.name.empty()) return absl::InvalidArgumentError("A group of GPUs has no name.");
    if (!names.insert(group.name).second) {
      return Refuse("The group of GPUs", group.name,
                    "is stated twice; give each a name of its own.");
    }
    for (const auto& status :
         {CheckCount("The group of GPUs", group.name, "memory in bytes", group.memory_bytes, 1,
                     kMemoryBytesMax),
          CheckCount("The group of GPUs", group.name, "count", group.count, 1, kGpusMax)}) {
      if (!status.ok()) return status;
    }
    count += group.count;
    if (count > kGpusMax) {
      return Refuse(
          "The group of GPUs", group.name,
          absl::StrCat("is the one with GPU ", kGpusMax + 1, ", and the limit is ", kGpusMax, "."));
    }
  }
  if (count == 0) return absl::InvalidArgumentError("The cluster has no GPU, and one is needed.");
  return absl::OkStatus();
}

absl::Status CheckLc(const LcApp& app) {
  if (app.kind.empty()) return Refuse("LC app", app.name, "has no kind.");
  for (const auto& status :
       {CheckNumber("LC app", app.name, "load", app.load, 0, 1),
        CheckCount("LC app", app.name, "memory in bytes", app.memory_bytes, 0, kMemoryBytesMax),
        CheckCount("LC app", app.name, "target in ns", app.target_ns, 0, kTargetNsMax),
        CheckCount("LC app", app.name, "p99 alone in ns", app.p99_alone_ns, 0, kTargetNsMax),
        CheckCount("LC app", app.name, "number of replicas", app.replicas, 0, kGpusMax)}) {
    if (!status.ok()) return status;
  }
  if (app.p99_bound != 0) {
    absl::Status status =
        CheckNumber("LC app", app.name, "bound on p99", app.p99_bound, 1, kRatioMax);
    if (!status.ok()) return status;
  }
  if (app.target_ns > 0 && app.p99_alone_ns == 0) {
    return Refuse("LC app", app.name,
                  "has a target and no p99 alone, and a ratio of p99s says nothing without it.");
  }
  return absl::OkStatus();
}

absl::Status CheckBe(const BeApp& app) {
  if (app.kind.empty()) return Refuse("BE app", app.name, "has no kind.");
  for (const auto& status :
       {CheckCount("BE app", app.name, "memory in bytes", app.memory_bytes, 0, kMemoryBytesMax),
        CheckNumber("BE app", app.name, "weight", app.weight, 1e-3, 1e3),
        CheckCount("BE app", app.name, "number of instances", app.instances, 0, kInstancesMax)}) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Also the sums, so that nothing later overflows.
absl::Status CheckApps(const Cluster& cluster) {
  if (cluster.lc.size() + cluster.be.size() > kAppsMax) {
    return absl::InvalidArgumentError(absl::StrCat("The cluster has ",
                                                   cluster.lc.size() + cluster.be.size(),
                                                   " apps, and the limit is ", kAppsMax, "."));
  }
  int64_t replicas = 0;
  int64_t instances = 0;
  Texts names;
  Texts lc_kinds;
  Texts be_kinds;
  for (const LcApp& app : cluster.lc) {
    if (app.name.empty()) return absl::InvalidArgumentError("An LC app has no name.");
    if (!names.insert(app.name).second) {
      return Refuse("The app", app.name, "is stated twice; give each a name of its own.");
    }
    if (absl::Status status = CheckLc(app); !status.ok()) return status;
    lc_kinds.insert(app.kind);
    replicas += app.replicas;
  }
  for (const BeApp& app : cluster.be) {
    if (app.name.empty()) return absl::InvalidArgumentError("A BE app has no name.");
    if (!names.insert(app.name).second) {
      return Refuse("The app", app.name, "is stated twice; give each a name of its own.");
    }
    if (absl::Status status = CheckBe(app); !status.ok()) return status;
    be_kinds.insert(app.kind);
    instances += app.instances;
  }
  if (replicas > kInstancesMax || instances > kInstancesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("The apps have ", replicas, " replicas and ", instances,
                     " instances, and the limit of each is ", kInstancesMax, "."));
  }
  if (lc_kinds.size() > kKindsMax || be_kinds.size() > kKindsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("The apps are of ", lc_kinds.size(), " LC and ", be_kinds.size(),
                     " BE kinds, and the limit of each is ", kKindsMax, "."));
  }
  return absl::OkStatus();
}

absl::Status CheckRow(const PairRow& row) {
  const std::string name = absl::StrCat(row.lc, "' beside '", row.be);
  if (row.lc.empty() || row.be.empty()) {
    return Refuse("The pair", name, "has no name of one of its kinds.");
  }
  for (const auto& status :
       {CheckNumber("The pair", name, "load", row.load, 0, 1),
        CheckNumber("The pair", name, "p99 over alone", row.p99_ratio, 0, kRatioMax),
        CheckNumber("The pair", name, "error of the p99", row.p99_error, 0, kRatioMax),
        CheckNumber("The pair", name, "BE rate", row.be_rate, 0, 1),
        CheckNumber("The pair", name, "error of the BE rate", row.be_error, 0, 1)}) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Check(const Cluster& cluster) {
  for (const auto& status : {CheckGpus(cluster), CheckApps(cluster)}) {
    if (!status.ok()) return status;
  }
  if (cluster.pairs.size() > kPairRowsMax) {
    return absl::InvalidArgumentError(absl::StrCat("The cluster has ", cluster.pairs.size(),
                                                   " rows of pairs, and the limit is ",
                                                   kPairRowsMax, "."));
  }
  for (const PairRow& row : cluster.pairs) {
    if (absl::Status status = CheckRow(row); !status.ok()) return status;
  }
  if (cluster.be_per_gpu < 1 || cluster.be_per_gpu > kBePerGpuMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("The cluster allows ", cluster.be_per_gpu,
                     " BE instances on a GPU, and it must be from 1 to ", kBePerGpuMax, "."));
  }
  return absl::OkStatus();
}

}  // namespace gpushare::models::placement
