// Nests the longer cuts of a graph. See segment_lengths.h.

#include "src/core/seams/segment_lengths.h"

#include <algorithm>
#include <utility>

#include "src/core/base/limits.h"
#include "src/core/base/tuning.h"
#include "src/core/base/types.h"

namespace gpushare::core {
namespace {

// Joins neighbouring groups as long as they fit into length_ns together. `durations_ns`: of the
// groups, and then of what they are joined to.
std::vector<size_t> Join(const std::vector<size_t>& begins, std::vector<int64_t>& durations_ns,
                         int64_t length_ns) {
  std::vector<size_t> joined;
  std::vector<int64_t> sums_ns;
  for (size_t i = 0; i < begins.size(); ++i) {
    if (joined.empty() || sums_ns.back() + durations_ns[i] > length_ns) {
      joined.push_back(begins[i]);
      sums_ns.push_back(0);
    }
    sums_ns.back() += durations_ns[i];
  }
  durations_ns = std::move(sums_ns);
  return joined;
}

}  // namespace

std::vector<LongerCut> LongerCuts(absl::Span<const int64_t> durations_ns, size_t segments,
                                  int64_t segment_ns) {
  std::vector<LongerCut> cuts;
  if (segments < 2) return cuts;
  std::vector<size_t> begins(segments);
  for (size_t i = 0; i < segments; ++i) begins[i] = i;
  std::vector<int64_t> lengths_ns(durations_ns.begin(), durations_ns.end());
  if (lengths_ns.empty()) lengths_ns.assign(segments, segment_ns);
  for (const int64_t length_ns : kGroupLengthsNs) {
    if (length_ns <= segment_ns || begins.size() == 1) continue;
    std::vector<size_t> joined = Join(begins, lengths_ns, length_ns);
    if (joined.size() == begins.size()) continue;  // no two of them fit
    begins = joined;
    cuts.push_back({length_ns, std::move(joined)});
  }
  if (begins.size() > 1) cuts.push_back({kNever, {0}});
  std::reverse(cuts.begin(), cuts.end());
  return cuts;
}

SegmentStep StepAt(absl::Span<const LongerCut> cuts, size_t segment, size_t since, size_t segments,
                   int64_t longest_ns) {
  for (size_t c = 0; c < cuts.size(); ++c) {
    const std::vector<size_t>& begins = cuts[c].begins;
    if (cuts[c].length_ns > longest_ns || begins.empty()) continue;
    const auto after = std::upper_bound(begins.begin(), begins.end(), segment);
    const size_t begin = *(after - 1);
    if (begin < since) continue;
    const size_t end = after == begins.end() ? segments : *after;
    const auto group = static_cast<size_t>(after - begins.begin()) - 1;
    if (end == begin + 1) break;  // so are those of the shorter cuts
    return {begin, end, c, group};
  }
  return {segment, segment + 1, SegmentStep::kOwn, 0};
}

int64_t LengthInForce(int64_t segment_ns, int64_t longest_ns) {
  return std::max(segment_ns, std::min(longest_ns, kMaxDurationNs));
}

}  // namespace gpushare::core
