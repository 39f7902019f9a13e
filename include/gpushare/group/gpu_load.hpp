// What a group predicts of one GPU: when it has done the latency-critical (LC) work that it was
// given, and how fast best-effort (BE) work goes there. Plain arithmetic, without a runtime.
//
// Durations and times are nanoseconds on the clock of the GPU's runtime. "Solo" is a duration alone
// on the whole GPU. Threads: the caller's lock (GroupState::mutex).
#ifndef GPUSHARE_GROUP_GPU_LOAD_HPP_
#define GPUSHARE_GROUP_GPU_LOAD_HPP_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace gpushare {
namespace group_detail {

// The load that counts is that of the last 100 ms: long against a query, short against a change of
// load.
inline constexpr double kLoadMemoryNs = 100e6;
// BE progress counts over 20 ms: some BE items, and short against a change of load. A late query
// counts for as long.
inline constexpr double kShareMemoryNs = 20e6;
// A GPU that makes no progress is not worth less than this, so that a division stays finite.
inline constexpr double kShareMin = 1e-3;

// LC work of one GPU. Begin and then End or Undo come once for each query.
class LcLoad {
 public:
  // How long the LC work in hand still takes.
  int64_t LeftNs(int64_t now_ns) const {
    return in_hand_ == 0 ? 0 : std::max<int64_t>(0, free_ns_ - now_ns);
  }
  // Share of the recent time that LC work takes, 0 to 1.
  double ShareAt(int64_t now_ns) const {
    return std::min(1.0, recent_ns_ * Fade(now_ns - recent_at_ns_) / kLoadMemoryNs);
  }
  int32_t in_hand() const { return in_hand_; }

  // A query of `solo_ns` is sent. Returns when it ends if the LC work in hand runs one by one.
  int64_t Begin(int64_t now_ns, int64_t solo_ns) {
    free_ns_ = now_ns + LeftNs(now_ns) + solo_ns;
    left_ns_ += solo_ns;
    ++in_hand_;
    recent_ns_ = recent_ns_ * Fade(now_ns - recent_at_ns_) + static_cast<double>(solo_ns);
    recent_at_ns_ = now_ns;
    return free_ns_;
  }
  // The query ended. What is left has not begun, at worst.
  void End(int64_t now_ns, int64_t solo_ns) {
    --in_hand_;
    left_ns_ = in_hand_ == 0 ? 0 : left_ns_ - solo_ns;
    free_ns_ = now_ns + left_ns_;
  }
  // The query was not sent after all.
  void Undo(int64_t now_ns, int64_t solo_ns) {
    End(now_ns, solo_ns);
    recent_ns_ = std::max(0.0, recent_ns_ - static_cast<double>(solo_ns));
  }

 private:
  static double Fade(int64_t age_ns) {
    return age_ns <= 0 ? 1 : std::exp(-static_cast<double>(age_ns) / kLoadMemoryNs);
  }

  int64_t free_ns_ = 0;  // when the LC work in hand is done
  int64_t left_ns_ = 0;  // solo time of the queries in hand
  int32_t in_hand_ = 0;
  double recent_ns_ = 0;  // solo time of recent queries, faded to recent_at_ns_
  int64_t recent_at_ns_ = 0;
};

// How much later than predicted queries of an app end on one GPU: a mean of about 16. It fades, so
// that a GPU which one delay has ruled out is tried again.
class Lateness {
 public:
  // Queries that end early do not shorten a wait.
  double AtNs(int64_t now_ns) const { return std::max(0.0, FadedNs(now_ns)); }
  void Note(int64_t now_ns, int64_t late_ns) {
    mean_ns_ = FadedNs(now_ns);
    mean_ns_ += (static_cast<double>(late_ns) - mean_ns_) / 16;
    at_ns_ = now_ns;
  }

 private:
  double FadedNs(int64_t now_ns) const {
    const double age_ns = static_cast<double>(std::max<int64_t>(0, now_ns - at_ns_));
    return mean_ns_ * std::exp(-age_ns / kShareMemoryNs);
  }

  double mean_ns_ = 0;
  int64_t at_ns_ = 0;
};

// BE work of one GPU. Begin and End come once for each item.
class BeLoad {
 public:
  int32_t in_hand() const { return in_hand_; }
  // Bound on how long an item in hand may stay when it is evicted; 0: none is in hand. It is at
  // least that of each, and less than twice the longest one's.
  int64_t LeavesWithinNs() const { return leaves_within_ns_; }
  // BE work done a unit of time: as measured; with no item in hand it gives way to what `lc_share`
  // leaves, so that a GPU which was slow once is tried again. While nothing ends, it sinks.
  double ShareAt(int64_t now_ns, double lc_share) const {
    const double age_ns = static_cast<double>(std::max<int64_t>(0, now_ns - mark_ns_));
    const double weight = !measured_ ? 0 : in_hand_ > 0 ? 1 : std::exp(-age_ns / kLoadMemoryNs);
    double share = weight * share_ + (1 - weight) * (1 - lc_share);
    const int64_t since_ns = now_ns - mark_ns_;
    if (in_hand_ > 0 && since_ns > in_hand_ns_) {
      share = std::min(share, static_cast<double>(in_hand_ns_) / static_cast<double>(since_ns));
    }
    return std::max(share, kShareMin);
  }
  // Until an item of `solo_ns` that is handed over now ends.
  double UntilEndNs(int64_t now_ns, int64_t solo_ns, double lc_share) const {
    return static_cast<double>(in_hand_ns_ + solo_ns) / ShareAt(now_ns, lc_share);
  }

  // `leave_ns`: how long the item may stay when it is evicted.
  void Begin(int64_t now_ns, int64_t solo_ns, int64_t leave_ns) {
    if (in_hand_ == 0) mark_ns_ = now_ns;
    ++in_hand_;
    in_hand_ns_ += solo_ns;
    Stay& stay = stays_[StayOf(leave_ns)];
    stay.longest_ns = stay.count == 0 ? leave_ns : std::max(stay.longest_ns, leave_ns);
    ++stay.count;
    leaves_within_ns_ = std::max(leaves_within_ns_, leave_ns);
  }
  // The item ended after `done_ns` of solo work; 0: it did none that counts.
  void End(int64_t now_ns, int64_t solo_ns, int64_t leave_ns, int64_t done_ns) {
    --in_hand_;
    --stays_[StayOf(leave_ns)].count;
    leaves_within_ns_ = LongestStayNs();
    in_hand_ns_ = in_hand_ == 0 ? 0 : in_hand_ns_ - solo_ns;
    const double took_ns = static_cast<double>(std::max<int64_t>(1, now_ns - mark_ns_));
    if (done_ns > 0) {
      const double share = static_cast<double>(done_ns) / took_ns;
      const double gain = measured_ ? 1 - std::exp(-took_ns / kShareMemoryNs) : 1;
      // Overlap inside SMs gives more than 1; a burst of ends between two readings is none.
      share_ += gain * (std::min(share, 2.0) - share_);
      measured_ = true;
    }
    mark_ns_ = now_ns;
  }

 private:
  // Items in hand whose stay has the same number of bits. The longest is that since there was none.
  struct Stay {
    int32_t count = 0;
    int64_t longest_ns = 0;
  };

  static size_t StayOf(int64_t leave_ns) {
    size_t bits = 0;
    for (; leave_ns > 0; leave_ns >>= 1) ++bits;
    return bits;
  }
  int64_t LongestStayNs() const {
    for (size_t bits = stays_.size(); in_hand_ > 0 && bits-- > 0;) {
      if (stays_[bits].count > 0) return stays_[bits].longest_ns;
    }
    return 0;
  }

  int32_t in_hand_ = 0;
  int64_t in_hand_ns_ = 0;
  std::array<Stay, 64> stays_;  // by number of bits
  int64_t leaves_within_ns_ = 0;
  int64_t mark_ns_ = 0;  // since when the progress of the next item counts
  double share_ = 0;
  bool measured_ = false;
};

}  // namespace group_detail
}  // namespace gpushare

#endif  // GPUSHARE_GROUP_GPU_LOAD_HPP_
