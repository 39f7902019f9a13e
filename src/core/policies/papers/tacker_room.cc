// Workers, homes and partners within quotas and reservations (tacker_room.h).

#include "src/core/policies/papers/tacker_room.h"

#include <algorithm>
#include <cmath>

#include "src/core/policies/parts/capsm_eviction.h"
#include "src/core/policies/parts/launch_form.h"

namespace gpushare::core {
namespace {

// Workers of the task's part of a fused launch on the whole device.
int64_t WorkersIn(const Snapshot& snapshot, const FusedKernelDesc& fused, const HeadView& task) {
  const bool tensor = fused.tensor_part == task.kernel->id;
  return int64_t{snapshot.sm_count} * std::max(1, fused.blocks_per_sm) *
         std::max(1, tensor ? fused.tensor_blocks : fused.cuda_blocks);
}

bool AnyBeRuns(const Snapshot& snapshot) {
  return std::any_of(snapshot.running.begin(), snapshot.running.end(),
                     [](const RunningView& running) { return IsBeCompute(running.task); });
}

}  // namespace

TackerRoom::TackerRoom(const Snapshot& snapshot)
    : snapshot_(snapshot), quotas_(snapshot, kNoSplit), reserved_(ReservedCapSms(snapshot)) {
  if (!any()) return;
  unreserved_ = snapshot.sm_count - reserved_;
  for (const BeAppView& app : snapshot.be_apps) unreserved_ -= app.used_capsms;
  // The ledger does not count opaque work: it has no workers.
  for (const RunningView& running : snapshot.running) {
    if (!IsBeCompute(running.task) || running.task.kind != TaskKind::kOpaque) continue;
    for (const PartView& part : running.parts) {
      if (part.place < 0) continue;
      const double sms = snapshot.places[static_cast<size_t>(part.place)].sms;
      taken_[static_cast<size_t>(running.task.app)] += sms;
      unreserved_ -= sms;
    }
  }
}

bool TackerRoom::IsLimited(const HeadView& be) const {
  return reserved_ > 0 || snapshot_.be_apps[static_cast<size_t>(be.app)].quota_capsms > 0;
}

double TackerRoom::LeftCapSms(const HeadView& be) const {
  const auto app = static_cast<size_t>(be.app);
  const BeAppView& view = snapshot_.be_apps[app];
  double left = snapshot_.sm_count;
  if (reserved_ > 0) left = unreserved_;
  if (view.quota_capsms > 0) {
    left = std::min(left, view.quota_capsms - view.used_capsms - taken_[app]);
  }
  return left;
}

int32_t TackerRoom::WorkersOf(const HeadView& be) const {
  const double workers = std::floor(LeftCapSms(be) * WorkersPerCapSm(be) + kCapSmEpsilon);
  const auto blocks = static_cast<double>(std::max<int64_t>(be.blocks_left, 1));
  return static_cast<int32_t>(std::clamp(workers, 0.0, blocks));
}

const FusedView* TackerRoom::Find(KernelId fused) const {
  for (const FusedView& view : snapshot_.fused) {
    if (view.kernel->id == fused) return &view;
  }
  return nullptr;
}

bool TackerRoom::Allows(const HeadView& lc, const HeadView& be, const Overlap& overlap) const {
  if (!any() || !IsLimited(be)) return true;
  if (snapshot_.be_apps[static_cast<size_t>(be.app)].packed) return false;  // it has a home
  const int32_t left = WorkersOf(be);
  if (overlap.be_workers_per_sm > 0) {
    return left >= overlap.be_workers_per_sm * snapshot_.sm_count;
  }
  const FusedView* const view = Find(overlap.fused_kernel);
  if (left <= 0 || view == nullptr || !CanBeEvicted(snapshot_, be)) return false;
  return WorkersIn(snapshot_, *view->kernel, lc) >= int64_t{reserved_} * WorkersPerCapSm(lc);
}

TackerRoom::Partner TackerRoom::PartnerOf(const HeadView& be, const Overlap& overlap) const {
  const FusedView* const view = any() && IsLimited(be) ? Find(overlap.fused_kernel) : nullptr;
  if (view == nullptr) return {};
  const int64_t all = WorkersIn(snapshot_, *view->kernel, be);
  const int32_t left = WorkersOf(be);
  if (left >= all) return {};
  return {left, static_cast<double>(left) / static_cast<double>(all)};
}

// What no worker form bounds keeps to a place within what is left. Work that none ever holds takes
// its turn alone.
bool TackerRoom::Fit(const HeadView& be, PlannedLaunch& launch, PlannedHold& hold) const {
  if (!any() || !IsLimited(be)) return true;
  hold = quotas_.HoldOf(be);
  const bool packed = snapshot_.be_apps[static_cast<size_t>(be.app)].packed;
  if (EvictableForm(snapshot_, be) == Form::kWorkers && !packed) {
    launch.form = Form::kWorkers;
    launch.lane_class = LaneClass::kBe;
    launch.workers = WorkersOf(be);
    return launch.workers > 0;
  }
  const auto left = static_cast<int32_t>(std::floor(LeftCapSms(be) + kCapSmEpsilon));
  const int32_t split = be.confinable ? SplitWithin(snapshot_, left) : kNoSplit;
  if (split != kNoSplit) {
    launch.form = EvictableForm(snapshot_, be);
    launch.place = snapshot_.splits[static_cast<size_t>(split)].be_place;
    launch.lane_class = LaneClass::kBe;
    return true;
  }
  const int32_t limit = std::min(quotas_.LimitOf(be), snapshot_.sm_count - reserved_);
  const bool has_home = be.confinable && SplitWithin(snapshot_, limit) != kNoSplit;
  return !has_home && snapshot_.queries.empty() && !AnyBeRuns(snapshot_);
}

void TackerRoom::Take(const HeadView& be, const PlannedLaunch& launch) {
  if (!any()) return;
  double capsms = snapshot_.places[static_cast<size_t>(launch.place)].sms;
  if (launch.workers > 0) capsms = static_cast<double>(launch.workers) / WorkersPerCapSm(be);
  taken_[static_cast<size_t>(be.app)] += capsms;
  unreserved_ -= capsms;
}

}  // namespace gpushare::core
