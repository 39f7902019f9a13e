// See overlap_gpu.h.

#include "benchmarks/gpu/overlap_gpu.h"

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "benchmarks/gpu/co_run.h"
#include "src/core/seams/kernel.h"

namespace gpushare::benchmarks {
namespace {

// Makes a context current for a scope; null: leaves the primary one.
class Pushed {
 public:
  Pushed(const cuda::DriverApi& api, CUcontext context) : api_(api), pushed_(context != nullptr) {
    if (pushed_) api_.cuCtxPushCurrent(context);
  }
  ~Pushed() {
    CUcontext popped = nullptr;
    if (pushed_) api_.cuCtxPopCurrent(&popped);
  }
  Pushed(const Pushed&) = delete;
  Pushed& operator=(const Pushed&) = delete;

 private:
  const cuda::DriverApi& api_;
  const bool pushed_;
};

}  // namespace

kernels::Status Broken(const std::string& message) {
  kernels::Status status;
  status.code = -1;
  status.message = message;
  return status;
}

kernels::Status StatusOf(const absl::Status& status) {
  return status.ok() ? kernels::Status() : Broken(std::string(status.message()));
}

OverlapGpu::~OverlapGpu() {
  // The process ends; plans go before their library.
  plans_.clear();
}

kernels::Status OverlapGpu::Init() {
  // Before CUDA starts: streams that share a hardware queue would wait for each other.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  kernels::Status status = kernels::CudaStatus(cudaSetDevice(0), "cudaSetDevice");
  if (!status.ok()) return status;
  cudaDeviceProp properties = {};
  status = kernels::CudaStatus(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  if (!status.ok()) return status;
  sms_ = properties.multiProcessorCount;
  model_ = properties.name;
  auto context = cuda::Context::Open(0);
  if (!context.ok()) return StatusOf(context.status());
  context_ = *std::move(context);
  places_ = std::make_unique<cuda::Places>(*context_);
  // Without green contexts there are no splits, and the rest is still measured.
  (void)places_->Split(sms_);
  for (CUstream* const stream : {&whole_.tensor, &whole_.cuda}) {
    auto made = places_->MakeStream(core::kWholeDevice, 0);
    if (!made.ok()) return StatusOf(made.status());
    *stream = *made;
  }
  whole_.tensor_sms = sms_;
  whole_.cuda_sms = sms_;
  return workspace_.Allocate(cuda::kWorkspaceBytes);
}

kernels::Status OverlapGpu::Split(int32_t number, Streams* streams) {
  if (const auto known = splits_.find(number); known != splits_.end()) {
    *streams = known->second;
    return {};
  }
  if (number < 1 || number > splits()) {
    return Broken("Split " + std::to_string(number) + " does not exist, and the device has " +
                  std::to_string(splits()) + ".");
  }
  Streams made;
  const auto tensor = places_->Create({0, number, true});
  if (!tensor.ok()) return StatusOf(tensor.status());
  const auto cuda = places_->Create({number, places_->groups() - number, false});
  if (!cuda.ok()) return StatusOf(cuda.status());
  for (const auto& [place, stream] :
       {std::pair{*tensor, &made.tensor}, std::pair{*cuda, &made.cuda}}) {
    auto stream_of = places_->MakeStream(place, 0);
    if (!stream_of.ok()) return StatusOf(stream_of.status());
    *stream = *stream_of;
  }
  made.tensor_sms = places_->place(*tensor).sms;
  made.cuda_sms = places_->place(*cuda).sms;
  made.tensor_context = places_->place(*tensor).context;
  splits_[number] = made;
  *streams = made;
  return {};
}

kernels::Status OverlapGpu::Launch(void* function, const GridOfBlocks& blocks, void** arguments,
                                   CUstream stream) const {
  const CUresult code = context_->api().cuLaunchKernel(
      static_cast<CUfunction>(function), blocks.grid.x, blocks.grid.y, blocks.grid.z,
      blocks.threads, 1, 1, blocks.dynamic_shared_bytes, stream, arguments, nullptr);
  if (code == CUDA_SUCCESS) return {};
  const char* name = "an unknown error";
  context_->api().cuGetErrorName(code, &name);
  return Broken(std::string("cuLaunchKernel answers ") + name + ".");
}

kernels::Status OverlapGpu::Plan(const Product& product, const Streams& streams,
                                 Planned** planned) {
  if (library_ == nullptr) {
    auto library = cuda::OpenCublasLt(context_->api());
    if (!library.ok()) return StatusOf(library.status());
    library_ = *std::move(library);
  }
  Planned& kept = plans_[{product.m, product.n, product.k, streams.tensor_sms}];
  *planned = &kept;
  if (kept.plan != nullptr) return {};
  auto handle = library_->MakeHandle(streams.tensor);
  if (!handle.ok()) return StatusOf(handle.status());
  core::KernelDesc kernel;
  kernel.name = "product";
  kernel.kind = core::TaskKind::kLibrary;
  kernel.library_call.operation = core::LibraryOperation::kMatmul;
  kernel.library_call.type = core::DataType::kBfloat16;
  kernel.library_call.transpose_b = true;
  kernel.library_call.m = product.m;
  kernel.library_call.n = product.n;
  kernel.library_call.k = product.k;
  // On the whole device the library is told nothing, as an application would do.
  const bool whole = streams.tensor_sms == sms_;
  auto plan = library_->MakePlan(*handle, kernel, whole ? 0 : streams.tensor_sms);
  if (!plan.ok()) return StatusOf(plan.status());
  kept.handle = *handle;
  kept.plan = *std::move(plan);
  return {};
}

kernels::Status OverlapGpu::EnqueueProduct(const Product& product, const Streams& streams) {
  const Pushed pushed(context_->api(), streams.tensor_context);
  Planned* planned = nullptr;
  kernels::Status status = Plan(product, streams, &planned);
  if (!status.ok()) return status;
  return StatusOf(planned->plan->Enqueue(planned->handle, streams.tensor, workspace_.data(),
                                         product.arguments));
}

bool Open(OverlapGpu& gpu, CoRun& run) {
  kernels::Status status = gpu.Init();
  if (status.ok()) status = run.Init();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message.c_str());
  return status.ok();
}

}  // namespace gpushare::benchmarks
