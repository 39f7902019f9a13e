// fused_curve_benchmark: duration of fused kernels over the load ratio of their parts (Tacker VI,
// figs. 10 and 18): the CUDA-core part's duration alone over the Tensor part's, which stays the
// same.
//
// Prints one JSON object. For each pair the variant that is fastest at ratio 1, at 20 ratios from
// 0.1 to 2; durations are relative to the Tensor kernel's original grid alone. Two fits of two
// lines (two_stage.h): one trained at 10, 20, 180 and 190 % alone, with its error at all 20, one
// from all of them; and each one's inflection.
//
//   fused_curve_benchmark [--pairs a+b,c+d] [--repeats N]

#include <algorithm>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/gpu/overlap/overlap_methods.h"
#include "benchmarks/gpu/overlap/two_stage.h"
#include "benchmarks/harness/arguments.h"
#include "benchmarks/harness/json.h"
#include "benchmarks/harness/quantiles.h"

namespace gpushare::benchmarks {
namespace {

constexpr int kRatios = 20;
constexpr double kRatioStep = 0.1;
// The two ratios before and the two after the inflection that the model is trained at: Tacker VI-C.
constexpr size_t kTrainBefore[] = {0, 1};
constexpr size_t kTrainAfter[] = {17, 18};

class Curve {
 public:
  Curve(OverlapGpu& gpu, CoRun& run, Side& tensor, Side& cuda, int repeats)
      : gpu_(gpu),
        run_(run),
        tensor_(tensor),
        cuda_(cuda),
        ways_(gpu, run, tensor, cuda, repeats),
        repeats_(repeats) {}

  Ways& ways() { return ways_; }

  // The first `cuda_tasks` block tasks of the CUDA-core task beside the whole Tensor task: median.
  double Ms(const FusedChoice& fused, uint32_t cuda_tasks) {
    std::vector<double> times;
    for (int i = -1; i < repeats_; ++i) {
      tensor_.BeginTask();
      cuda_.BeginTask();
      const gpushare_worker_launch tensor = tensor_.Header();
      gpushare_worker_launch cuda = cuda_.Header();
      cuda.block_count = cuda_tasks;
      CoRun::Work work;
      work.warm_up = i < 0;
      work.a = gpu_.whole().tensor;
      work.on_a = [&] { ways_.EnqueueFused(fused, tensor, cuda, work.a); };
      run_.Run(work);
      tensor_.CheckCount(tensor_.Finish(Side::kFirst, tensor).block_tasks_done);
      cuda_.CheckCount(cuda_.Finish(Side::kFirst, cuda).block_tasks_done, cuda_tasks);
      if (i >= 0) times.push_back(run_.TotalMs());
    }
    return Median(std::move(times));
  }

  // The fastest variant at load ratio 1.
  FusedChoice Choose(uint32_t tasks_at_one) {
    FusedChoice chosen;
    double least = std::numeric_limits<double>::infinity();
    for (FusedChoice& fused : FusedOf(tensor_.kernel().name, cuda_.kernel().name,
                                      {GPUSHARE_FUSED_PLAIN, GPUSHARE_FUSED_SETMAXNREG})) {
      const double ms = Ms(fused, tasks_at_one);
      if (ms >= least) continue;
      least = ms;
      chosen = std::move(fused);
    }
    if (chosen.name.empty()) Fail("There is no fused kernel of the pair that this GPU can run.");
    return chosen;
  }

 private:
  OverlapGpu& gpu_;
  CoRun& run_;
  Side& tensor_;
  Side& cuda_;
  Ways ways_;
  const int repeats_;
};

Json LineJson(const Line& line) {
  return Json::array({Rounded(line.intercept, 4), Rounded(line.slope, 4)});
}

Json FitJson(const TwoStage& fit, const std::vector<RatioPoint>& points) {
  const FitError error = ErrorOf(fit, points);
  return {{"before", LineJson(fit.before)},
          {"after", LineJson(fit.after)},
          {"inflection", Rounded(fit.inflection, 3)},
          {"duration_there", Rounded(fit.At(fit.inflection), 4)},
          {"error_mean", Rounded(error.mean, 4)},
          {"error_max", Rounded(error.max, 4)}};
}

void Print(Report& report, const Pair& pair, const FusedChoice& fused, double tensor_ms,
           const std::vector<RatioPoint>& points) {
  std::vector<RatioPoint> before;
  std::vector<RatioPoint> after;
  for (const size_t at : kTrainBefore) before.push_back(points[at]);
  for (const size_t at : kTrainAfter) after.push_back(points[at]);
  const TwoStage trained = FitTwoStage(before, after);
  const TwoStage all = FitTwoStageToAll(points);
  Json curve = Json::array();
  for (const RatioPoint& point : points) {
    curve.push_back(Json::array({Rounded(point.ratio, 4), Rounded(point.duration, 4)}));
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
  const ProductShape shape = ShapeOf(pair.tensor);
  if (shape.m == 0) Fail("The pair's first kernel makes no matrix product.");
  Side tensor(gpu, pair.tensor, shape, 0);
  // The whole task is that of the largest ratio.
  Side cuda(gpu, pair.cuda, {}, tensor.original_ms() * kRatios * kRatioStep);
  Curve curve(gpu, run, tensor, cuda, repeats);
  const double tensor_ms = curve.ways().TensorAlone();
  // Block tasks a unit of load ratio.
  const double unit = cuda.task().block_tasks() * tensor_ms / curve.ways().CudaAlone();
  const auto tasks_at = [&](double ratio) {
    const auto tasks = static_cast<uint32_t>(std::max(1.0, ratio * unit + 0.5));
    return std::min(tasks, cuda.task().block_tasks());
  };
  const FusedChoice fused = curve.Choose(tasks_at(1));
  std::vector<RatioPoint> points;
  for (int i = 1; i <= kRatios; ++i) {
    const uint32_t tasks = tasks_at(i * kRatioStep);
    points.push_back({tasks / unit, curve.Ms(fused, tasks) / tensor_ms});
  }
  Print(report, pair, fused, tensor_ms, points);
}

int Run(Arguments& given) {
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
  return RunPairs(pairs, std::numeric_limits<double>::infinity(), report,
                  [&](const Pair& pair) { RunPair(pair, repeats, gpu, run, report); });
}

}  // namespace
}  // namespace gpushare::benchmarks

int main(int argc, char** argv) {
  return gpushare::benchmarks::Main("fused_curve_benchmark", argc, argv, gpushare::benchmarks::Run);
}
