// From periodic apps to places. See partitioning.h.

#include "src/core/flow/places/partitioning.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/core/flow/places/place_orders.h"
#include "src/core/flow/verbs/queries/jobs.h"

namespace gpushare::core {
namespace {

const DeviceProfile& ProfileOf(const Flow& flow) { return flow.device->capabilities().profile; }

absl::Status CheckJob(const AppOptions& app) {
  if (!app.real_time.worst_cases.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "Periodic app '", app.name, "' states no worst case (worst_cases), and a plan needs the ",
      "longest time of a job at one number of SMs at least."));
}

bool IsPeriodicApp(const App& app) {
  return app.id.load() != 0 && app.open.load() && app.options.real_time.IsPeriodic();
}

struct PlaceNeed {
  PlaceSpec spec;
  int32_t sms = 0;
};

// All or none: a name stays for the life of the runtime, so a refused plan must not take some.
absl::Status HasRoomForNames(const Flow& flow, const std::vector<PlaceNeed>& needs) {
  const Places& named = flow.lanes.named();
  const auto fresh = std::count_if(needs.begin(), needs.end(), [&](const PlaceNeed& need) {
    return named.FindSet(need.spec) == kNoPlace;
  });
  const int32_t room = kMaxPlaces - named.count();
  if (fresh <= room) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "The plan needs ", fresh,
      " sets of SMs that this runtime has not named, and it has room for ", room, " of its ",
      kMaxPlaces, "; a new runtime, or fewer sizes of partitions, is needed."));
}

}  // namespace

absl::StatusOr<PartitionQuestion> RequestOf(Flow& flow, const PartitionOptions& options) {
  const DeviceProfile& profile = ProfileOf(flow);
  if (!flow.device->capabilities().partitions || profile.Groups() < 1) {
    return absl::FailedPreconditionError(
        "The device has no partitions of SMs, and a plan of partitions needs them.");
  }
  if (options.slack_eviction_ns < 0 || options.slack_eviction_ns > kMaxDurationNs) {
    return absl::InvalidArgumentError(
        absl::StrCat("The slack eviction is ", options.slack_eviction_ns,
                     " ns, and it must lie between 0 and ", kMaxDurationNs, " ns."));
  }
  if (options.reserved_sms < 0 || options.reserved_sms > profile.sm_count) {
    return absl::InvalidArgumentError(absl::StrCat("The reserved SMs are ", options.reserved_sms,
                                                   ", and they must lie between 0 and the ",
                                                   profile.sm_count, " of the device."));
  }
  PartitionQuestion question;
  PartitionRequest& request = question.request;
  request.grain = profile.sm_granularity;
  // What is reserved comes out of the SMs that whole groups leave over first.
  const int32_t reserved = std::max(0, options.reserved_sms - profile.Remainder());
  const int32_t groups = (reserved + request.grain - 1) / request.grain;
  request.sms = (profile.Groups() - groups) * request.grain;
  if (request.sms < request.grain) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.reserved_sms, " SMs are reserved of ", profile.sm_count,
                     ", and at least the ", request.grain, " of one partition must be left."));
  }
  request.shares = options.shares;
  request.overhead_ns = options.slack_eviction_ns;
  for (int slot = 0; slot < flow.tables.app_slots(); ++slot) {
    const App& app = flow.tables.app_slot(slot);
    if (!IsPeriodicApp(app)) continue;
    if (absl::Status status = CheckJob(app.options); !status.ok()) return status;
    if (options.shares) {
      request.overhead_ns = std::max(request.overhead_ns, app.options.real_time.eviction_ns);
    }
    request.jobs.push_back({app.options.name, app.options.real_time});
    question.apps.push_back(AppId{app.id.load()});
  }
  return question;
}

absl::StatusOr<NamedPartitions> NamePartitions(Flow& flow, const PartitionLayout& layout) {
  const DeviceProfile& profile = ProfileOf(flow);
  if (layout.partitions.size() > kMaxPartitions) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "The plan has ", layout.partitions.size(), " partitions, and a runtime has room for ",
        kMaxPartitions, "; let apps share partitions."));
  }
  std::vector<PlaceNeed> needs;
  int32_t first = 0;
  for (const PartitionLayout::Partition& partition : layout.partitions) {
    const int32_t groups = partition.sms / profile.sm_granularity;
    needs.push_back({{first, groups, false}, partition.sms});
    first += groups;
  }
  const int32_t rest = profile.Groups() - first;
  const int32_t rest_sms = rest * profile.sm_granularity + profile.Remainder();
  const bool has_rest = !needs.empty() && rest_sms > 0;
  if (has_rest) needs.push_back({{first, rest, profile.Remainder() > 0}, rest_sms});
  if (absl::Status status = HasRoomForNames(flow, needs); !status.ok()) return status;
  NamedPartitions out;
  for (size_t p = 0; p < needs.size(); ++p) {
    const PlaceIndex place = flow.lanes.named().NameSet(needs[p].spec, needs[p].sms);
    if (p == layout.partitions.size()) {
      out.rest = place;
    } else {
      out.partitions.Add({.place = place, .shared = layout.partitions[p].jobs.size() > 1});
    }
  }
  return out;
}

absl::Status MakePartitions(Flow& flow, Mutex& tick_mutex, const NamedPartitions& named) {
  std::vector<PlaceIndex> places;
  for (const PartitionView& partition : named.partitions) places.push_back(partition.place);
  if (named.rest != kNoPlace) places.push_back(named.rest);
  for (const PlaceIndex place : places) {
    if (absl::Status status = MakePlaceNow(flow, tick_mutex, place, places); !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

PartitionSummary Publish(Flow& flow, const PartitionQuestion& question,
                         const PartitionLayout& layout, const NamedPartitions& named,
                         const PartitionOptions& options) {
  for (int slot = 0; slot < flow.tables.app_slots(); ++slot) {
    flow.tables.app_slot(slot).real_time = RealTimeShare();
    flow.tables.app_slot(slot).region_place.store(kNoPlace);
  }
  PartitionSummary summary;
  for (size_t p = 0; p < layout.partitions.size(); ++p) {
    summary.partition_sms += layout.partitions[p].sms;
    for (const PartitionLayout::Job& job : layout.partitions[p].jobs) {
      App* const app = flow.tables.FindApp(question.apps[static_cast<size_t>(job.job)]);
      if (app == nullptr) continue;
      app->real_time.partition = static_cast<int32_t>(p);
      const bool apart = !named.partitions[static_cast<int32_t>(p)].shared;
      if (apart && options.slack_eviction_ns == 0) {
        app->region_place.store(named.partitions[static_cast<int32_t>(p)].place);
      }
      app->real_time.worst_ns = job.worst_ns;
      app->real_time.response_ns = job.response_ns;
    }
  }
  flow.partitions.partitions = named.partitions;
  flow.partitions.rest = named.rest;
  flow.partitions.slack_eviction_ns = options.slack_eviction_ns;
  flow.partition_overhead_ns = question.request.overhead_ns;
  flow.has_partitions = !named.partitions.empty();
  FollowPlan(flow);
  flow.dirty = true;
  summary.partitions = named.partitions.size();
  if (named.rest != kNoPlace) summary.rest_sms = flow.lanes.place(named.rest).sms;
  return summary;
}

}  // namespace gpushare::core
