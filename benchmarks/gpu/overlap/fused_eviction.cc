// The experiment `eviction` of overlap_benchmark: the CUDA-core part of a fused launch is evicted
// at a random moment.
//
// Prints one JSON object. For each fused kernel: how long the part takes to leave, as the host sees
// it, against one round of its block tasks in the fused kernel; the Tensor part's time against what
// its speeds before and after predict (fused until the other part left, then alone in the same
// kernel); and the block tasks: what the launch executed and what the resumed rest did add up, with
// the bits of the original grid.
//
// Options: [--pairs a+b,c+d] [--evictions N] [--seed N]

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/gpu/overlap/experiments.h"
#include "benchmarks/gpu/overlap/overlap_methods.h"
#include "benchmarks/harness/json.h"
#include "benchmarks/harness/quantiles.h"
#include "benchmarks/harness/random.h"

namespace gpushare::benchmarks {
namespace {

constexpr int kRepeats = 7;
constexpr int kRounds = 40;
// The CUDA-core task is so much longer than the Tensor one, so that the latter ends first.
constexpr double kLoadRatio = 8;
// Moments of the eviction, over the Tensor part's duration.
constexpr double kEarliest = 0.1;
constexpr double kLatest = 0.8;
constexpr double kHungSeconds = 5;

struct Options {
  int evictions = 40;
  uint64_t seed = 1;
};

// Blocks until the record of the side's launch is there.
void WaitFor(Side& side, const gpushare_worker_launch& header) {
  gpushare_worker_completion record = {};
  Require(side.launcher().AwaitRecord(header, kHungSeconds, &record));
}

double SpanMs(uint64_t begin_ns, uint64_t end_ns) {
  return end_ns > begin_ns ? static_cast<double>(end_ns - begin_ns) / 1e6 : 0;
}

struct Launched {
  gpushare_worker_launch tensor = {};
  gpushare_worker_launch cuda = {};
  gpushare_worker_completion tensor_record = {};
  gpushare_worker_completion cuda_record = {};
  double TensorMs() const {
    return SpanMs(tensor_record.start_globaltimer_ns, tensor_record.end_globaltimer_ns);
  }
};

struct Result {
  std::vector<double> round_us;  // of the CUDA-core part's block tasks
  std::vector<double> eviction_us;
  std::vector<double> after;    // the Tensor part's time over what is predicted
  double tensor_alone_ms = 0;   // in the fused kernel, the other part empty
  double tensor_beside_ms = 0;  // the other part never ends
  int resumed = 0;              // evictions that left block tasks
};

class Subject {
 public:
  Subject(OverlapGpu& gpu, CoRun& run, Side& tensor, Side& cuda, const FusedChoice& fused)
      : gpu_(gpu), tensor_(tensor), cuda_(cuda), ways_(gpu, run, tensor, cuda, 1), fused_(fused) {}

  Result Measure(const Options& options) {
    MeasureParts();
    Random random(options.seed);
    for (int i = 0; i < options.evictions; ++i) EvictOnce(random.Between(kEarliest, kLatest));
    return result_;
  }

 private:
  // Both tasks from their start, this many block tasks of the CUDA-core one.
  Launched Launch(uint32_t cuda_tasks);
  // Blocks until both records are there, so that the kernel is at its end.
  void Finish(Launched* launched);
  void MeasureParts();
  void EvictOnce(double moment);
  void Resume(const Launched& launched);

  OverlapGpu& gpu_;
  Side& tensor_;
  Side& cuda_;
  Ways ways_;
  const FusedChoice& fused_;
  Result result_;
};

Launched Subject::Launch(uint32_t cuda_tasks) {
  Launched launched;
  tensor_.BeginTask();
  cuda_.BeginTask();
  launched.tensor = tensor_.Header();
  launched.cuda = cuda_.Header();
  launched.cuda.block_count = cuda_tasks;
  ways_.EnqueueFused(fused_, launched.tensor, launched.cuda, gpu_.whole().tensor);
  return launched;
}

void Subject::Finish(Launched* launched) {
  WaitFor(tensor_, launched->tensor);
  WaitFor(cuda_, launched->cuda);
  launched->tensor_record = tensor_.Finish(launched->tensor);
  launched->cuda_record = cuda_.Finish(launched->cuda);
  tensor_.CheckCount(launched->tensor_record.block_tasks_done);
}

void Subject::MeasureParts() {
  std::vector<double> alone;
  std::vector<double> beside;
  for (int i = -1; i < kRepeats; ++i) {
    Launched launched = Launch(0);
    Finish(&launched);
    if (i >= 0) alone.push_back(launched.TensorMs());
    launched = Launch(cuda_.task().block_tasks());
    WaitFor(tensor_, launched.tensor);
    Require(cuda_.launcher().Evict(launched.cuda.epoch, 0));
    Finish(&launched);
    if (launched.cuda_record.block_tasks_left == 0) {
      Fail("The CUDA-core part ended before the Tensor part: its task is too short.");
    }
    if (i >= 0) beside.push_back(launched.TensorMs());
  }
  result_.tensor_alone_ms = Median(std::move(alone));
  result_.tensor_beside_ms = Median(std::move(beside));
  const uint32_t workers = fused_.variants.blocks_per_sm * static_cast<uint32_t>(gpu_.sms()) *
                           fused_.variants.cuda_blocks;
  const uint32_t round = std::min(workers * cuda_.claim_batch(), cuda_.task().block_tasks());
  for (int i = -1; i < kRounds; ++i) {
    Launched launched = Launch(round);
    Finish(&launched);
    if (i < 0) continue;
    result_.round_us.push_back(1000 * SpanMs(launched.cuda_record.start_globaltimer_ns,
                                             launched.cuda_record.end_globaltimer_ns));
  }
}

// The rest of the evicted task by workers on the whole GPU, then its bits and its count.
void Subject::Resume(const Launched& launched) {
  uint64_t done = launched.cuda_record.block_tasks_done;
  if (launched.cuda_record.block_tasks_left > 0) {
    ++result_.resumed;
    const gpushare_worker_launch rest = cuda_.Header();  // the same counter
    cuda_.EnqueueWorkers(rest, cuda_.Workers(gpu_.sms()), gpu_.whole().cuda);
    WaitFor(cuda_, rest);
    done += cuda_.Finish(rest).block_tasks_done;
  }
  cuda_.CheckCount(done);
  for (const Side* side : {&tensor_, &cuda_}) side->CheckBits("across the eviction");
}

void Subject::EvictOnce(double moment) {
  tensor_.ClearOutput();
  cuda_.ClearOutput();
  Launched launched = Launch(cuda_.task().block_tasks());
  const double evict_at = NowMs() + moment * result_.tensor_beside_ms;
  while (NowMs() < evict_at) {
  }
  const double called_ms = NowMs();
  Require(cuda_.launcher().Evict(launched.cuda.epoch, 0));
  WaitFor(cuda_, launched.cuda);
  const double seen_ms = NowMs();
  Finish(&launched);
  result_.eviction_us.push_back(1000 * (seen_ms - called_ms));
  const double beside_ms =
      SpanMs(launched.tensor_record.start_globaltimer_ns, launched.cuda_record.end_globaltimer_ns);
  const double left = 1 - beside_ms / result_.tensor_beside_ms;  // of the Tensor part's work
  if (left > 0) {
    result_.after.push_back(launched.TensorMs() / (beside_ms + left * result_.tensor_alone_ms));
  }
  Resume(launched);
}

void Print(Report& report, const Side& tensor, const Side& cuda, const FusedChoice& fused,
           const Result& result) {
  const std::vector<double>& round = result.round_us;
  const std::vector<double>& eviction = result.eviction_us;
  report.Row({{"variant", fused.name},
              {"tensor", tensor.name()},
              {"cuda", cuda.name()},
              {"claim_batch", cuda.claim_batch()},
              {"round_p50_us", Rounded(Median(round), 1)},
              {"round_p99_us", Rounded(Quantile(round, 0.99), 1)},
              {"evictions", eviction.size()},
              {"eviction_p50_us", Rounded(Median(eviction), 1)},
              {"eviction_p99_us", Rounded(Quantile(eviction, 0.99), 1)},
              {"evictions_resumed", result.resumed},
              {"block_tasks_lost_or_repeated", 0},
              {"tensor_original_ms", Rounded(tensor.original_ms(), 4)},
              {"tensor_alone_ms", Rounded(result.tensor_alone_ms, 4)},
              {"tensor_beside_ms", Rounded(result.tensor_beside_ms, 4)},
              {"tensor_over_predicted_p50", Rounded(Median(result.after), 4)},
              {"tensor_over_predicted_p05", Rounded(Quantile(result.after, 0.05), 4)},
              {"tensor_over_predicted_p95", Rounded(Quantile(result.after, 0.95), 4)}});
  std::fprintf(stderr,
               "%-44s round p99 %7.1f us  eviction p50 %7.1f p99 %7.1f us  Tensor part over "
               "predicted %.3f to %.3f\n",
               fused.name.c_str(), Quantile(round, 0.99), Median(eviction),
               Quantile(eviction, 0.99), Quantile(result.after, 0.05),
               Quantile(result.after, 0.95));
}

void RunPair(const Pair& pair, const Options& options, OverlapGpu& gpu, CoRun& run,
             Report& report) {
  Side tensor(gpu, pair.tensor, ProductShapeOf(pair.tensor), 0);
  Side cuda(gpu, pair.cuda, {}, tensor.original_ms() * kLoadRatio);
  for (const FusedChoice& fused : FusedWorkersOf(tensor, cuda)) {
    try {
      Subject subject(gpu, run, tensor, cuda, fused);
      Print(report, tensor, cuda, fused, subject.Measure(options));
    } catch (const Failure& failure) {
      Fail(fused.name + ": " + failure.what());
    }
  }
}

}  // namespace

int RunEviction(Arguments& given) {
  const std::vector<Pair> pairs = PairsOf(given, CurvePairs());
  Options options;
  options.evictions = given.Number("--evictions", options.evictions, 1);
  options.seed = given.Seed();
  given.Finish();
  OverlapGpu gpu;
  CoRun run;
  Report report({{"benchmark", "fused_eviction_benchmark"},
                 {"gpu", gpu.model()},
                 {"sms", gpu.sms()},
                 {"seed", options.seed},
                 {"note", "evictions from the host's call to the host's sight of the record"}},
                "fused");
  return RunPairs(pairs, report,
                  [&](const Pair& pair) { RunPair(pair, options, gpu, run, report); });
}

}  // namespace gpushare::benchmarks
