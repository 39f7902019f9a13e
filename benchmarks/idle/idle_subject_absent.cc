// A build without CUDA. See idle_subject.h.

#include "benchmarks/harness/failure.h"
#include "benchmarks/idle/idle_subject.h"

namespace gpushare::benchmarks {

std::unique_ptr<IdleSubject> MakeCudaSubject(const SubjectOptions& /*options*/) {
  throw Failure("This build has no CUDA.", kNoGpu);
}

std::string GpuModel() { return ""; }

}  // namespace gpushare::benchmarks
