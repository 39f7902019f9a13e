// Rows of pairs over the load; see pair_table.h.

#include "src/models/placement/pair_table.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace gpushare::models::placement {

PairTable::PairTable(const std::vector<PairRow>& rows) {
  for (const PairRow& row : rows) {
    points_[row.lc][row.be].push_back(
        {row.load, {row.p99_ratio, row.p99_error, row.be_rate, row.be_error}});
  }
  for (auto& [lc, by_be] : points_) {
    for (auto& [be, points] : by_be) {
      std::stable_sort(points.begin(), points.end(),
                       [](const Point& a, const Point& b) { return a.load < b.load; });
      std::vector<Point> last;
      for (const Point& point : points) {
        if (!last.empty() && last.back().load == point.load) last.pop_back();
        last.push_back(point);
      }
      points = std::move(last);
    }
  }
}

std::optional<PairPrediction> PairTable::Beside(absl::string_view lc_kind, double load,
                                                absl::string_view be_kind,
                                                double /*p99_limit*/) const {
  const auto by_be = points_.find(lc_kind);
  if (by_be == points_.end()) return std::nullopt;
  const auto found = by_be->second.find(be_kind);
  if (found == by_be->second.end()) return std::nullopt;
  const std::vector<Point>& points = found->second;
  const auto above = std::lower_bound(points.begin(), points.end(), load,
                                      [](const Point& a, double at) { return a.load < at; });
  if (above == points.end()) return std::nullopt;
  if (above == points.begin() || above->load == load) return above->prediction;
  const Point& below = *std::prev(above);
  const double part = (load - below.load) / (above->load - below.load);
  const PairPrediction& low = below.prediction;
  const PairPrediction& high = above->prediction;
  return PairPrediction{.p99_ratio = low.p99_ratio + part * (high.p99_ratio - low.p99_ratio),
                        .p99_error = std::max(low.p99_error, high.p99_error),
                        .be_rate = low.be_rate + part * (high.be_rate - low.be_rate),
                        .be_error = std::max(low.be_error, high.be_error)};
}

}  // namespace gpushare::models::placement
