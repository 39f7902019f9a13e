#include "benchmarks/harness/gpu_cublaslt.h"

#include "benchmarks/harness/failure.h"
#include "src/core/seams/kernel.h"

namespace gpushare::benchmarks {

CublasLt::CublasLt() : api_(Take(cuda::LoadDriverApi())), backend_(Take(cuda::OpenCublasLt(api_))) {
  Require(workspace_.Allocate(cuda::kWorkspaceBytes));
}

void CublasLt::Enqueue(const Product& product, CUstream stream, int32_t sm_count) {
  Planned& planned = plans_[{product.m, product.n, product.k,
                             static_cast<int64_t>(reinterpret_cast<uintptr_t>(stream)), sm_count}];
  if (planned.plan == nullptr) Plan(product, stream, sm_count, planned);
  Require(planned.plan->Enqueue(planned.handle, stream, workspace_.data(), product.operands));
}

void CublasLt::Plan(const Product& product, CUstream stream, int32_t sm_count, Planned& planned) {
  if (handles_.count(stream) == 0) handles_[stream] = Take(backend_->MakeHandle(stream));
  planned.handle = handles_[stream];
  core::KernelDesc kernel;
  kernel.name = "product";
  kernel.kind = core::TaskKind::kLibrary;
  kernel.library_call.operation = core::LibraryOperation::kMatmul;
  kernel.library_call.type = core::DataType::kBfloat16;
  kernel.library_call.transpose_b = true;
  kernel.library_call.m = product.m;
  kernel.library_call.n = product.n;
  kernel.library_call.k = product.k;
  planned.plan = Take(backend_->MakePlan(planned.handle, kernel, sm_count));
}

}  // namespace gpushare::benchmarks
