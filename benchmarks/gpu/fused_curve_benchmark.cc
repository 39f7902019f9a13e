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
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/gpu/co_run.h"
#include "benchmarks/gpu/form_timer.h"
#include "benchmarks/gpu/overlap_gpu.h"
#include "benchmarks/gpu/overlap_methods.h"
#include "benchmarks/gpu/overlap_pairs.h"
#include "benchmarks/gpu/overlap_side.h"
#include "benchmarks/gpu/two_stage.h"
#include "benchmarks/kernels/catalogue.h"

namespace gpushare::benchmarks {
namespace {

using kernels::Status;

constexpr int kRatios = 20;
constexpr double kRatioStep = 0.1;
// The two ratios before and the two after the inflection that the model is trained at: Tacker VI-C.
constexpr int kTrainBefore[] = {0, 1};
constexpr int kTrainAfter[] = {17, 18};

struct Arguments {
  std::vector<Pair> pairs = CurvePairs();
  int repeats = 5;
};

class Curve {
 public:
  Curve(OverlapGpu& gpu, CoRun& run, Side& tensor, Side& cuda, int repeats)
      : gpu_(gpu),
        run_(run),
        tensor_(tensor),
        cuda_(cuda),
        ways_(gpu, run, tensor, cuda, repeats),
        repeats_(repeats) {}

  // The first `cuda_tasks` block tasks of the CUDA-core task beside the whole Tensor task: median.
  Status Time(const FusedChoice& fused, uint32_t cuda_tasks, double* ms) {
    std::vector<double> times;
    for (int i = -1; i < repeats_; ++i) {
      Status status = tensor_.BeginTask();
      if (status.ok()) status = cuda_.BeginTask();
      const gpushare_worker_launch tensor = tensor_.Header();
      gpushare_worker_launch cuda = cuda_.Header();
      cuda.block_count = cuda_tasks;
      CoRun::Work work;
      work.warm_up = i < 0;
      work.a = gpu_.whole().tensor;
      work.on_a = [&] { return ways_.EnqueueFused(fused, tensor, cuda, work.a); };
      if (status.ok()) status = run_.Run(work);
      if (status.ok()) status = Check(tensor_, tensor);
      if (status.ok()) status = Check(cuda_, cuda);
      if (!status.ok()) return status;
      if (i >= 0) times.push_back(run_.TotalMs());
    }
    *ms = kernels::Median(std::move(times));
    return {};
  }

  // The fastest variant at load ratio 1; `found` stays as it was where there is none.
  Status Choose(uint32_t tasks_at_one, FusedChoice* chosen, bool* found) {
    double least = 0;
    for (const uint32_t form : {GPUSHARE_FUSED_PLAIN, GPUSHARE_FUSED_SETMAXNREG}) {
      for (FusedChoice& fused : FusedOf(tensor_.kernel().name, cuda_.kernel().name, form)) {
        double ms = 0;
        const Status status = Time(fused, tasks_at_one, &ms);
        if (!status.ok()) return status;
        if (*found && ms >= least) continue;
        least = ms;
        *chosen = std::move(fused);
        *found = true;
      }
    }
    return {};
  }

  Status Alone(double* tensor_ms, double* cuda_ms) { return ways_.Alone(tensor_ms, cuda_ms); }

 private:
  static Status Check(Side& side, const gpushare_worker_launch& header) {
    gpushare_worker_completion record = {};
    const Status status = side.Finish(Side::kFirst, header, &record);
    if (!status.ok() || record.block_tasks_done == header.block_count) return status;
    return Broken("Kernel '" + std::string(side.kernel().name) + "' executed " +
                  std::to_string(record.block_tasks_done) + " of " +
                  std::to_string(header.block_count) + " block tasks.");
  }

  OverlapGpu& gpu_;
  CoRun& run_;
  Side& tensor_;
  Side& cuda_;
  Ways ways_;
  const int repeats_;
};

void PrintFit(const char* name, const TwoStage& fit, const std::vector<RatioPoint>& points) {
  const FitError error = ErrorOf(fit, points);
  std::printf(",\n     \"%s\": {\"before\": [%.4f, %.4f], \"after\": [%.4f, %.4f],", name,
              fit.before.intercept, fit.before.slope, fit.after.intercept, fit.after.slope);
  std::printf(" \"inflection\": %.3f, \"duration_there\": %.4f,", fit.inflection,
              fit.At(fit.inflection));
  std::printf(" \"error_mean\": %.4f, \"error_max\": %.4f}", error.mean, error.max);
}

void Print(const Pair& pair, const FusedChoice& fused, double tensor_ms,
           const std::vector<RatioPoint>& points, bool first) {
  std::printf("%s\n    {\"tensor\": \"%s\", \"cuda\": \"%s\", \"variant\": \"%s\",",
              first ? "" : ",", pair.tensor.c_str(), pair.cuda.c_str(), fused.name.c_str());
  std::printf(" \"tensor_ms\": %.4f,\n     \"points\": [", tensor_ms);
  for (size_t i = 0; i < points.size(); ++i) {
    std::printf("%s[%.4f, %.4f]", i == 0 ? "" : ", ", points[i].ratio, points[i].duration);
  }
  std::printf("]");
  std::vector<RatioPoint> before;
  std::vector<RatioPoint> after;
  for (const int at : kTrainBefore) before.push_back(points[static_cast<size_t>(at)]);
  for (const int at : kTrainAfter) after.push_back(points[static_cast<size_t>(at)]);
  const TwoStage trained = FitTwoStage(before, after);
  const TwoStage all = FitTwoStageToAll(points);
  PrintFit("trained_at_four", trained, points);
  PrintFit("fit_to_all", all, points);
  std::printf("}");
  std::fflush(stdout);
  const FitError error = ErrorOf(trained, points);
  std::fprintf(stderr,
               "%-12s %-14s inflection %.2f (of all points %.2f), %.2f there; error mean %.1f %%, "
               "max %.1f %%  %s\n",
               pair.tensor.c_str(), pair.cuda.c_str(), trained.inflection, all.inflection,
               all.At(all.inflection), error.mean * 100, error.max * 100, fused.name.c_str());
}

Status RunPair(const Arguments& arguments, const Pair& pair, OverlapGpu& gpu, CoRun& run,
               bool* first) {
  const kernels::CatalogueKernel* const tensor_kernel = kernels::FindKernel(pair.tensor.c_str());
  const kernels::CatalogueKernel* const cuda_kernel = kernels::FindKernel(pair.cuda.c_str());
  const ProductShape shape = ShapeOf(pair.tensor);
  if (tensor_kernel == nullptr || cuda_kernel == nullptr || shape.m == 0) {
    return Broken("The pair is not one of a matrix product and a kernel of the catalogue.");
  }
  Side tensor(gpu);
  Side cuda(gpu);
  Status status = tensor.MakeProduct(*tensor_kernel, shape.m, shape.n, shape.k, 0);
  // The whole task is that of the largest ratio.
  if (status.ok()) {
    status = cuda.Make(*cuda_kernel, tensor.original_ms() * kRatios * kRatioStep);
  }
  if (!status.ok()) return status;
  Curve curve(gpu, run, tensor, cuda, arguments.repeats);
  double tensor_ms = 0;
  double cuda_ms = 0;
  status = curve.Alone(&tensor_ms, &cuda_ms);
  if (!status.ok()) return status;
  // Block tasks a unit of load ratio.
  const double unit = cuda.task().block_tasks() * tensor_ms / cuda_ms;
  const auto tasks_at = [&](double ratio) {
    const auto tasks = static_cast<uint32_t>(std::max(1.0, ratio * unit + 0.5));
    return std::min(tasks, cuda.task().block_tasks());
  };
  FusedChoice fused;
  bool found = false;
  status = curve.Choose(tasks_at(1), &fused, &found);
  if (!status.ok()) return status;
  if (!found) return Broken("There is no fused kernel of the pair that this GPU can run.");
  std::vector<RatioPoint> points;
  for (int i = 1; i <= kRatios; ++i) {
    const uint32_t tasks = tasks_at(i * kRatioStep);
    double ms = 0;
    status = curve.Time(fused, tasks, &ms);
    if (!status.ok()) return status;
    points.push_back({tasks / unit, ms / tensor_ms});
  }
  Print(pair, fused, tensor_ms, points, *first);
  *first = false;
  return {};
}

bool Parse(int argc, char** argv, Arguments* arguments) {
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 >= argc) return false;
    if (std::strcmp(argv[i], "--pairs") == 0) {
      if (!ParsePairs(argv[i + 1], &arguments->pairs)) return false;
    } else if (std::strcmp(argv[i], "--repeats") == 0) {
      arguments->repeats = std::max(1, std::atoi(argv[i + 1]));
    } else {
      return false;
    }
  }
  return true;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  if (!Parse(argc, argv, &arguments)) {
    std::fprintf(stderr, "fused_curve_benchmark [--pairs a+b,c+d] [--repeats N]\n");
    return 2;
  }
  OverlapGpu gpu;
  CoRun run;
  if (!Open(gpu, run)) return 77;
  std::printf(
      "{\"benchmark\": \"fused_curve_benchmark\", \"gpu\": \"%s\", \"sms\": %d, \"repeats\": %d,\n"
      "  \"note\": \"durations over the Tensor kernel alone; lines as [intercept, slope]\",\n"
      "  \"pairs\": [",
      gpu.model().c_str(), gpu.sms(), arguments.repeats);
  bool first = true;
  const bool all = RunEach(arguments.pairs, [&](const Pair& pair) {
    return RunPair(arguments, pair, gpu, run, &first);
  });
  std::printf("]}\n");
  return all ? 0 : 1;
}

}  // namespace
}  // namespace gpushare::benchmarks

int main(int argc, char** argv) { return gpushare::benchmarks::Main(argc, argv); }
