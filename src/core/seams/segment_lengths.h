// The longer lengths of a graph that is cut into segments: groups of them that are launched as one.
//
// Short segments cost a graph of short nodes a tenth of its speed, and only an LC app with a tight
// bound needs them. So a graph has several cuts beside its own: groups of up to 100 us, 400 us and
// 2 ms, and all of it. The cuts are nested: where a group of one begins, so does one of each
// shorter cut. A run may therefore change its length at each boundary that both lengths have: to a
// shorter one at the end of what is on the device, two groups at most or a whole graph, and to a
// longer one where a group of it begins.
// Progress is counted in the graph's own segments, whatever length runs.
//
//   cuts = LongerCuts(durations_ns, segments, segment_ns);   // once
//   step = StepAt(cuts, next, next, longest_ns);             // what is launched next
//
// Pure; any thread.

#ifndef GPUSHARE_SRC_CORE_SEAMS_SEGMENT_LENGTHS_H_
#define GPUSHARE_SRC_CORE_SEAMS_SEGMENT_LENGTHS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "src/core/base/tuning.h"

namespace gpushare::core {

// How long groups may be, ascending; beside these there is the whole graph. The first is for graphs
// whose own segments are shorter than those of others.
inline constexpr std::array<int64_t, 1 + kLongerSegmentsNs.size()> kGroupLengthsNs = {
    kSegmentNs, kLongerSegmentsNs[0], kLongerSegmentsNs[1]};

struct LongerCut {
  int64_t length_ns = 0;       // that a group of several segments has at most; kNever: the graph
  std::vector<size_t> begins;  // the first segment of each group
};

// Longest first, the last of them with groups of more than one segment. `durations_ns`: of each of
// the segments; empty: unknown, and each counts as segment_ns.
std::vector<LongerCut> LongerCuts(absl::Span<const int64_t> durations_ns, size_t segments,
                                  int64_t segment_ns);

// Segments that are launched as one.
struct SegmentStep {
  static constexpr size_t kOwn = static_cast<size_t>(-1);

  size_t begin = 0;   // the first of them
  size_t end = 0;     // behind the last of them
  size_t cut = kOwn;  // which of the longer cuts has the group; kOwn: it is one segment
  size_t group = 0;   // its number in that cut
};

// The step that has `segment`, of a run that has the length since the segment `since`: the longest
// group that is at most longest_ns long and does not begin before `since`. `segments`: all of them.
SegmentStep StepAt(absl::Span<const LongerCut> cuts, size_t segment, size_t since, size_t segments,
                   int64_t longest_ns);

// The length in force where segments of segment_ns may be up to longest_ns long.
int64_t LengthInForce(int64_t segment_ns, int64_t longest_ns);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_SEAMS_SEGMENT_LENGTHS_H_
