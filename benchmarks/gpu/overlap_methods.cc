// See overlap_methods.h.

#include "benchmarks/gpu/overlap_methods.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "benchmarks/gpu/form_timer.h"
#include "benchmarks/kernels/fused/fused_catalogue.h"

namespace gpushare::benchmarks {
namespace {

using kernels::Status;

// The Tensor side's blocks are placed before the other side's come.
constexpr uint64_t kPlacedNs = 10'000;
// A side with fewer groups of SMs would take too long to be the best split.
constexpr int32_t kLeastGroups = 3;
// Both sides ran together for so large a part of the Tensor side's time.
constexpr double kCompany = 0.97;

Status CheckCount(const Side& side, uint64_t done) {
  if (done == side.task().block_tasks()) return {};
  return Broken("Kernel '" + std::string(side.kernel().name) + "' executed " +
                std::to_string(done) + " block tasks, and its task has " +
                std::to_string(side.task().block_tasks()) + ".");
}

// Adds what a launch executed.
Status Count(Side& side, Side::Launcher launcher, const gpushare_worker_launch& header,
             uint64_t* done) {
  gpushare_worker_completion record = {};
  const Status status = side.Finish(launcher, header, &record);
  *done += record.block_tasks_done;
  return status;
}

gpushare_worker_launch WithoutClaims(gpushare_worker_launch header) {
  header.eviction_word = nullptr;
  header.counter = nullptr;
  header.scratch = nullptr;
  header.completion = nullptr;
  header.yield_list = nullptr;
  header.yield_capacity = 0;
  return header;
}

void NoneFits(const std::string& why, WayResult* result) {
  if (!result->ran && result->why_not.empty()) result->why_not = why;
}

}  // namespace

std::vector<FusedChoice> FusedOf(const std::string& tensor, const std::string& cuda,
                                 uint32_t form) {
  std::vector<FusedChoice> found;
  for (const gpushare_fused_kernel& row : kernels::FusedCatalogue()) {
    if (row.form != form || tensor != row.tensor_name || cuda != row.cuda_name) continue;
    FusedChoice choice;
    choice.name = row.name;
    if (row.variants(&choice.variants) != 0 || choice.variants.blocks_per_sm == 0) continue;
    found.push_back(std::move(choice));
  }
  return found;
}

void KeepBest(const WayResult& one, WayResult* best) {
  if (!one.ran || (best->ran && best->total_ms <= one.total_ms)) return;
  const std::string way = best->way;
  *best = one;
  best->way = way;
}

Status Ways::CheckBits(const Plan& plan) {
  for (const auto& [side, written] :
       {std::pair{&tensor_, plan.writes_tensor}, std::pair{&cuda_, plan.writes_cuda}}) {
    if (!written) continue;
    bool right = false;
    const Status status = side->IsRight(&right);
    if (!status.ok()) return status;
    if (!right) {
      return Broken("Kernel '" + std::string(side->kernel().name) +
                    "' gives other bits than its original grid.");
    }
  }
  return {};
}

Status Ways::Time(const Plan& plan, int repeats, WayResult* result) {
  std::vector<double> total;
  std::vector<double> tensor;
  std::vector<double> cuda;
  CoRun::Work work = plan.work;
  for (int i = -1; i < repeats; ++i) {
    work.warm_up = i < 0;
    Status status;
    if (i < 0 && plan.writes_tensor) status = tensor_.ClearOutput();
    if (status.ok() && i < 0 && plan.writes_cuda) status = cuda_.ClearOutput();
    if (status.ok() && plan.prepare) status = plan.prepare();
    if (status.ok()) status = run_.Run(work);
    if (status.ok() && plan.check) status = plan.check();
    if (status.ok() && i < 0) status = CheckBits(plan);
    if (!status.ok()) {
      status.message = result->way + ": " + status.message;
      return status;
    }
    if (i < 0) continue;
    total.push_back(plan.total ? plan.total() : run_.TotalMs());
    tensor.push_back(run_.IsSet(CoRun::kInA) ? run_.Ms(CoRun::kInA) : run_.Ms(CoRun::kEndA));
    cuda.push_back(run_.IsSet(CoRun::kInB) ? run_.Ms(CoRun::kInB) : run_.Ms(CoRun::kEndB));
  }
  result->ran = true;
  result->total_ms = kernels::Median(std::move(total));
  result->tensor_ms = kernels::Median(std::move(tensor));
  result->cuda_ms = kernels::Median(std::move(cuda));
  return {};
}

Status Ways::EnqueueTensor(bool product, const Streams& streams) {
  return product ? gpu_.EnqueueProduct(tensor_.product(), streams)
                 : tensor_.EnqueueOriginal(streams.tensor);
}

Status Ways::Alone(double* tensor_ms, double* cuda_ms) {
  const Streams& whole = gpu_.whole();
  for (Side* const side : {&tensor_, &cuda_}) {
    Plan plan;
    plan.work.a = whole.tensor;
    plan.work.on_a = [&] { return side->EnqueueOriginal(whole.tensor); };
    plan.writes_tensor = side == &tensor_;
    plan.writes_cuda = side == &cuda_;
    WayResult result;
    result.way = "alone";
    const Status status = Time(plan, repeats_, &result);
    if (!status.ok()) return status;
    *(side == &tensor_ ? tensor_ms : cuda_ms) = result.total_ms;
  }
  return {};
}

Status Ways::ProductAlone(WayResult* result) {
  if (!tensor_.is_product()) {
    NoneFits("The Tensor side is no matrix product.", result);
    return {};
  }
  // Whether the library is there is found out outside of a timed run.
  const Status status = gpu_.EnqueueProduct(tensor_.product(), gpu_.whole());
  if (!status.ok()) {
    NoneFits(status.message, result);
    return {};
  }
  Plan plan;
  plan.work.a = gpu_.whole().tensor;
  plan.work.on_a = [this] { return EnqueueTensor(true, gpu_.whole()); };
  plan.writes_tensor = false;  // its sums have another order
  plan.writes_cuda = false;
  return Time(plan, repeats_, result);
}

Status Ways::Serial(bool product, WayResult* result) {
  Plan plan;
  plan.work.a = gpu_.whole().tensor;
  plan.work.on_a = [this, product] {
    Status status = EnqueueTensor(product, gpu_.whole());
    if (status.ok()) status = run_.SetStamp(CoRun::kInA, gpu_.whole().tensor);
    if (status.ok()) status = cuda_.EnqueueOriginal(gpu_.whole().tensor);
    return status;
  };
  plan.total = [this] { return run_.Ms(CoRun::kEndA); };
  plan.writes_tensor = !product;
  return Time(plan, repeats_, result);
}

Status Ways::TwoStreams(WayResult* result) {
  Plan plan;
  plan.work.a = gpu_.whole().tensor;
  plan.work.b = gpu_.whole().cuda;
  plan.work.on_a = [this] { return tensor_.EnqueueOriginal(gpu_.whole().tensor); };
  plan.work.on_b = [this] { return cuda_.EnqueueOriginal(gpu_.whole().cuda); };
  return Time(plan, repeats_, result);
}

// The CUDA-core side's workers fill the room that the Tensor side's leave; when the Tensor side has
// ended, more of them take its place.
Status Ways::CoResidentAt(uint32_t workers_per_sm, WayResult* result) {
  const Streams& whole = gpu_.whole();
  const uint32_t beside = FullWorkers(cuda_, gpu_.sms()) / cuda_.workers_per_sm() * workers_per_sm;
  const uint32_t later = FullWorkers(cuda_, gpu_.sms()) - beside;
  gpushare_worker_launch tensor = {};
  gpushare_worker_launch cuda = {};
  gpushare_worker_launch more = {};
  uint64_t topped_up = 0;
  Plan plan;
  plan.prepare = [&] {
    Status status = tensor_.BeginTask();
    if (status.ok()) status = cuda_.BeginTask();
    tensor = tensor_.Header();
    cuda = cuda_.Header();
    more = cuda_.TopUp(cuda);
    return status;
  };
  plan.work.a = whole.tensor;
  plan.work.on_a = [&] {
    Status status = tensor_.EnqueueWorkers(tensor, FullWorkers(tensor_, gpu_.sms()), whole.tensor);
    if (status.ok()) status = run_.SetStamp(CoRun::kInA, whole.tensor);
    if (status.ok() && later > 0) status = cuda_.EnqueueWorkers(more, later, whole.tensor);
    return status;
  };
  plan.work.b = whole.cuda;
  plan.work.b_delay_ns = kPlacedNs;
  plan.work.on_b = [&] { return cuda_.EnqueueWorkers(cuda, beside, whole.cuda); };
  plan.check = [&] {
    uint64_t done = 0;
    Status status = Count(tensor_, Side::kFirst, tensor, &done);
    if (status.ok()) status = CheckCount(tensor_, done);
    topped_up = 0;
    if (status.ok() && later > 0) status = Count(cuda_, Side::kSecond, more, &topped_up);
    done = topped_up;
    if (status.ok()) status = Count(cuda_, Side::kFirst, cuda, &done);
    return status.ok() ? CheckCount(cuda_, done) : status;
  };
  plan.total = [&] {
    const double ms = std::max(run_.Ms(CoRun::kInA), run_.Ms(CoRun::kEndB));
    return topped_up > 0 ? std::max(ms, run_.Ms(CoRun::kEndA)) : ms;
  };
  result->variant = std::to_string(workers_per_sm) + " workers an SM";
  return Time(plan, repeats_, result);
}

Status Ways::CoResident(WayResult* result) {
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
    const Status status = CoResidentAt(workers, &one);
    if (!status.ok()) return status;
    KeepBest(one, result);
  }
  return {};
}

Status Ways::EnqueueFused(const FusedChoice& fused, const gpushare_worker_launch& tensor,
                          const gpushare_worker_launch& cuda, CUstream stream) const {
  const gpushare_fused_variants& variants = fused.variants;
  uint32_t blocks = variants.blocks_per_sm * static_cast<uint32_t>(gpu_.sms());
  if (variants.form == GPUSHARE_FUSED_DIRECT) {
    const auto needed = [](uint32_t tasks, uint32_t each) { return (tasks + each - 1) / each; };
    blocks = std::max(needed(tensor.block_count, variants.tensor_blocks),
                      needed(cuda.block_count, variants.cuda_blocks));
  }
  void* arguments[] = {
      const_cast<gpushare_worker_launch*>(&tensor), const_cast<void*>(tensor_.task().params),
      const_cast<gpushare_worker_launch*>(&cuda), const_cast<void*>(cuda_.task().params)};
  return gpu_.Launch(variants.function,
                     {{blocks, 1, 1}, variants.threads_per_block, variants.dynamic_shared_bytes},
                     arguments, stream);
}

Status Ways::FusedAt(const FusedChoice& fused, WayResult* result) {
  gpushare_worker_launch tensor = {};
  gpushare_worker_launch cuda = {};
  std::vector<double> tensor_part;
  std::vector<double> cuda_part;
  Plan plan;
  plan.prepare = [&] {
    Status status = tensor_.BeginTask();
    if (status.ok()) status = cuda_.BeginTask();
    tensor = tensor_.Header();
    cuda = cuda_.Header();
    return status;
  };
  plan.work.a = gpu_.whole().tensor;
  plan.work.on_a = [&] { return EnqueueFused(fused, tensor, cuda, gpu_.whole().tensor); };
  plan.check = [&] {
    for (const auto& [side, header, part] :
         {std::tuple{&tensor_, &tensor, &tensor_part}, std::tuple{&cuda_, &cuda, &cuda_part}}) {
      gpushare_worker_completion record = {};
      Status status = side->Finish(Side::kFirst, *header, &record);
      if (status.ok()) status = CheckCount(*side, record.block_tasks_done);
      if (!status.ok()) return status;
      part->push_back(static_cast<double>(record.end_globaltimer_ns - record.start_globaltimer_ns) /
                      1e6);
    }
    return Status();
  };
  result->variant = fused.name;
  const Status status = Time(plan, repeats_, result);
  result->tensor_ms = kernels::Median(std::move(tensor_part));
  result->cuda_ms = kernels::Median(std::move(cuda_part));
  return status;
}

Status Ways::FusedDirectAt(const FusedChoice& fused, WayResult* result) {
  Plan plan;
  plan.work.a = gpu_.whole().tensor;
  plan.work.on_a = [&] {
    return EnqueueFused(fused, WithoutClaims(tensor_.Header()), WithoutClaims(cuda_.Header()),
                        gpu_.whole().tensor);
  };
  result->variant = fused.name;
  return Time(plan, repeats_, result);
}

Status Ways::FusedForm(uint32_t form, WayResult* result) {
  const std::vector<FusedChoice> all = FusedOf(tensor_.kernel().name, cuda_.kernel().name, form);
  if (all.empty()) NoneFits("There is no such fused kernel that this GPU can run.", result);
  for (const FusedChoice& fused : all) {
    WayResult one;
    one.way = result->way;
    const Status status =
        form == GPUSHARE_FUSED_DIRECT ? FusedDirectAt(fused, &one) : FusedAt(fused, &one);
    if (!status.ok()) return status;
    KeepBest(one, result);
  }
  return {};
}

// Both sides saturated: the CUDA-core side has its task twice, and is evicted when the Tensor side
// ends.
Status Ways::SpeedsAt(const Streams& streams, bool product, double alone_ms, double* sum,
                      bool* company) {
  const uint32_t workers = FullWorkers(cuda_, streams.cuda_sms);
  gpushare_worker_launch first = {};
  gpushare_worker_launch second = {};
  bool evicted = false;
  uint64_t done = 0;
  Plan plan;
  plan.writes_tensor = !product;
  plan.writes_cuda = false;  // evicted before its end
  plan.prepare = [&] {
    const Status status = cuda_.BeginTask();
    first = cuda_.Header(Side::kFirst);
    second = cuda_.Header(Side::kSecond);
    evicted = false;
    return status;
  };
  plan.work.a = streams.tensor;
  plan.work.on_a = [&] { return EnqueueTensor(product, streams); };
  plan.work.b = streams.cuda;
  plan.work.on_b = [&] {
    const Status status = cuda_.EnqueueWorkers(first, workers, streams.cuda);
    return status.ok() ? cuda_.EnqueueWorkers(second, workers, streams.cuda) : status;
  };
  plan.work.meanwhile = [&] {
    if (evicted || !run_.IsSet(CoRun::kEndA)) return Status();
    evicted = true;
    const Status status = cuda_.Evict(Side::kFirst, first);
    return status.ok() ? cuda_.Evict(Side::kSecond, second) : status;
  };
  plan.check = [&] {
    done = 0;
    const Status status = Count(cuda_, Side::kFirst, first, &done);
    return status.ok() ? Count(cuda_, Side::kSecond, second, &done) : status;
  };
  WayResult result;
  result.way = "partitions of " + std::to_string(streams.tensor_sms) + " and " +
               std::to_string(streams.cuda_sms) + " SMs";
  const Status status = Time(plan, 1, &result);
  if (!status.ok()) return status;
  const double cuda_work =
      cuda_.original_ms() * static_cast<double>(done) / cuda_.task().block_tasks();
  *sum = alone_ms / result.tensor_ms + cuda_work / result.cuda_ms;
  *company = result.cuda_ms >= kCompany * result.tensor_ms;
  return {};
}

// At load ratio 1, to the end of both: whichever side ends first leaves its SMs to the other.
Status Ways::Elastic(const Streams& streams, bool product, WayResult* result) {
  gpushare_worker_launch tensor = {};
  gpushare_worker_launch more_tensor = {};
  gpushare_worker_launch cuda = {};
  gpushare_worker_launch more_cuda = {};
  uint64_t tensor_later = 0;
  uint64_t cuda_later = 0;
  Plan plan;
  plan.writes_tensor = !product;
  plan.prepare = [&] {
    Status status = tensor_.BeginTask();
    if (status.ok()) status = cuda_.BeginTask();
    tensor = tensor_.Header();
    more_tensor = tensor_.TopUp(tensor);
    cuda = cuda_.Header();
    more_cuda = cuda_.TopUp(cuda);
    return status;
  };
  plan.work.a = streams.tensor;
  plan.work.on_a = [&] {
    Status status = product ? EnqueueTensor(true, streams)
                            : tensor_.EnqueueWorkers(
                                  tensor, FullWorkers(tensor_, streams.tensor_sms), streams.tensor);
    if (status.ok()) status = run_.SetStamp(CoRun::kInA, streams.tensor);
    if (!status.ok()) return status;
    return cuda_.EnqueueWorkers(more_cuda, FullWorkers(cuda_, streams.tensor_sms), streams.tensor);
  };
  plan.work.b = streams.cuda;
  plan.work.on_b = [&] {
    Status status = cuda_.EnqueueWorkers(cuda, FullWorkers(cuda_, streams.cuda_sms), streams.cuda);
    if (status.ok()) status = run_.SetStamp(CoRun::kInB, streams.cuda);
    if (!status.ok() || product) return status;
    return tensor_.EnqueueWorkers(more_tensor, FullWorkers(tensor_, streams.cuda_sms),
                                  streams.cuda);
  };
  plan.check = [&] {
    cuda_later = 0;
    Status status = Count(cuda_, Side::kSecond, more_cuda, &cuda_later);
    uint64_t done = cuda_later;
    if (status.ok()) status = Count(cuda_, Side::kFirst, cuda, &done);
    if (status.ok()) status = CheckCount(cuda_, done);
    tensor_later = 0;
    if (!status.ok() || product) return status;
    status = Count(tensor_, Side::kSecond, more_tensor, &tensor_later);
    done = tensor_later;
    if (status.ok()) status = Count(tensor_, Side::kFirst, tensor, &done);
    return status.ok() ? CheckCount(tensor_, done) : status;
  };
  plan.total = [&] {
    double ms = std::max(run_.Ms(CoRun::kInA), run_.Ms(CoRun::kInB));
    if (cuda_later > 0) ms = std::max(ms, run_.Ms(CoRun::kEndA));
    return tensor_later > 0 ? std::max(ms, run_.Ms(CoRun::kEndB)) : ms;
  };
  return Time(plan, repeats_, result);
}

Status Ways::Partitions(bool product, double alone_ms, WayResult* result) {
  double best = 0;
  Streams at;
  for (const bool wants_company : {true, false}) {
    for (int32_t number = kLeastGroups; number <= gpu_.splits() + 1 - kLeastGroups; ++number) {
      if (best > 0 && !wants_company) break;  // a fair one was found
      Streams streams;
      Status status = gpu_.Split(number, &streams);
      double sum = 0;
      bool company = false;
      if (status.ok()) status = SpeedsAt(streams, product, alone_ms, &sum, &company);
      if (!status.ok() && !product) return status;
      if (!status.ok()) {  // the library may have no algorithm for so few SMs
        result->why_not = status.message;
        continue;
      }
      if (sum <= best || (wants_company && !company)) continue;
      best = sum;
      at = streams;
    }
  }
  if (best <= 0) {
    NoneFits("The driver splits this GPU into no partitions.", result);
    return {};
  }
  result->variant = std::to_string(at.tensor_sms) + " and " + std::to_string(at.cuda_sms) + " SMs";
  result->speeds = best;
  result->tensor_sms = at.tensor_sms;
  return Elastic(at, product, result);
}

}  // namespace gpushare::benchmarks
