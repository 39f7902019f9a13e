// Judges curves over the load ratio: fitted to the points of a calibration, judged at those
// between.

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/models/evaluation/judged.h"
#include "src/models/evaluation/two_lines.h"
#include "src/models/fused/fused_curve.h"
#include "src/models/samples/row_times.h"

namespace gpushare::models {
namespace {

// Load ratios in per cent: the paper's, and one more near where most lines meet, as calibration has
// them (src/calibration/pairs/fused.cc).
constexpr int32_t kPaperLoads[] = {10, 20, 180, 190};
constexpr int32_t kMiddleLoad = 100;
// A kernel with fewer points was not measured between those that train.
constexpr size_t kCurvePointsMin = 12;

// By the load ratio in per cent that was aimed at; of one that was measured twice the later counts.
struct Curve {
  std::map<int32_t, FusedPoint> points;
  bool one_to_one = true;  // blocks of both parts
};

bool IsPaperLoad(int32_t load) {
  return std::find(std::begin(kPaperLoads), std::end(kPaperLoads), load) != std::end(kPaperLoads);
}

void JudgeCurve(const std::string& name, const Curve& judged, std::vector<Judged>& out) {
  const std::map<int32_t, FusedPoint>& points = judged.points;
  std::vector<FusedPoint> paper;
  std::vector<FusedPoint> with_middle;
  for (const auto& [load, point] : points) {
    if (IsPaperLoad(load)) paper.push_back(point);
    if (IsPaperLoad(load) || load == kMiddleLoad) with_middle.push_back(point);
  }
  if (paper.size() < std::size(kPaperLoads) || with_middle.size() == paper.size()) return;
  const FusedCurve lines = TwoLines(paper);
  const FusedCurve curve = FitFusedCurve(with_middle);
  const char* const family = judged.one_to_one ? "fused kernels" : "fused kernels at other ratios";
  for (const auto& [load, point] : points) {
    if (IsPaperLoad(load) || load == kMiddleLoad) continue;
    const std::string subject = absl::StrCat(name, " at ", load, " %");
    out.push_back({family, "two lines at 10, 20, 180 and 190 %", subject,
                   lines.At(point.load_ratio), point.duration_ratio});
    out.push_back({family, "bent line, with 100 %", subject, curve.At(point.load_ratio),
                   point.duration_ratio});
  }
}

}  // namespace

void JudgeFused(const Samples& samples, std::vector<Judged>& out) {
  std::map<std::string, Curve> curves;
  for (const SampleRow& row : samples.rows) {
    if (row.what != SampleKind::kFused) continue;
    const FusedPoint point = {MedianRatio(row.neighbour_ns, row.alone_ns),
                              MedianRatio(row.ns, row.alone_ns)};
    if (!(point.duration_ratio > 0)) continue;
    Curve& curve = curves[row.kernel];
    curve.points[row.load_percent] = point;
    curve.one_to_one = row.tensor_blocks == row.cuda_blocks;
  }
  for (const auto& [name, curve] : curves) {
    if (curve.points.size() >= kCurvePointsMin) JudgeCurve(name, curve, out);
  }
}

}  // namespace gpushare::models
