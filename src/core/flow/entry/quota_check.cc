// See quota_check.h.

#include "src/core/flow/entry/quota_check.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "src/core/checks/sm_limit.h"

namespace gpushare::core {
namespace {

int32_t SmallestBeSide(const Flow& flow) {
  int32_t smallest = flow.device->capabilities().profile.sm_count;
  for (const SplitView& split : flow.lanes.splits()) smallest = std::min(smallest, split.be_sms);
  return smallest;
}

bool RunsInSegments(TaskKind kind, const KernelDesc* kernel) {
  return kind == TaskKind::kGraph && kernel != nullptr && kernel->segments() > 1;
}

bool HasWorkers(TaskKind kind, const KernelDesc* kernel) {
  return kind == TaskKind::kKernel && kernel != nullptr && kernel->evictable;
}

}  // namespace

absl::Status CheckQuota(const Flow& flow, const App& app, TaskKind kind, const KernelDesc* kernel) {
  const int32_t quota = app.reserved_capsms.load(std::memory_order_relaxed);
  const int32_t reserved = flow.lc_reserved_capsms.load(std::memory_order_relaxed);
  if ((quota == 0 && reserved == 0) || kind == TaskKind::kMemcpy) return absl::OkStatus();
  const bool eviction = flow.device->capabilities().eviction;
  const bool workers = eviction && HasWorkers(kind, kernel);
  if (QuotaBoundsWorkers(quota, app.packed.load(std::memory_order_relaxed), workers)) {
    return absl::OkStatus();
  }
  const int32_t sms = flow.device->capabilities().profile.sm_count;
  const bool evictable = workers || (eviction && RunsInSegments(kind, kernel));
  const int32_t limit = SmLimit({sms, sms - reserved}, quota, evictable);
  const bool confinable = kernel == nullptr || kernel->confinable;
  const int32_t need = confinable ? SmallestBeSide(flow) : sms;
  if (need <= limit) return absl::OkStatus();
  const std::string name = kernel == nullptr ? "Opaque work" : absl::StrCat("'", kernel->name, "'");
  return absl::FailedPreconditionError(
      absl::StrCat(name, " needs ", need, " SMs, the least that it can be held to, and ",
                   limit == quota ? "the quota of" : "the reservations leave", " BE app '",
                   app.options.name, limit == quota ? "' is " : "' ", limit, "."));
}

}  // namespace gpushare::core
