#include "benchmarks/gpu/overlap/overlap_methods.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <utility>

#include "benchmarks/harness/arguments.h"
#include "benchmarks/harness/gpu_forms.h"
#include "benchmarks/harness/json.h"
#include "benchmarks/harness/quantiles.h"
#include "benchmarks/kernels/fused/fused_catalogue.h"

namespace gpushare::benchmarks {
namespace {

// The Tensor side's blocks are placed before the other side's come.
constexpr uint64_t kPlacedNs = 10'000;
// A side with fewer groups of SMs would take too long to be the best split.
constexpr int32_t kLeastGroups = 3;
// Both sides ran together for so large a part of the Tensor side's time.
constexpr double kOverlapped = 0.97;

void NoneFits(const std::string& why, WayResult* result) {
  if (!result->ran && result->why_not.empty()) result->why_not = why;
}

// Takes the better one, by the total.
void KeepBest(const WayResult& one, WayResult* best) {
  if (!one.ran || (best->ran && best->total_ms <= one.total_ms)) return;
  *best = one;
}

}  // namespace

std::vector<FusedChoice> FusedOf(const Side& tensor, const Side& cuda,
                                 const std::vector<uint32_t>& forms) {
  std::vector<FusedChoice> found;
  for (const uint32_t form : forms) {
    for (const auto* row : kernels::FusedOfPair(tensor.name(), cuda.name())) {
      FusedChoice choice;
      choice.name = row->name;
      if (row->form != form || row->variants(&choice.variants) != 0) continue;
      if (choice.variants.blocks_per_sm > 0) found.push_back(std::move(choice));
    }
  }
  return found;
}

std::vector<FusedChoice> FusedWorkersOf(const Side& tensor, const Side& cuda) {
  std::vector<FusedChoice> found =
      FusedOf(tensor, cuda, {GPUSHARE_FUSED_PLAIN, GPUSHARE_FUSED_SETMAXNREG});
  if (found.empty()) Fail("There is no fused kernel of the pair that this GPU can run.");
  return found;
}

void Ways::RunOnce(const Plan& plan, bool warm_up) {
  CoRun::Work work = plan.work;
  work.warm_up = warm_up;
  if (warm_up && plan.writes_tensor) tensor_.ClearOutput();
  if (warm_up && plan.writes_cuda) cuda_.ClearOutput();
  if (plan.prepare) plan.prepare();
  run_.Run(work);
  if (plan.check) plan.check();
  if (warm_up && plan.writes_tensor) tensor_.CheckBits("in a co-run");
  if (warm_up && plan.writes_cuda) cuda_.CheckBits("in a co-run");
}

void Ways::Time(const Plan& plan, int repeats, WayResult* result) {
  std::vector<double> total;
  std::vector<double> tensor;
  std::vector<double> cuda;
  for (int i = -1; i < repeats; ++i) {
    try {
      RunOnce(plan, i < 0);
    } catch (const Failure& failure) {
      Fail(result->way + ": " + failure.what());
    }
    if (i < 0) continue;
    total.push_back(plan.total ? plan.total() : run_.TotalMs());
    tensor.push_back(run_.Ms(run_.IsSet(CoRun::kInA) ? CoRun::kInA : CoRun::kEndA));
    cuda.push_back(run_.Ms(CoRun::kEndB));
  }
  result->ran = true;
  result->total_ms = Median(std::move(total));
  result->tensor_ms = Median(std::move(tensor));
  result->cuda_ms = Median(std::move(cuda));
}

double Ways::Alone(Side& side) {
  Plan plan;
  plan.work.a = gpu_.whole().tensor;
  plan.work.on_a = [&] { side.EnqueueOriginal(gpu_.whole().tensor); };
  plan.writes_tensor = &side == &tensor_;
  plan.writes_cuda = &side == &cuda_;
  WayResult result;
  result.way = "alone";
  Time(plan, repeats_, &result);
  return result.total_ms;
}

void Ways::ProductAlone(WayResult* result) {
  if (!tensor_.is_product()) return NoneFits("The Tensor side is no matrix product.", result);
  try {
    // Whether the library is there is found out outside of a timed run.
    gpu_.EnqueueProduct(tensor_.product(), gpu_.whole());
  } catch (const Failure& failure) {
    return NoneFits(failure.what(), result);
  }
  Plan plan;
  plan.work.a = gpu_.whole().tensor;
  plan.work.on_a = [this] { gpu_.EnqueueProduct(tensor_.product(), gpu_.whole()); };
  plan.writes_tensor = false;  // its sums have another order
  plan.writes_cuda = false;
  Time(plan, repeats_, result);
}

void Ways::Serial(bool product, WayResult* result) {
  Plan plan;
  plan.work.a = gpu_.whole().tensor;
  plan.work.on_a = [this, product] {
    if (product) {
      gpu_.EnqueueProduct(tensor_.product(), gpu_.whole());
    } else {
      tensor_.EnqueueOriginal(gpu_.whole().tensor);
    }
    run_.SetStamp(CoRun::kInA, gpu_.whole().tensor);
    cuda_.EnqueueOriginal(gpu_.whole().tensor);
  };
  plan.total = [this] { return run_.Ms(CoRun::kEndA); };
  plan.writes_tensor = !product;
  Time(plan, repeats_, result);
}

void Ways::RunTogether(const Together& together, WayResult* result) {
  const Streams& streams = together.streams;
  gpushare_worker_launch tensor = {};
  gpushare_worker_launch cuda = {};
  gpushare_worker_launch more = {};
  uint64_t topped_up = 0;
  Plan plan;
  plan.writes_tensor = !together.product;
  plan.prepare = [&] {
    tensor_.BeginTask();
    cuda_.BeginTask();
    tensor = tensor_.Header();
    cuda = cuda_.Header();
    more = cuda_.TopUp(cuda);
  };
  plan.work.a = streams.tensor;
  plan.work.on_a = [&] {
    if (together.product) {
      gpu_.EnqueueProduct(tensor_.product(), streams);
    } else {
      tensor_.EnqueueWorkers(tensor, tensor_.Workers(gpu_.sms()), streams.tensor);
    }
    run_.SetStamp(CoRun::kInA, streams.tensor);
    if (together.later > 0) cuda_.EnqueueWorkers(more, together.later, streams.tensor);
  };
  plan.work.b = streams.cuda;
  plan.work.b_delay_ns = together.delay_ns;
  plan.work.on_b = [&] { cuda_.EnqueueWorkers(cuda, together.beside, streams.cuda); };
  plan.check = [&] {
    if (!together.product) tensor_.CheckCount(tensor_.Finish(tensor).block_tasks_done);
    topped_up = together.later > 0 ? cuda_.Finish(more, Side::kSecond).block_tasks_done : 0;
    cuda_.CheckCount(topped_up + cuda_.Finish(cuda).block_tasks_done);
  };
  plan.total = [&] {
    const double ms = std::max(run_.Ms(CoRun::kInA), run_.Ms(CoRun::kEndB));
    return topped_up > 0 ? std::max(ms, run_.Ms(CoRun::kEndA)) : ms;
  };
  Time(plan, repeats_, result);
}

// The CUDA-core side's workers fill the room that the Tensor side's leave; when the Tensor side has
// ended, more of them take its place.
void Ways::CoResident(WayResult* result) {
  const uint32_t fit =
      std::min(cuda_.workers_per_sm(),
               BlocksBeside(tensor_.Needs(), tensor_.workers_per_sm(), cuda_.Needs(), SmHas()));
  if (fit == 0) {
    NoneFits("No worker of the CUDA-core kernel fits beside the Tensor kernel's in an SM.", result);
  }
  for (uint32_t workers = 1; workers <= fit;
       workers = workers < fit ? std::min(2 * workers, fit) : fit + 1) {
    WayResult one;
    one.way = result->way;
    one.variant = std::to_string(workers) + " workers an SM";
    const uint32_t beside = workers * static_cast<uint32_t>(gpu_.sms());
    RunTogether({gpu_.whole(), false, beside, cuda_.Workers(gpu_.sms()) - beside, kPlacedNs}, &one);
    KeepBest(one, result);
  }
}

void Ways::EnqueueFused(const FusedChoice& fused, const gpushare_worker_launch& tensor,
                        const gpushare_worker_launch& cuda, CUstream stream) {
  const gpushare_fused_variants& variants = fused.variants;
  uint32_t blocks = variants.blocks_per_sm * static_cast<uint32_t>(gpu_.sms());
  if (variants.form == GPUSHARE_FUSED_DIRECT) {
    const auto needed = [](uint32_t tasks, uint32_t each) { return (tasks + each - 1) / each; };
    blocks = std::max(needed(tensor.block_count, variants.tensor_blocks),
                      needed(cuda.block_count, variants.cuda_blocks));
  }
  tensor_.launcher().UseStream(stream);
  Require(tensor_.launcher().LaunchFused(variants, {tensor, tensor_.task().params},
                                         {cuda, cuda_.task().params}, blocks));
}

void Ways::Fused(const FusedChoice& fused, uint32_t cuda_tasks, WayResult* result) {
  const bool direct = fused.variants.form == GPUSHARE_FUSED_DIRECT;
  gpushare_worker_launch tensor = {};
  gpushare_worker_launch cuda = {};
  std::vector<double> tensor_part;
  std::vector<double> cuda_part;
  Plan plan;
  plan.writes_cuda = cuda_tasks == cuda_.task().block_tasks();
  plan.prepare = [&] {
    tensor_.BeginTask();
    cuda_.BeginTask();
    tensor = direct ? WithoutRecord(tensor_.Header()) : tensor_.Header();
    cuda = direct ? WithoutRecord(cuda_.Header()) : cuda_.Header();
    cuda.block_count = cuda_tasks;
  };
  plan.work.a = gpu_.whole().tensor;
  plan.work.on_a = [&] { EnqueueFused(fused, tensor, cuda, gpu_.whole().tensor); };
  const auto finish = [](Side& side, const gpushare_worker_launch& header,
                         std::vector<double>& part) {
    const gpushare_worker_completion record = side.Finish(header);
    side.CheckCount(record.block_tasks_done, header.block_count);
    part.push_back(static_cast<double>(record.end_globaltimer_ns - record.start_globaltimer_ns) /
                   1e6);
  };
  plan.check = [&] {
    if (direct) return;  // without records
    finish(tensor_, tensor, tensor_part);
    finish(cuda_, cuda, cuda_part);
  };
  result->variant = fused.name;
  Time(plan, repeats_, result);
  if (direct) return;
  result->tensor_ms = Median(std::move(tensor_part));
  result->cuda_ms = Median(std::move(cuda_part));
}

void Ways::FusedForm(uint32_t form, WayResult* result) {
  const std::vector<FusedChoice> all = FusedOf(tensor_, cuda_, {form});
  if (all.empty()) NoneFits("There is no such fused kernel that this GPU can run.", result);
  for (const FusedChoice& fused : all) {
    WayResult one;
    one.way = result->way;
    Fused(fused, cuda_.task().block_tasks(), &one);
    KeepBest(one, result);
  }
}

// Both sides saturated: the CUDA-core side has its task twice, and is evicted when the Tensor side
// ends.
Ways::Speeds Ways::SpeedsAt(const Streams& streams, double alone_ms) {
  const std::array<Side::Launcher, 2> both = {Side::kFirst, Side::kSecond};
  std::array<gpushare_worker_launch, 2> headers = {};
  bool evicted = false;
  uint64_t done = 0;
  Plan plan;
  plan.writes_tensor = false;  // the library's sums have another order
  plan.writes_cuda = false;    // evicted before its end
  plan.prepare = [&] {
    cuda_.BeginTask();
    for (const auto launcher : both) headers[launcher] = cuda_.Header(launcher);
    evicted = false;
  };
  plan.work.a = streams.tensor;
  plan.work.on_a = [&] { gpu_.EnqueueProduct(tensor_.product(), streams); };
  plan.work.b = streams.cuda;
  plan.work.on_b = [&] {
    for (const gpushare_worker_launch& header : headers) {
      cuda_.EnqueueWorkers(header, cuda_.Workers(streams.cuda_sms), streams.cuda);
    }
  };
  plan.work.meanwhile = [&] {
    if (evicted || !run_.IsSet(CoRun::kEndA)) return;
    evicted = true;
    for (const auto launcher : both) {
      Require(cuda_.launcher(launcher).Evict(headers[launcher].epoch, 0));
    }
  };
  plan.check = [&] {
    done = 0;
    for (const auto launcher : both) {
      done += cuda_.Finish(headers[launcher], launcher).block_tasks_done;
    }
  };
  WayResult result;
  result.way = "partitions of " + std::to_string(streams.tensor_sms) + " and " +
               std::to_string(streams.cuda_sms) + " SMs";
  Time(plan, 1, &result);
  const double cuda_work =
      cuda_.original_ms() * static_cast<double>(done) / cuda_.task().block_tasks();
  return {alone_ms / result.tensor_ms + cuda_work / result.cuda_ms,
          result.cuda_ms >= kOverlapped * result.tensor_ms};
}

// The split where the speeds are best; there, at load ratio 1, the CUDA-core side takes the SMs
// that the Tensor side leaves when it ends first.
void Ways::Partitions(double alone_ms, WayResult* result) {
  double best = 0;
  Streams at;
  for (const bool must_overlap : {true, false}) {
    for (int32_t number = kLeastGroups; number <= gpu_.splits() + 1 - kLeastGroups; ++number) {
      if (best > 0 && !must_overlap) break;  // a fair one was found
      Speeds speeds;
      Streams streams;
      try {
        streams = gpu_.Split(number);
        speeds = SpeedsAt(streams, alone_ms);
      } catch (const Failure& failure) {
        result->why_not = failure.what();  // the library may have no algorithm for so few SMs
        continue;
      }
      if (speeds.sum <= best || (must_overlap && !speeds.overlapped)) continue;
      best = speeds.sum;
      at = streams;
    }
  }
  if (best <= 0) return NoneFits("The driver splits this GPU into no partitions.", result);
  result->variant = std::to_string(at.tensor_sms) + " and " + std::to_string(at.cuda_sms) + " SMs";
  result->speeds = best;
  result->tensor_sms = at.tensor_sms;
  RunTogether({at, true, cuda_.Workers(at.cuda_sms), cuda_.Workers(at.tensor_sms)}, result);
}

int RunPairs(const std::vector<Pair>& pairs, Report& report,
             const std::function<void(const Pair&)>& run, double until_s) {
  bool failed = false;
  Json left_out = Json::array();
  for (const Pair& pair : pairs) {
    std::string why;
    if (NowSeconds() > until_s) {
      why = "no time was left";
    } else if (kernels::FindKernel(pair.tensor.c_str()) == nullptr ||
               kernels::FindKernel(pair.cuda.c_str()) == nullptr) {
      why = "This build lacks one of the kernels.";
    } else {
      try {
        run(pair);
        continue;
      } catch (const Failure& failure) {
        why = failure.what();
        failed = true;
      }
    }
    const std::string name = pair.tensor + "+" + pair.cuda;
    std::fprintf(stderr, "%s: %s\n", name.c_str(), why.c_str());
    left_out.push_back({{"pair", name}, {"why", why}});
  }
  report.End({{"left_out", left_out}});
  return failed ? kFailed : 0;
}

std::vector<Pair> PairsOf(Arguments& given, const std::vector<Pair>& otherwise) {
  const std::optional<std::string> text = given.Value("--pairs");
  if (!text.has_value()) return otherwise;
  std::vector<Pair> pairs;
  if (ParsePairs(*text, &pairs)) return pairs;
  throw Failure("--pairs is '" + *text + "', and it must be TENSOR+CUDA,...", kBadUse);
}

}  // namespace gpushare::benchmarks
