// The experiment `curve` of overlap_benchmark: duration of fused kernels over the load ratio of
// their parts (Tacker VI, figs. 10 and 18): the CUDA-core part's duration alone over the Tensor
// part's, which stays the same.
//
// Prints one JSON object. For each pair the variant that is fastest at ratio 1, at 20 ratios from
// 0.1 to 2; durations are relative to the Tensor kernel's original grid alone. Two fits of two
// lines: the paper's at 10, 20, 180 and 190 % alone, with its error at all 20, and the library's
// from all of them; and each one's inflection.
//
// Options: [--pairs a+b,c+d] [--repeats N]

#include "src/models/fused/fused_curve.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/gpu/overlap/experiments.h"
#include "benchmarks/gpu/overlap/overlap_methods.h"
#include "benchmarks/harness/json.h"
#include "src/models/evaluation/two_lines.h"

namespace gpushare::benchmarks {
namespace {

using core::FusedPoint;
using models::FusedCurve;

constexpr int kRatios = 20;
constexpr double kRatioStep = 0.1;
// The two ratios before and the two after the inflection that the model is trained at: Tacker VI-C.
constexpr size_t kTrained[] = {0, 1, 17, 18};

struct FitError {
  double mean = 0;  // of |predicted / measured - 1|
  double max = 0;
};

FitError ErrorOf(const FusedCurve& curve, const std::vector<FusedPoint>& points) {
  FitError error;
  for (const FusedPoint& point : points) {
    const double one = std::abs(curve.At(point.load_ratio) / point.duration_ratio - 1);
    error.mean += one / static_cast<double>(points.size());
    error.max = std::max(error.max, one);
  }
  return error;
}

Json FitJson(const FusedCurve& curve, const std::vector<FusedPoint>& points) {
  const FitError error = ErrorOf(curve, points);
  const auto line = [](double intercept, double slope) {
    return Json::array({Rounded(intercept, 4), Rounded(slope, 4)});
  };
  return {
      {"before", line(curve.intercept, curve.slope)},
      {"after", line(curve.intercept - curve.bend * curve.inflection, curve.slope + curve.bend)},
      {"inflection", Rounded(curve.inflection, 3)},
      {"duration_there", Rounded(curve.At(curve.inflection), 4)},
      {"error_mean", Rounded(error.mean, 4)},
      {"error_max", Rounded(error.max, 4)}};
}

void Print(Report& report, const Pair& pair, const FusedChoice& fused, double tensor_ms,
           const std::vector<FusedPoint>& points) {
  std::vector<FusedPoint> four;
  for (const size_t at : kTrained) four.push_back(points[at]);
  const FusedCurve trained = models::TwoLines(four);
  const FusedCurve all = models::FitFusedCurve(points);
  Json curve = Json::array();
  for (const FusedPoint& point : points) {
    curve.push_back(Json::array({Rounded(point.load_ratio, 4), Rounded(point.duration_ratio, 4)}));
  }
  report.Row({{"tensor", pair.tensor},
              {"cuda", pair.cuda},
              {"variant", fused.name},
              {"tensor_ms", Rounded(tensor_ms, 4)},
              {"points", curve},
              {"trained_at_four", FitJson(trained, points)},
              {"fit_to_all", FitJson(all, points)}});
  const FitError error = ErrorOf(trained, points);
  std::fprintf(stderr,
               "%-12s %-14s inflection %.2f (of all points %.2f), %.2f there; error mean %.1f %%, "
               "max %.1f %%  %s\n",
               pair.tensor.c_str(), pair.cuda.c_str(), trained.inflection, all.inflection,
               all.At(all.inflection), error.mean * 100, error.max * 100, fused.name.c_str());
}

void RunPair(const Pair& pair, int repeats, OverlapGpu& gpu, CoRun& run, Report& report) {
  Side tensor(gpu, pair.tensor, ProductShapeOf(pair.tensor), 0);
  // The whole task is that of the largest ratio.
  Side cuda(gpu, pair.cuda, {}, tensor.original_ms() * kRatios * kRatioStep);
  Ways ways(gpu, run, tensor, cuda, repeats);
  const double tensor_ms = ways.TensorAlone();
  // Block tasks a unit of load ratio.
  const double unit = cuda.task().block_tasks() * tensor_ms / ways.CudaAlone();
  const auto tasks_at = [&](double ratio) {
    const auto tasks = static_cast<uint32_t>(std::max(1.0, ratio * unit + 0.5));
    return std::min(tasks, cuda.task().block_tasks());
  };
  const auto ms_of = [&](const FusedChoice& fused, uint32_t tasks) {
    WayResult result;
    result.way = fused.name;
    ways.Fused(fused, tasks, &result);
    return result.total_ms;
  };
  FusedChoice chosen;
  double least = std::numeric_limits<double>::infinity();
  for (FusedChoice& fused : FusedWorkersOf(tensor, cuda)) {
    const double ms = ms_of(fused, tasks_at(1));
    if (ms >= least) continue;
    least = ms;
    chosen = std::move(fused);
  }
  std::vector<FusedPoint> points;
  for (int i = 1; i <= kRatios; ++i) {
    const uint32_t tasks = tasks_at(i * kRatioStep);
    points.push_back({tasks / unit, ms_of(chosen, tasks) / tensor_ms});
  }
  Print(report, pair, chosen, tensor_ms, points);
}

}  // namespace

int RunCurve(Arguments& given) {
  const std::vector<Pair> pairs = PairsOf(given, CurvePairs());
  const int repeats = given.Number("--repeats", 5, 1);
  given.Finish();
  OverlapGpu gpu;
  CoRun run;
  Report report({{"benchmark", "fused_curve_benchmark"},
                 {"gpu", gpu.model()},
                 {"sms", gpu.sms()},
                 {"repeats", repeats},
                 {"note", "durations over the Tensor kernel alone; lines as [intercept, slope]"}},
                "pairs");
  return RunPairs(pairs, report,
                  [&](const Pair& pair) { RunPair(pair, repeats, gpu, run, report); });
}

}  // namespace gpushare::benchmarks
