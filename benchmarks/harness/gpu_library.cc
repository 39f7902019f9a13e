#include "benchmarks/harness/gpu_library.h"

#include "benchmarks/harness/failure.h"
#include "src/core/seams/kernel.h"

namespace gpushare::benchmarks {

core::LibraryCall MatmulCall(int64_t m, int64_t n, int64_t k) {
  core::LibraryCall call;
  call.operation = core::LibraryOperation::kMatmul;
  call.type = core::DataType::kBfloat16;
  call.transpose_b = true;
  call.m = m;
  call.n = n;
  call.k = k;
  return call;
}

GpuLibrary::GpuLibrary(Kind kind)
    : api_(Take(cuda::LoadDriverApi())),
      backend_(Take(kind == Kind::kCublasLt ? cuda::OpenCublasLt(api_) : cuda::OpenCudnn())) {
  Require(workspace_.Allocate(cuda::kWorkspaceBytes));
}

GpuLibrary::Planned GpuLibrary::Plan(const core::LibraryCall& call, CUstream stream,
                                     int32_t sm_count) {
  if (handles_.count(stream) == 0) handles_[stream] = Take(backend_->MakeHandle(stream));
  core::KernelDesc kernel;
  kernel.name = "library call";
  kernel.code = call;
  void* const handle = handles_[stream];
  return {handle, stream, Take(backend_->MakePlan(handle, kernel, sm_count))};
}

void GpuLibrary::Enqueue(const Planned& planned, const core::LibraryArguments& operands) const {
  Require(planned.plan->Enqueue(planned.handle, planned.stream, workspace_.data(), operands));
}

}  // namespace gpushare::benchmarks
