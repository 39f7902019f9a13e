// fused_eviction_benchmark: the CUDA-core part of a fused launch is evicted at a random moment.
//
// Prints one JSON object. For each fused kernel: how long the part takes to leave, as the host sees
// it, against one round of its block tasks in the fused kernel; the Tensor part's time against what
// its speeds before and after predict (fused until the other part left, then alone in the same
// kernel); and the block tasks: what the launch executed and what the resumed rest did add up, with
// the bits of the original grid.
//
//   fused_eviction_benchmark [--pairs a+b,c+d] [--evictions N] [--seed N]

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/gpu/co_run.h"
#include "benchmarks/gpu/form_timer.h"
#include "benchmarks/gpu/overlap_gpu.h"
#include "benchmarks/gpu/overlap_methods.h"
#include "benchmarks/gpu/overlap_pairs.h"
#include "benchmarks/gpu/overlap_side.h"
#include "benchmarks/kernels/catalogue.h"

namespace gpushare::benchmarks {
namespace {

using kernels::Status;

constexpr int kRepeats = 7;
constexpr int kRounds = 40;
// The CUDA-core task is so much longer than the Tensor one, so that the latter ends first.
constexpr double kLoadRatio = 8;
// Moments of the eviction, over the Tensor part's duration.
constexpr double kEarliest = 0.1;
constexpr double kLatest = 0.8;
constexpr double kHungMs = 5000;

struct Arguments {
  std::vector<Pair> pairs = CurvePairs();
  int evictions = 40;
  uint32_t seed = 1;
};

double NowMs() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// The record of a launch is there: mapped host memory, `sequence` last.
bool HasEnded(const gpushare_worker_launch& header) {
  return std::atomic_ref<uint64_t>(header.completion->sequence).load(std::memory_order_acquire) ==
         header.sequence;
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
  Subject(OverlapGpu& gpu, CoRun& run, Side& tensor, Side& cuda, FusedChoice fused)
      : gpu_(gpu),
        tensor_(tensor),
        cuda_(cuda),
        ways_(gpu, run, tensor, cuda, 1),
        fused_(std::move(fused)) {}

  Status Measure(const Arguments& arguments, Result* result);

 private:
  uint32_t CudaWorkers() const {
    return fused_.variants.blocks_per_sm * static_cast<uint32_t>(gpu_.sms()) *
           fused_.variants.cuda_blocks;
  }
  // Both tasks from their start, this many block tasks of the CUDA-core one.
  Status Launch(uint32_t cuda_tasks, Launched* launched);
  Status Finish(Launched* launched);
  Status WaitFor(const gpushare_worker_launch& header) const;
  Status EvictWhenTensorEnds(Launched* launched);
  Status MeasureParts(Result* result);
  Status EvictOnce(double moment, Result* result);
  Status Resume(const Launched& launched, Result* result);

  OverlapGpu& gpu_;
  Side& tensor_;
  Side& cuda_;
  Ways ways_;
  const FusedChoice fused_;
};

Status Subject::Launch(uint32_t cuda_tasks, Launched* launched) {
  Status status = tensor_.BeginTask();
  if (status.ok()) status = cuda_.BeginTask();
  launched->tensor = tensor_.Header();
  launched->cuda = cuda_.Header();
  launched->cuda.block_count = cuda_tasks;
  if (!status.ok()) return status;
  return ways_.EnqueueFused(fused_, launched->tensor, launched->cuda, gpu_.whole().tensor);
}

Status Subject::WaitFor(const gpushare_worker_launch& header) const {
  const double give_up = NowMs() + kHungMs;
  while (!HasEnded(header)) {
    if (NowMs() > give_up) return Broken("A part of a fused launch does not end within 5 s.");
  }
  return {};
}

// Both records are there, so the kernel is at its end.
Status Subject::Finish(Launched* launched) {
  Status status = WaitFor(launched->tensor);
  if (status.ok()) status = WaitFor(launched->cuda);
  if (status.ok())
    status = tensor_.Finish(Side::kFirst, launched->tensor, &launched->tensor_record);
  if (status.ok()) status = cuda_.Finish(Side::kFirst, launched->cuda, &launched->cuda_record);
  if (!status.ok()) return status;
  if (launched->tensor_record.block_tasks_done != tensor_.task().block_tasks()) {
    return Broken(
        "The Tensor part executed " + std::to_string(launched->tensor_record.block_tasks_done) +
        " block tasks, and its task has " + std::to_string(tensor_.task().block_tasks()) + ".");
  }
  return {};
}

Status Subject::EvictWhenTensorEnds(Launched* launched) {
  Status status = WaitFor(launched->tensor);
  if (status.ok()) status = cuda_.Evict(Side::kFirst, launched->cuda);
  return status.ok() ? Finish(launched) : status;
}

Status Subject::MeasureParts(Result* result) {
  std::vector<double> alone;
  std::vector<double> beside;
  for (int i = -1; i < kRepeats; ++i) {
    Launched launched;
    Status status = Launch(0, &launched);
    if (status.ok()) status = Finish(&launched);
    if (!status.ok()) return status;
    if (i >= 0) alone.push_back(launched.TensorMs());
    status = Launch(cuda_.task().block_tasks(), &launched);
    if (status.ok()) status = EvictWhenTensorEnds(&launched);
    if (!status.ok()) return status;
    if (launched.cuda_record.block_tasks_left == 0) {
      return Broken("The CUDA-core part ended before the Tensor part: its task is too short.");
    }
    if (i >= 0) beside.push_back(launched.TensorMs());
  }
  result->tensor_alone_ms = kernels::Median(std::move(alone));
  result->tensor_beside_ms = kernels::Median(std::move(beside));
  const uint32_t round = std::min(CudaWorkers() * cuda_.claim_batch(), cuda_.task().block_tasks());
  for (int i = -1; i < kRounds; ++i) {
    Launched launched;
    Status status = Launch(round, &launched);
    if (status.ok()) status = Finish(&launched);
    if (!status.ok()) return status;
    if (i < 0) continue;
    result->round_us.push_back(1000 * SpanMs(launched.cuda_record.start_globaltimer_ns,
                                             launched.cuda_record.end_globaltimer_ns));
  }
  return {};
}

// The rest of the evicted task by workers on the whole GPU, then its bits and its count.
Status Subject::Resume(const Launched& launched, Result* result) {
  uint64_t done = launched.cuda_record.block_tasks_done;
  if (launched.cuda_record.block_tasks_left > 0) {
    ++result->resumed;
    const gpushare_worker_launch rest = cuda_.Header();  // the same counter
    Status status = cuda_.EnqueueWorkers(
        rest, cuda_.workers_per_sm() * static_cast<uint32_t>(gpu_.sms()), gpu_.whole().cuda);
    if (status.ok()) status = WaitFor(rest);
    gpushare_worker_completion record = {};
    if (status.ok()) status = cuda_.Finish(Side::kFirst, rest, &record);
    if (!status.ok()) return status;
    done += record.block_tasks_done;
  }
  if (done != cuda_.task().block_tasks()) {
    return Broken("The CUDA-core part executed " + std::to_string(done) +
                  " block tasks across its eviction, and its task has " +
                  std::to_string(cuda_.task().block_tasks()) + ".");
  }
  for (Side* const side : {&tensor_, &cuda_}) {
    bool right = false;
    const Status status = side->IsRight(&right);
    if (!status.ok()) return status;
    if (!right) {
      return Broken("Kernel '" + std::string(side->kernel().name) +
                    "' gives other bits across the eviction than its original grid.");
    }
  }
  return {};
}

Status Subject::EvictOnce(double moment, Result* result) {
  Status status = tensor_.ClearOutput();
  if (status.ok()) status = cuda_.ClearOutput();
  Launched launched;
  if (status.ok()) status = Launch(cuda_.task().block_tasks(), &launched);
  if (!status.ok()) return status;
  const double evict_at = NowMs() + moment * result->tensor_beside_ms;
  while (NowMs() < evict_at) {
  }
  const double called_ms = NowMs();
  status = cuda_.Evict(Side::kFirst, launched.cuda);
  if (status.ok()) status = WaitFor(launched.cuda);
  const double seen_ms = NowMs();
  if (status.ok()) status = Finish(&launched);
  if (!status.ok()) return status;
  result->eviction_us.push_back(1000 * (seen_ms - called_ms));
  const double beside_ms =
      SpanMs(launched.tensor_record.start_globaltimer_ns, launched.cuda_record.end_globaltimer_ns);
  const double left = 1 - beside_ms / result->tensor_beside_ms;  // of the Tensor part's work
  if (left > 0) {
    result->after.push_back(launched.TensorMs() / (beside_ms + left * result->tensor_alone_ms));
  }
  return Resume(launched, result);
}

Status Subject::Measure(const Arguments& arguments, Result* result) {
  Status status = MeasureParts(result);
  std::mt19937 random(arguments.seed);
  std::uniform_real_distribution<double> moment(kEarliest, kLatest);
  for (int i = 0; i < arguments.evictions && status.ok(); ++i) {
    status = EvictOnce(moment(random), result);
  }
  return status;
}

void Print(const Side& tensor, const Side& cuda, const FusedChoice& fused, const Result& result,
           bool first) {
  using kernels::QuantileOf;
  std::printf("%s\n    {\"variant\": \"%s\", \"tensor\": \"%s\", \"cuda\": \"%s\",",
              first ? "" : ",", fused.name.c_str(), tensor.kernel().name, cuda.kernel().name);
  std::printf(" \"claim_batch\": %u, \"round_p50_us\": %.1f, \"round_p99_us\": %.1f,",
              cuda.claim_batch(), QuantileOf(result.round_us, 0.5),
              QuantileOf(result.round_us, 0.99));
  std::printf("\n     \"evictions\": %zu, \"eviction_p50_us\": %.1f, \"eviction_p99_us\": %.1f,",
              result.eviction_us.size(), QuantileOf(result.eviction_us, 0.5),
              QuantileOf(result.eviction_us, 0.99));
  std::printf(" \"evictions_resumed\": %d, \"block_tasks_lost_or_repeated\": 0,", result.resumed);
  std::printf("\n     \"tensor_original_ms\": %.4f, \"tensor_alone_ms\": %.4f,",
              tensor.original_ms(), result.tensor_alone_ms);
  std::printf(" \"tensor_beside_ms\": %.4f, \"tensor_over_predicted_p50\": %.4f,",
              result.tensor_beside_ms, QuantileOf(result.after, 0.5));
  std::printf(" \"tensor_over_predicted_p05\": %.4f, \"tensor_over_predicted_p95\": %.4f}",
              QuantileOf(result.after, 0.05), QuantileOf(result.after, 0.95));
  std::fflush(stdout);
  std::fprintf(stderr,
               "%-44s round p99 %7.1f us  eviction p50 %7.1f p99 %7.1f us  Tensor part over "
               "predicted %.3f to %.3f\n",
               fused.name.c_str(), QuantileOf(result.round_us, 0.99),
               QuantileOf(result.eviction_us, 0.5), QuantileOf(result.eviction_us, 0.99),
               QuantileOf(result.after, 0.05), QuantileOf(result.after, 0.95));
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
  if (status.ok()) status = cuda.Make(*cuda_kernel, tensor.original_ms() * kLoadRatio);
  if (!status.ok()) return status;
  int variants = 0;
  for (const uint32_t form : {GPUSHARE_FUSED_PLAIN, GPUSHARE_FUSED_SETMAXNREG}) {
    for (const FusedChoice& fused : FusedOf(pair.tensor, pair.cuda, form)) {
      ++variants;
      Result result;
      Subject subject(gpu, run, tensor, cuda, fused);
      status = subject.Measure(arguments, &result);
      if (!status.ok()) {
        status.message = fused.name + ": " + status.message;
        return status;
      }
      Print(tensor, cuda, fused, result, *first);
      *first = false;
    }
  }
  if (variants > 0) return {};
  return Broken("There is no fused kernel of the pair that this GPU can run.");
}

bool Parse(int argc, char** argv, Arguments* arguments) {
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 >= argc) return false;
    const char* const value = argv[i + 1];
    if (std::strcmp(argv[i], "--pairs") == 0) {
      if (!ParsePairs(value, &arguments->pairs)) return false;
    } else if (std::strcmp(argv[i], "--evictions") == 0) {
      arguments->evictions = std::max(1, std::atoi(value));
    } else if (std::strcmp(argv[i], "--seed") == 0) {
      arguments->seed = static_cast<uint32_t>(std::atoi(value));
    } else {
      return false;
    }
  }
  return true;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  if (!Parse(argc, argv, &arguments)) {
    std::fprintf(stderr, "fused_eviction_benchmark [--pairs a+b,c+d] [--evictions N] [--seed N]\n");
    return 2;
  }
  OverlapGpu gpu;
  CoRun run;
  if (!Open(gpu, run)) return 77;
  std::printf(
      "{\"benchmark\": \"fused_eviction_benchmark\", \"gpu\": \"%s\", \"sms\": %d, \"seed\": %u,\n"
      "  \"note\": \"evictions from the host's call to the host's sight of the record\",\n"
      "  \"fused\": [",
      gpu.model().c_str(), gpu.sms(), arguments.seed);
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
