// Predicted durations of overlapping tasks (overlap_pair.h).

#include "src/core/policies/papers/overlap_pair.h"

#include <algorithm>
#include <cmath>

#include "src/core/policies/parts/launch_form.h"

namespace gpushare::core {
namespace {

// As an integer; a prediction beyond a day is as good as a day.
int64_t RoundNs(double ns) {
  constexpr auto kDay = static_cast<double>(kMaxDurationNs) * 24;
  return ns >= kDay ? kMaxDurationNs * 24 : static_cast<int64_t>(std::lround(std::max(ns, 0.0)));
}

Overlap WithErrors(double pair_ns, double relative_error, const HeadView& be) {
  Overlap overlap;
  overlap.pair_ns = RoundNs(pair_ns);
  overlap.error_ns =
      RoundNs(std::hypot(relative_error * pair_ns, static_cast<double>(be.remaining.error_ns)));
  return overlap;
}

// T_k_fuse: the curve times the TC part's own duration.
Overlap FusedOverlap(const FusedView& fused, const HeadView& lc, const HeadView& be) {
  const bool lc_is_tensor = fused.kernel->tensor_part == lc.kernel->id;
  const auto tensor_ns = static_cast<double>((lc_is_tensor ? lc : be).remaining.duration_ns);
  const auto cuda_ns = static_cast<double>((lc_is_tensor ? be : lc).remaining.duration_ns);
  Overlap overlap =
      WithErrors(fused.curve.At(cuda_ns / tensor_ns) * tensor_ns, fused.curve.error, be);
  overlap.fused_kernel = fused.kernel->id;
  return overlap;
}

// Speeds of the LC and the BE task while both run.
Overlap CoResidentOverlap(const HeadView& lc, const HeadView& be, double lc_speed, double be_speed,
                          double error) {
  const auto lc_ns = static_cast<double>(lc.remaining.duration_ns);
  const double be_ends_ns = static_cast<double>(be.remaining.duration_ns) / be_speed;
  const double pair_ns = std::max(be_ends_ns, lc_ns + (1 - lc_speed) * be_ends_ns);
  return WithErrors(pair_ns, error, be);
}

bool IsKernel(const HeadView& head) {
  return head.kind == TaskKind::kKernel && head.kernel != nullptr;
}

// Whether measurements say that no fused kernel of these two parts gains.
bool PairFailed(const Snapshot& snapshot, KernelId tensor, KernelId cuda) {
  bool measured = false;
  for (const FusedView& fused : snapshot.fused) {
    if (fused.kernel->tensor_part != tensor || fused.kernel->cuda_part != cuda) continue;
    if (!fused.curve.trained || FusedGains(fused.curve)) return false;
    measured = true;
  }
  return measured;
}

}  // namespace

bool FusedGains(const FusedCurveView& curve) {
  return curve.At(curve.inflection) < 1 + curve.inflection;
}

int64_t FusedGainNs(const FusedView& fused, KernelId lc, int64_t lc_ns, int64_t be_ns,
                    bool followed) {
  const FusedCurveView& curve = fused.curve;
  if (!(curve.inflection > 0) || lc_ns <= 0) return 0;
  const auto lc_time = static_cast<double>(std::min(lc_ns, kMaxDurationNs));
  const auto be_time = static_cast<double>(std::min(be_ns, kMaxDurationNs));
  const bool lc_is_tensor = fused.kernel->tensor_part == lc;
  const double opportune = lc_is_tensor ? lc_time * curve.inflection : lc_time / curve.inflection;
  const double partner = followed ? std::max(be_time, opportune) : be_time;
  if (!(partner > 0)) return 0;
  const double tensor = lc_is_tensor ? lc_time : partner;
  const double cuda = lc_is_tensor ? partner : lc_time;
  return static_cast<int64_t>(tensor + cuda - curve.At(cuda / tensor) * tensor);
}

bool IsPruned(const Snapshot& snapshot, const FusedView& fused) {
  if (fused.curve.trained) return !FusedGains(fused.curve);
  return std::any_of(snapshot.fused.begin(), snapshot.fused.end(), [&](const FusedView& other) {
    return other.kernel->cuda_part == fused.kernel->cuda_part && other.curve.trained &&
           PairFailed(snapshot, other.kernel->tensor_part, other.kernel->cuda_part);
  });
}

OverlapFinder::OverlapFinder(const Snapshot& snapshot, const KernelRow& lc)
    : snapshot_(snapshot), lc_(lc) {
  if (!lc.kernel) return;
  for (const FusedView& fused : snapshot.fused) {
    const bool lc_is_tensor = fused.kernel->tensor_part == lc.kernel;
    if (!lc_is_tensor && fused.kernel->cuda_part != lc.kernel) continue;
    const KernelId other = lc_is_tensor ? fused.kernel->cuda_part : fused.kernel->tensor_part;
    if (!fused_.TryAdd({other, &fused, IsPruned(snapshot, fused)})) return;
  }
}

absl::Span<const CoScheduleOption> OverlapFinder::CoSchedulesWith(const HeadView& be) const {
  if (!CanBeEvicted(snapshot_, be)) return {};  // it has no workers
  return snapshot_.co_schedules.Of(lc_.overlap_index, be.overlap_index);
}

void OverlapFinder::Find(const HeadView& lc, const HeadView& be, Overlaps& found) const {
  found.Clear();
  if (!IsKernel(lc) || !IsKernel(be)) return;
  if (lc.remaining.duration_ns <= 0 || be.remaining.duration_ns <= 0) return;
  for (const Fused& fused : fused_) {
    if (fused.other != be.kernel->id || fused.pruned) continue;
    if (found.size() == kFusedOfPairMax) break;
    found.TryAdd(FusedOverlap(*fused.view, lc, be));
  }
  const size_t lc_side = lc_.overlap_index >= be.overlap_index ? 0 : 1;
  for (const CoScheduleOption& option : CoSchedulesWith(be)) {
    const double lc_speed = option.speed[lc_side];
    const double be_speed = option.speed[1 - lc_side];
    if (!(option.profit > 0) || !(lc_speed > 0) || !(be_speed > 0)) continue;
    Overlap overlap = CoResidentOverlap(lc, be, lc_speed, be_speed, option.speed_error);
    overlap.be_workers_per_sm = option.workers_per_sm[1 - lc_side];
    found.TryAdd(overlap);
  }
}

bool OverlapFinder::FusedEverGains(const HeadView& be) const {
  return IsKernel(be) && std::any_of(fused_.begin(), fused_.end(), [&](const Fused& fused) {
           return fused.other == be.kernel->id && !fused.pruned && FusedGains(fused.view->curve);
         });
}

bool OverlapFinder::EverGains(const HeadView& be) const {
  if (!IsKernel(be)) return false;
  if (FusedEverGains(be)) return true;
  const auto options = CoSchedulesWith(be);
  return std::any_of(options.begin(), options.end(),
                     [](const CoScheduleOption& option) { return option.profit > 0; });
}

}  // namespace gpushare::core
