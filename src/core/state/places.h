// The places and splits that plans may name, and which of them the device has made.
//
// An index names the same SMs from start to end, whether the device has the place or not, so
// nothing that holds one ever means others. A split is a view of two places; the partitions of a
// plan are named when it is made. The device makes a place when a plan first wants it, and ends it
// when none has for long (flow/places.h).
//
//   absent -> making -> ready -> ending -> absent
//
// Invariants: a launch goes only to a place that is ready. At most kLivePlacesMax places are not
// absent, unless all were asked for (KeepAll).
// Threads: views and splits of any that planned; the rest under the lock of Tick. Nothing
// allocates but Name.

#ifndef GPUSHARE_SRC_CORE_STATE_PLACES_H_
#define GPUSHARE_SRC_CORE_STATE_PLACES_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "src/core/base/types.h"
#include "src/core/seams/device.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

enum class PlaceState : uint8_t { kAbsent = 0, kMaking, kReady, kEnding };

struct NamedPlace {
  PlaceSpec spec;
  PlaceState state = PlaceState::kAbsent;
  // It never ends: one of its lanes hung, or the device could not take back half of it.
  bool stays = false;
  bool refusal_reported = false;
  bool takes_lc = false;
  TimeNs used_ns = 0;        // when a plan last wanted it, or work was last on it
  TimeNs not_before_ns = 0;  // the device refused: it is not asked before that
};

class Places {
 public:
  // Names the whole device and, with partitions, the sides of at most `splits_max` splits. A split
  // cuts the device into an LC side, groups from the front, and a BE side. The SMs that whole
  // groups leave over go to BE, or to LC where the profile says so (decision 0008). `at_once`: the
  // device makes a place in no time, so every place counts as ready.
  void Name(const DeviceCapabilities& capabilities, int splits_max, bool at_once);

  // The place of these SMs, named now if it was not; kNoPlace: kMaxPlaces are named.
  PlaceIndex NameSet(const PlaceSpec& spec, int32_t sms);
  // The place of these SMs that LC work may use; kNoPlace: none is named.
  PlaceIndex FindSet(const PlaceSpec& spec) const;

  absl::Span<const PlaceView> views() const {
    return absl::MakeConstSpan(views_).first(static_cast<size_t>(count()));
  }
  const PlaceView& view(PlaceIndex place) const { return views_[static_cast<size_t>(place)]; }
  absl::Span<const SplitView> splits() const { return splits_; }
  PlaceIndex count() const { return count_.load(std::memory_order_acquire); }
  // Whether LC work may go there: the device makes an LC lane with it.
  bool TakesLc(PlaceIndex place) const { return at(place).takes_lc; }
  bool Has(PlaceIndex place) const { return place >= 0 && place < count(); }
  bool at_once() const { return at_once_; }
  const NamedPlace& at(PlaceIndex place) const { return places_[static_cast<size_t>(place)]; }
  NamedPlace& at(PlaceIndex place) { return places_[static_cast<size_t>(place)]; }
  bool IsMade(PlaceIndex place) const { return at(place).state == PlaceState::kReady; }
  // The split with the largest BE side of at most `sms` SMs; null: none is so small.
  const SplitView* SplitWithin(int32_t sms) const;

  // What the plan in force names, a bit each: it counts as used now.
  void Want(uint64_t places, TimeNs now_ns);
  uint64_t wanted() const { return wanted_; }
  // Whether none of the places ends, and none is made on demand: a graph was captured or measured
  // in all of them, or they were asked for at the start.
  void KeepAll(bool keep) { kept_ += keep ? 1 : -1; }
  bool keeps_all() const { return kept_ > 0; }
  int keepers() const { return kept_; }

  // The next place to make; kNoPlace: none.
  PlaceIndex NextToMake(TimeNs now_ns) const;
  // Places that are not absent, the whole device aside.
  int live() const;
  void SetState(PlaceIndex place, PlaceState state);
  void Refuse(PlaceIndex place, TimeNs not_before_ns);
  // Places that a refusal kept from being asked for may be asked for again.
  void ForgetRefusals(TimeNs now_ns);

 private:
  PlaceIndex Add(const PlaceSpec& spec, int32_t sms);
  void FindOverlaps();

  bool at_once_ = false;
  int kept_ = 0;
  uint64_t wanted_ = 0;
  bool any_refused_ = false;
  std::vector<NamedPlace> places_;
  // As long as there may ever be places: submitters read a view while another one is named.
  std::array<PlaceView, kMaxPlaces> views_;
  std::atomic<PlaceIndex> count_{0};
  std::vector<SplitView> splits_;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_STATE_PLACES_H_
