#include "benchmarks/gpu/gemm_library.h"

#include <string>
#include <utility>

#include "benchmarks/kernels/workload_base.h"

namespace gpushare::kernels {
namespace {

Status FromAbsl(const absl::Status& status) {
  if (status.ok()) return {};
  return InvalidOption(std::string(status.message()));
}

}  // namespace

GemmLibrary::~GemmLibrary() {
  if (handle_ != nullptr) backend_->DestroyHandle(handle_);
}

Status GemmLibrary::Init(CUstream_st* stream) {
  stream_ = stream;
  auto api = cuda::LoadDriverApi();
  if (!api.ok()) return FromAbsl(api.status());
  api_ = *api;
  auto backend = cuda::OpenCublasLt(api_);
  if (!backend.ok()) return FromAbsl(backend.status());
  backend_ = *std::move(backend);
  auto handle = backend_->MakeHandle(stream);
  if (!handle.ok()) return FromAbsl(handle.status());
  handle_ = *handle;
  return workspace_.Allocate(cuda::kWorkspaceBytes);
}

Status GemmLibrary::Plan(const GemmProblem& problem) {
  core::KernelDesc kernel;
  kernel.library_call.operation = core::LibraryOperation::kMatmul;
  kernel.library_call.type = core::DataType::kBfloat16;
  kernel.library_call.transpose_b = true;
  kernel.library_call.m = problem.m;
  kernel.library_call.n = problem.n;
  kernel.library_call.k = problem.k;
  auto plan = backend_->MakePlan(handle_, kernel, 0);
  if (!plan.ok()) return FromAbsl(plan.status());
  plan_ = *std::move(plan);
  operands_.a = problem.a;
  operands_.b = problem.b;
  operands_.d = problem.c;
  return {};
}

Status GemmLibrary::Launch() {
  return FromAbsl(plan_->Enqueue(handle_, stream_, workspace_.data(), operands_));
}

}  // namespace gpushare::kernels
