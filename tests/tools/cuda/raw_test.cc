// CudaRawApp on a CUDA runtime of the test's own, whose streams end when the test says so: what an
// app does where its work hangs. Needs no GPU.

#include "tools/gpushare/cuda/raw.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace {

struct FakeRuntime {
  int busy_queries = 0;  // stream queries that say "not ready"; -1: all of them
  std::vector<std::string> calls;

  cudaError_t Note(const char* call) {
    calls.emplace_back(call);
    return cudaSuccess;
  }
  int Count(const std::string& call) const {
    int count = 0;
    for (const std::string& one : calls) count += one == call;
    return count;
  }
};

FakeRuntime& Fake() {
  static FakeRuntime fake;
  return fake;
}

template <class Handle>
cudaError_t Give(Handle* handle) {
  static char anything;
  *handle = reinterpret_cast<Handle>(&anything);
  return cudaSuccess;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): CUDA's names
extern "C" {

cudaError_t CUDARTAPI cudaSetDevice(int) { return cudaSuccess; }
cudaError_t CUDARTAPI cudaDeviceGetStreamPriorityRange(int* lowest, int* highest) {
  *lowest = *highest = 0;
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return Give(stream);
}
cudaError_t CUDARTAPI cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  return Give(stream);
}
cudaError_t CUDARTAPI cudaStreamSynchronize(cudaStream_t) { return Fake().Note("synchronize"); }
cudaError_t CUDARTAPI cudaStreamQuery(cudaStream_t) {
  Fake().Note("query");
  if (Fake().busy_queries == 0) return cudaSuccess;
  if (Fake().busy_queries > 0) --Fake().busy_queries;
  return cudaErrorNotReady;
}
cudaError_t CUDARTAPI cudaStreamDestroy(cudaStream_t) { return Fake().Note("destroy stream"); }
cudaError_t CUDARTAPI cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return Give(event); }
cudaError_t CUDARTAPI cudaEventDestroy(cudaEvent_t) { return Fake().Note("destroy event"); }
cudaError_t CUDARTAPI cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t CUDARTAPI cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
cudaError_t CUDARTAPI cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) {
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaLaunchKernel(const void*, dim3, dim3, void**, size_t, cudaStream_t) {
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) { return Give(graph); }
cudaError_t CUDARTAPI cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t, unsigned long long) {
  return Give(exec);
}
cudaError_t CUDARTAPI cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
cudaError_t CUDARTAPI cudaGraphLaunch(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
cudaError_t CUDARTAPI cudaGraphDestroy(cudaGraph_t) { return cudaSuccess; }
cudaError_t CUDARTAPI cudaGraphExecDestroy(cudaGraphExec_t) { return Fake().Note("destroy graph"); }
cudaError_t CUDARTAPI cudaMalloc(void** data, size_t) { return Give(data); }
cudaError_t CUDARTAPI cudaFree(void*) { return Fake().Note("free"); }
const char* CUDARTAPI cudaGetErrorName(cudaError_t) { return "cudaError"; }
const char* CUDARTAPI cudaGetErrorString(cudaError_t) { return "an error"; }

}  // extern "C"
// NOLINTEND(readability-identifier-naming)

namespace gpushare::tool {
namespace {

class CudaRawAppTest : public ::testing::Test {
 protected:
  CudaRawAppTest() { Fake() = FakeRuntime(); }

  // Makes an app with a mark and a graph, ends it and returns how long that took.
  double EndSeconds(int64_t drain_ns) {
    RawOptions options;
    options.drain_ns = drain_ns;
    auto app = std::make_unique<CudaRawApp>(0, options, hung_);
    app->AddGraph([](void*) {});
    app->Launch(0);
    const auto begin = std::chrono::steady_clock::now();
    app.reset();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  bool hung_ = false;
};

TEST_F(CudaRawAppTest, ItsEndWaitsForItsWorkAndGivesEverythingBack) {
  Fake().busy_queries = 20;
  EndSeconds(10'000'000'000);
  EXPECT_FALSE(hung_);
  EXPECT_EQ(Fake().Count("query"), 21);
  EXPECT_EQ(Fake().Count("destroy graph"), 1);
  EXPECT_EQ(Fake().Count("destroy event"), 1);
  EXPECT_EQ(Fake().Count("destroy stream"), 1);
}

TEST_F(CudaRawAppTest, AHungKernelDoesNotHoldTheProcessAndWhatItUsesIsLeft) {
  Fake().busy_queries = -1;
  testing::internal::CaptureStderr();
  EXPECT_GE(EndSeconds(100'000'000), 0.1);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(hung_);
  EXPECT_NE(said.find("does not end within 0.1 s"), std::string::npos) << said;
  for (const char* call :
       {"synchronize", "destroy graph", "destroy event", "destroy stream", "free"}) {
    EXPECT_EQ(Fake().Count(call), 0) << call;
  }
}

TEST_F(CudaRawAppTest, TheNextAppOfAHungDeviceIsNotWaitedForAgain) {
  Fake().busy_queries = -1;
  hung_ = true;
  EXPECT_LT(EndSeconds(60'000'000'000), 10);
  EXPECT_EQ(Fake().Count("query"), 1);
  EXPECT_EQ(Fake().Count("destroy stream"), 0);
}

}  // namespace
}  // namespace gpushare::tool
