// Invariants of the flow. See flow_check.h.

#include "src/core/flow/flow_check.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "src/core/flow/planning/head_views.h"
#include "src/core/state/query_waits.h"

namespace gpushare::core {
namespace {

struct Totals {
  CapSmUnits units = 0;
  int64_t issued_ns = 0;
  int64_t uncommitted_ns = 0;
  int64_t be_issued_ns = 0;  // of BE apps
  int64_t lc_in_gate = 0;
  std::array<int32_t, kMaxLanes> parts{};
};

absl::Status AddTask(const Task& task, int index, Totals& totals) {
  if (task.progress.running_index != index) {
    return absl::InternalError(absl::StrCat("Task ", task.record.ticket.value, " is at ", index,
                                            " of its list and records ",
                                            task.progress.running_index, "."));
  }
  if (task.progress.parts.empty()) {
    return absl::InternalError(
        absl::StrCat("Task ", task.record.ticket.value, " runs without a launch."));
  }
  if (!task.wait_tickets.empty()) {
    return absl::InternalError(absl::StrCat("Task ", task.record.ticket.value,
                                            " runs and waits for ", task.wait_tickets.size(),
                                            " tickets."));
  }
  totals.issued_ns += task.progress.issued_ns;
  totals.uncommitted_ns += task.progress.uncommitted_ns;
  totals.be_issued_ns += IsLc(task) ? 0 : task.progress.issued_ns;
  totals.lc_in_gate += task.progress.entered_gate ? 1 : 0;
  for (const Part& part : task.progress.parts) {
    totals.units += WorkerUnits(part.workers, part.workers_per_sm);
    ++totals.parts[static_cast<size_t>(part.lane)];
  }
  return absl::OkStatus();
}

// An eviction is lost when a BE launch stays on SMs of LC work in flight that evicts.
absl::Status CheckEvicted(const Flow& flow, const Task& be, const Task& lc) {
  if (!lc.progress.entered_gate || !lc.progress.evicts) return absl::OkStatus();
  const uint64_t overlaps = flow.lanes.place(lc.progress.parts[0].place).overlaps;
  for (const Part& part : be.progress.parts) {
    // The other part of the LC work's own fused launch does not delay it.
    if (part.order_lane != kNoLane && part.order_lane == lc.progress.parts[0].lane) continue;
    const bool stays = part.epoch != 0 && !IsLeaving(flow.gate, part);
    if (stays && (overlaps >> part.place & 1) != 0) {
      return absl::InternalError(absl::StrCat("Launch ", part.launch.value, " on lane ", part.lane,
                                              " was not evicted for ticket ",
                                              lc.record.ticket.value, "."));
    }
  }
  return absl::OkStatus();
}

// What the start tags of BE apps are made of.
absl::Status CheckShares(const Flow& flow, const Totals& totals) {
  int64_t on_device_ns = 0;
  int32_t queues = 0;
  for (const App* app : flow.be_apps) {
    for (const ResourceUse& use : app->uses) {
      on_device_ns += use.on_device_ns;
      queues += use.queues;
    }
  }
  for (const App* app : flow.lc_apps) {
    for (const ResourceUse& use : app->uses) queues += use.queues;
  }
  if (on_device_ns != totals.be_issued_ns) {
    return absl::InternalError(absl::StrCat("BE apps have ", on_device_ns,
                                            " ns on the device, and their tasks sum to ",
                                            totals.be_issued_ns, "."));
  }
  if (queues != flow.backlog.size()) {
    return absl::InternalError(absl::StrCat("Apps count ", queues, " queues with a head, and ",
                                            flow.backlog.size(), " have one."));
  }
  return absl::OkStatus();
}

// The evidence counts the queries in the list.
absl::Status CheckQueries(const Flow& flow) {
  int32_t queries = 0;
  for (const QueryState* query = flow.first_query; query != nullptr; query = query->next) {
    ++queries;
  }
  int32_t of_apps = 0;
  for (const App* app : flow.lc_apps) of_apps += app->evidence.queries;
  if (queries != flow.evidence.queries || of_apps > queries) {
    return absl::InternalError(absl::StrCat("The evidence counts ", flow.evidence.queries,
                                            " queries, ", of_apps, " by app, and ", queries,
                                            " are active."));
  }
  return absl::OkStatus();
}

// A queue counts its queries that wait for a launch.
absl::Status CheckListedQueries(const Flow& flow) {
  int32_t listed = 0;
  for (const QueryState* query = flow.first_query; query != nullptr; query = query->next) {
    listed += IsListed(*query) ? 1 : 0;
  }
  int32_t counted = 0;
  for (const Queue* const queue : flow.backlog) counted += queue->queries_listed;
  if (listed == counted) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("The queues count ", counted,
                                          " queries that wait for a launch, and ", listed, " do."));
}

}  // namespace

absl::Status CheckFlow(const Flow& flow) {
  Totals totals;
  for (int i = 0; i < flow.running_be.size(); ++i) {
    const Task& task = *flow.running_be[i];
    if (absl::Status status = AddTask(task, i, totals); !status.ok()) return status;
    for (int lc = 0; lc < flow.running_lc.size(); ++lc) {
      absl::Status status = CheckEvicted(flow, task, *flow.running_lc[lc]);
      if (!status.ok()) return status;
    }
  }
  for (int i = 0; i < flow.running_lc.size(); ++i) {
    if (absl::Status status = AddTask(*flow.running_lc[i], i, totals); !status.ok()) {
      return status;
    }
  }
  if (totals.units != flow.ledger.UsedUnits()) {
    return absl::InternalError(
        absl::StrCat("The CapSM ledger holds ", CapSmsOf(flow.ledger.UsedUnits()),
                     " CapSMs, and the launches use ", CapSmsOf(totals.units), "."));
  }
  if (flow.ledger.ReservedCapSms() > flow.device->capabilities().profile.sm_count) {
    return absl::InternalError(absl::StrCat("Reservations of ", flow.ledger.ReservedCapSms(),
                                            " CapSMs oversubscribe the device."));
  }
  if (totals.issued_ns != flow.queued_ns) {
    return absl::InternalError(absl::StrCat(
        "T_q is ", flow.queued_ns, " ns, and what is issued sums to ", totals.issued_ns, " ns."));
  }
  if (totals.uncommitted_ns != flow.uncommitted_ns) {
    return absl::InternalError(absl::StrCat("T_q leaves out ", flow.uncommitted_ns,
                                            " ns, and what evictions leave undone sums to ",
                                            totals.uncommitted_ns, " ns."));
  }
  if (absl::Status status = CheckShares(flow, totals); !status.ok()) return status;
  if (absl::Status status = CheckQueries(flow); !status.ok()) return status;
  if (absl::Status status = CheckListedQueries(flow); !status.ok()) return status;
  for (int lane = 0; lane < kMaxLanes; ++lane) {
    const int32_t held = flow.lanes.lane(lane).parts;
    if (held != totals.parts[lane]) {
      return absl::InternalError(absl::StrCat("Lane ", lane, " counts ", held, " launches and has ",
                                              totals.parts[lane], "."));
    }
  }
  if (flow.gate.InFlight() < totals.lc_in_gate) {
    return absl::InternalError(absl::StrCat("The gate counts ", flow.gate.InFlight(),
                                            " LC launches, and ", totals.lc_in_gate,
                                            " are in flight."));
  }
  return CheckHeadViews(flow);
}

}  // namespace gpushare::core
