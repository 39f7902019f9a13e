// Rates and ends of copies. See link.h.

#include "src/sim/physics/link.h"

#include <algorithm>
#include <cmath>

#include "src/sim/physics/tuning.h"

namespace gpushare::sim {
namespace {

constexpr size_t kDirections = 4;
// A copy with less than this left is done.
constexpr double kDoneBytes = 0.5;

bool IsInline(const Link::Copy& copy) { return copy.pinned && copy.bytes_left <= kInlineCopyBytes; }

}  // namespace

Link::Link(const core::DeviceProfile& profile, size_t copies_max) : profile_(profile) {
  copies_.reserve(copies_max);
}

void Link::Add(core::TimeNs now, const Copy& copy) {
  Sync(now);
  copies_.push_back(copy);
  SetRates(now);
}

void Link::Remove(core::TimeNs now, int32_t launch) {
  Sync(now);
  copies_.erase(std::remove_if(copies_.begin(), copies_.end(),
                               [launch](const Copy& copy) { return copy.launch == launch; }),
                copies_.end());
  SetRates(now);
}

bool Link::TakeFinished(core::TimeNs now, Copy& finished) {
  if (next_ns_ > now) return false;
  Sync(now);
  auto done = std::find_if(copies_.begin(), copies_.end(),
                           [](const Copy& copy) { return copy.bytes_left <= kDoneBytes; });
  const bool found = done != copies_.end();
  if (found) {
    finished = *done;
    copies_.erase(done);
  }
  SetRates(now);
  return found;
}

core::LinkUse Link::Use() const {
  core::LinkUse use = 0;
  for (const Copy& copy : copies_) {
    if (copy.pinned) use |= core::LinkUseOf(copy.direction);
  }
  return use;
}

void Link::Clear() {
  copies_.clear();
  next_ns_ = core::kNever;
}

void Link::Sync(core::TimeNs now) {
  const double elapsed = static_cast<double>(now - synced_ns_);
  synced_ns_ = now;
  for (Copy& copy : copies_) copy.bytes_left -= copy.rate * elapsed;
}

void Link::SetRates(core::TimeNs now) {
  std::array<bool, kDirections> pinned_moves{};
  std::array<int, kDirections> pageable{};
  for (Copy& copy : copies_) {
    const auto direction = static_cast<size_t>(copy.direction);
    copy.rate = 0;
    if (!copy.pinned) {
      ++pageable[direction];
    } else if (IsInline(copy)) {
      copy.rate = profile_.pinned_bytes_per_ns;
    } else if (!pinned_moves[direction]) {
      pinned_moves[direction] = true;
      copy.rate = profile_.pinned_bytes_per_ns;
    }
  }
  double both_ways = 0;
  for (Copy& copy : copies_) {
    const auto direction = static_cast<size_t>(copy.direction);
    if (!copy.pinned && !pinned_moves[direction]) {
      const double total = copy.direction == core::CopyDirection::kDeviceToHost
                               ? profile_.pageable_d2h_bytes_per_ns
                               : profile_.pageable_h2d_bytes_per_ns;
      copy.rate = total / pageable[direction];
    }
    if (copy.direction != core::CopyDirection::kPeer) both_ways += copy.rate;
  }
  const double scale = std::min(1.0, profile_.duplex_bytes_per_ns / std::max(both_ways, 1e-9));
  next_ns_ = core::kNever;
  for (Copy& copy : copies_) {
    if (copy.direction != core::CopyDirection::kPeer) copy.rate *= scale;
    copy.rate /= copy.slowness;
    if (copy.bytes_left <= kDoneBytes) {
      next_ns_ = now;
      continue;
    }
    if (copy.rate <= 0) continue;
    if (copy.start_ns == core::kNever) copy.start_ns = now;
    const double left_ns = std::ceil(copy.bytes_left / copy.rate);
    next_ns_ =
        std::min(next_ns_, now + std::max<core::TimeNs>(1, static_cast<core::TimeNs>(left_ns)));
  }
}

}  // namespace gpushare::sim
