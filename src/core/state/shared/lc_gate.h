// The gate between the LC fast path and the BE launcher: no eviction is lost, whoever is faster.
//
// Where in the flow: an LC submitter launches from its own thread while the scheduler's launch
// stage may be about to launch BE work on the same SMs. The gate orders the two without a lock.
//
//   LC caller                                 BE launcher
//   1. EnterLc()                              1. e = ReadLaunchEpoch(lane)
//   2. read the published route               2. if (!IsOpen(lane)) do not launch
//   3. w = RaiseEpoch(lane), device Evict(w)  3. launch on `lane` at epoch e
//      for every lane of the route
//   4. launch LC
//   5. once the LC work is complete: LeaveLc()
//
// Invariant: a BE launch that is alive while LC work of its lane's route is in flight has been
// evicted. Proof: a launch made at epoch e leaves once word - e >= 0 (device.h). If step 1 of the
// launcher reads the word before the caller's raise, then e = word + 1 <= raised word, so the
// launch leaves, even if it reaches the device after the eviction. If it reads the raised word,
// then the caller entered before, so step 2 finds the gate closed until that caller has left. With
// the launcher's steps 1 and 2 swapped, a caller fits between them and the eviction is lost: the
// test finds that interleaving.
//
// Empty lanes need neither raise nor Evict, if the launcher counts itself on the lane before step 1
// and the caller reads that count after it entered. A caller that reads 0 has entered before the
// launcher checks the gate, so the launcher finds it closed. A route may close tens of lanes, most
// of them empty. Without such a count a caller raises every lane of the route, also one that looks
// empty: the launch of step 3 may not be visible yet. A caller's device Evict
// is issued before its LeaveLc, so an older word never meets a newer launch.
//
// Chains: a graph in segments is one launch on its lane, at one epoch e, and the device starts its
// segments one after another (kSegments in device.h). Some of them are workers that may leave with
// block tasks undone. The chain rule is an invariant of the lane: the first node of a segment
// starts only when the segment before it is done. Proof: the device launches nothing behind workers
// that have not left, and afterwards the next segment only if they left no block task. Ordinary
// segments are ordered by the stream. The lane takes no other launch until this one is reported,
// and the counter none, so nobody else launches a segment of the graph. No eviction is lost either:
// workers and device compare with the same word and the same e. An eviction before the device's
// comparison stops it; one behind it meets the segment that was just launched, as above for any
// launch at e. The rest of a segment is on the counter, and a later launch begins with it.
//
// Routes: callers share the set of lanes that they close. The set may grow at any time; it shrinks
// only when no caller is in flight (NarrowLanes), because such a caller may still act on the route
// that it read before.
//
// Memory orders: steps 1-3 of both sides are message passing (enter before raise, epoch before
// gate), for which release and acquire suffice. Three pairs are store buffers, where each side
// writes one word and then reads the other's: EnterLc and the route against its publication and
// NarrowLanes; EnterLc and the lane's count against that count and IsOpen; EnterLc and the count of
// open regions (verbs/evict) against that count and InFlight (flow/entry/region). Those are
// seq_cst, on the other side too. On x86-64 that costs nothing: read-modify-writes are locked and
// loads are plain either way.
//
// Threads: EnterLc, RaiseEpoch, LeaveLc from any; ReadLaunchEpoch and IsOpen from the BE launcher;
// WidenLanes from the planner and from callers inside the gate; NarrowLanes from the planner. A
// caller's own count keeps the set from narrowing below what it widened. Nothing blocks or
// allocates.

#ifndef GPUSHARE_SRC_CORE_STATE_SHARED_LC_GATE_H_
#define GPUSHARE_SRC_CORE_STATE_SHARED_LC_GATE_H_

#include <array>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>

#include "src/core/base/limits.h"
#include "src/core/base/types.h"

namespace gpushare::core {

class LcGate {
 public:
  static_assert(kMaxLanes <= 64, "a set of lanes is one 64-bit mask");

  LcGate() = default;
  LcGate(const LcGate&) = delete;
  LcGate& operator=(const LcGate&) = delete;

  // LC callers.

  void EnterLc() {
    // seq_cst: before the caller's read of its route; see NarrowLanes.
    in_flight_.fetch_add(1, std::memory_order_seq_cst);
  }

  // Returns the new word, which the caller gives to Device::Evict.
  uint64_t RaiseEpoch(LaneIndex lane) {
    // release: whoever reads the raised word also sees that its caller entered. seq_cst: before the
    // caller's read of the lane's count.
    return epochs_[Index(lane)].fetch_add(1, std::memory_order_seq_cst) + 1;
  }

  void LeaveLc() {
    // release: whoever finds the gate open also sees what the caller did inside.
    [[maybe_unused]] const int64_t before = in_flight_.fetch_sub(1, std::memory_order_release);
    assert(before > 0 && "LeaveLc without EnterLc");
  }

  // The BE launcher.

  // First. The epoch of a launch made now: one above the word, so that the next raise reaches it.
  uint64_t ReadLaunchEpoch(LaneIndex lane) const {
    // acquire: the gate check below may not be read before this. seq_cst: after the launcher
    // counted itself on the lane.
    return epochs_[Index(lane)].load(std::memory_order_seq_cst) + 1;
  }

  // Second. False while LC work that closes this lane is in flight. `own` callers do not count: the
  // LC tasks that are parts of the same launch.
  bool IsOpen(LaneIndex lane, int64_t own = 0) const {
    // acquire: whoever finds the gate open also sees what its callers did. seq_cst: after the
    // launcher counted itself on the lane.
    if (in_flight_.load(std::memory_order_seq_cst) <= own) return true;
    return (lanes_.load(std::memory_order_acquire) >> Index(lane) & 1) == 0;
  }

  // The planner.

  // Adds lanes to those that callers close; call it before publishing a route that needs them.
  void WidenLanes(uint64_t lanes) { lanes_.fetch_or(lanes, std::memory_order_seq_cst); }

  // Cuts the closed lanes to `lanes`, after routes that need no others were published (seq_cst).
  // False, and nothing changes, while LC work is in flight: its caller may have read an older
  // route. A caller that enters after this check reads the new route.
  bool NarrowLanes(uint64_t lanes) {
    if (in_flight_.load(std::memory_order_seq_cst) != 0) return false;
    lanes_.store(lanes, std::memory_order_seq_cst);
    return true;
  }

  uint64_t ClosedLanes() const { return lanes_.load(std::memory_order_seq_cst); }

  // LC launches in flight. seq_cst: a region counts itself as open, then reads this.
  int64_t InFlight() const { return in_flight_.load(std::memory_order_seq_cst); }

  // The word that was raised last.
  uint64_t Epoch(LaneIndex lane) const {
    return epochs_[Index(lane)].load(std::memory_order_acquire);
  }

  // Before the lane's first launch only: lets a test start next to the wrap-around.
  void StartEpoch(LaneIndex lane, uint64_t word) {
    epochs_[Index(lane)].store(word, std::memory_order_release);
  }

 private:
  static size_t Index(LaneIndex lane) {
    assert(lane >= 0 && lane < kMaxLanes && "not a lane");
    return static_cast<size_t>(lane);
  }

  // On lines of their own: callers write the count, the launcher polls it for every BE launch.
  alignas(64) std::atomic<int64_t> in_flight_{0};
  alignas(64) std::atomic<uint64_t> lanes_{0};
  alignas(64) std::array<std::atomic<uint64_t>, kMaxLanes> epochs_{};
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_STATE_SHARED_LC_GATE_H_
