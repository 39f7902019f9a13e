// Which engine a convolution gets, and which form each call takes, on a fake cuDNN. Needs no GPU.

#include "src/cuda/library/cudnn_convolution.h"

#include <cudnn.h>

#include <array>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "src/cuda/library/library_backend.h"
#include "tests/cuda/library/fake_cudnn.h"
#include "tests/cuda/library/fake_library.h"

namespace gpushare::cuda {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int32_t kPart = 8;   // SMs, fewer than any supported GPU has
constexpr size_t kPacks = 32;  // of both copies of the graph form
constexpr int kNotSupported = CUDNN_STATUS_NOT_SUPPORTED;

class CudnnConvolutionTest : public testing::Test {
 protected:
  void SetUp() override {
    control_ = OpenFakeLibrary<FakeCudnnControl>("libcudnn.so.9", "fake_cudnn_control");
    ASSERT_NE(control_, nullptr);
    control_->engines = {Engine(1)};
    backend_ = OpenCudnn().value();
    core::LibraryCall call;
    call.operation = core::LibraryOperation::kConvolution;
    call.type = core::DataType::kFloat16;
    call.batch = 2;
    call.channels = 8;
    call.height = 5;
    call.width = 7;
    call.filters = 16;
    call.filter_height = call.filter_width = 3;
    call.padding = 1;
    call.groups = 2;
    kernel_.code = call;
  }

  static FakeCudnnEngine Engine(int64_t index) {
    FakeCudnnEngine engine;
    engine.index = index;
    return engine;
  }

  absl::Status Prepare(int32_t sm_count) {
    auto plan = backend_->MakePlan(&handle_, kernel_, sm_count);
    if (!plan.ok()) return plan.status();
    plan_ = *std::move(plan);
    return absl::OkStatus();
  }

  // Uses the `block`-th operands, `skip` bytes behind an aligned address.
  absl::Status Convolve(size_t block = 0, size_t skip = 0, float alpha = 1, float beta = 0) {
    core::LibraryArguments arguments;
    arguments.a = operands_ + 64 * block + skip;
    arguments.b = operands_ + 64 * block + 16;
    arguments.d = operands_ + 64 * block + 32;
    arguments.c = arguments.d;
    arguments.alpha = alpha;
    arguments.beta = beta;
    return plan_->Enqueue(&handle_, nullptr, workspace_, arguments);
  }

  // The engine of a call with `sm_count` SMs; -1 for the immediate function. last_ holds what cuDNN
  // executed.
  int64_t EngineOfCall(int32_t sm_count) {
    const absl::Status prepared = Prepare(sm_count);
    EXPECT_TRUE(prepared.ok()) << prepared;
    control_->executions.clear();
    control_->immediate_calls = 0;
    const absl::Status called = Convolve();
    EXPECT_TRUE(called.ok()) << called;
    EXPECT_EQ(control_->executions.size() + static_cast<size_t>(control_->immediate_calls), 1u);
    last_ = control_->executions.empty() ? FakeCudnnExecution() : control_->executions[0];
    return last_.engine;
  }

  FakeCudnnControl* control_ = nullptr;
  std::unique_ptr<LibraryBackend> backend_;
  core::KernelDesc kernel_;
  std::unique_ptr<LibraryPlan> plan_;
  FakeCudnnExecution last_;
  char handle_ = 0;
  alignas(64) char operands_[64 * 64] = {};
  alignas(64) char workspace_[64] = {};
};

TEST_F(CudnnConvolutionTest, HeuristicsAndEngineGetTheSmCount) {
  control_->engines[0].knobs = {3, 5};
  EXPECT_EQ(EngineOfCall(kPart), 1);
  EXPECT_THAT(control_->heuristics_targets, Each(kPart));
  EXPECT_EQ(last_.target, kPart);
  EXPECT_THAT(last_.knobs, ElementsAre(3, 5)) << "as the heuristics chose";
}

TEST_F(CudnnConvolutionTest, AConfigurationThatHasTheSmCountIsUsedUnchanged) {
  control_->engines[0].heuristics_set_target = true;
  control_->engines[0].knobs = {3};
  // A new engine would be refused.
  control_->refused_type = CUDNN_BACKEND_ENGINE_DESCRIPTOR;
  control_->refusal = kNotSupported;
  EXPECT_EQ(EngineOfCall(kPart), 1);
  EXPECT_EQ(last_.target, kPart);
  EXPECT_THAT(last_.knobs, ElementsAre(3));
}

TEST_F(CudnnConvolutionTest, WithoutAnSmCountNoTargetIsSet) {
  EXPECT_EQ(EngineOfCall(0), 1);
  EXPECT_THAT(control_->heuristics_targets, Each(0));
  EXPECT_EQ(last_.target, 0);
}

TEST_F(CudnnConvolutionTest, TheFirstRunExecutesEveryForm) {
  for (const bool has_engine : {true, false}) {
    if (!has_engine) control_->engines.clear();
    ASSERT_TRUE(Prepare(kPart).ok());
    control_->executions.clear();
    control_->immediate_calls = 0;
    core::LibraryArguments arguments;
    arguments.a = arguments.b = arguments.d = operands_;
    ASSERT_TRUE(plan_->EnqueueFirst(&handle_, nullptr, workspace_, arguments).ok());
    EXPECT_THAT(control_->executions, SizeIs(has_engine ? 2 : 0));
    EXPECT_EQ(control_->immediate_calls, 1);
    if (has_engine) {
      EXPECT_NE(control_->executions[0].plan, control_->executions[1].plan);
    }
  }
}

TEST_F(CudnnConvolutionTest, TheWholeDeviceSetsNoTarget) {
  EXPECT_EQ(SmTarget(132, 132), 0);
  EXPECT_EQ(SmTarget(131, 132), 131);
  EXPECT_EQ(SmTarget(8, 0), 8) << "the device's count is not known";
  EXPECT_EQ(SmTarget(0, 132), 0);
}

TEST_F(CudnnConvolutionTest, AnEngineThatRefusesTheSmCountIsSkipped) {
  control_->engines = {Engine(1), Engine(2)};
  control_->engines[0].takes_target = false;
  EXPECT_EQ(EngineOfCall(kPart), 2);
  EXPECT_EQ(last_.target, kPart);
}

TEST_F(CudnnConvolutionTest, TheFallbackListIsTriedBeforeAnEngineWithoutAnSmCount) {
  control_->engines[0].takes_target = false;
  control_->fallback = {Engine(2)};
  EXPECT_EQ(EngineOfCall(kPart), 2);
  EXPECT_EQ(last_.target, kPart);
}

TEST_F(CudnnConvolutionTest, IfAllRefuseTheSmCountTheFirstRunsWithoutIt) {
  control_->engines = {Engine(1), Engine(2)};
  control_->engines[0].takes_target = control_->engines[1].takes_target = false;
  EXPECT_EQ(EngineOfCall(kPart), 1);
  EXPECT_EQ(last_.target, 0);
  EXPECT_EQ(control_->heuristics_targets[2], 0) << "after both modes with the SM count";
}

TEST_F(CudnnConvolutionTest, AnEngineThatNeedsTooMuchWorkspaceIsSkipped) {
  control_->engines = {Engine(1), Engine(2)};
  control_->engines[0].workspace = static_cast<int64_t>(kWorkspaceBytes) + 1;
  control_->engines[1].workspace = static_cast<int64_t>(kWorkspaceBytes);
  EXPECT_EQ(EngineOfCall(kPart), 2);
  EXPECT_EQ(last_.workspace, workspace_);
}

TEST_F(CudnnConvolutionTest, Float32KeepsItsPrecision) {
  control_->engines = {Engine(1), Engine(2), Engine(3), Engine(4)};
  control_->engines[0].notes = {CUDNN_NUMERICAL_NOTE_WINOGRAD, CUDNN_NUMERICAL_NOTE_TENSOR_CORE};
  control_->engines[1].notes = {CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS};
  control_->engines[2].notes = {CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION};
  control_->engines[3].notes = {CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP};
  EXPECT_EQ(EngineOfCall(kPart), 1) << "float16 may use Tensor cores";
  kernel_.library_call()->type = core::DataType::kFloat32;
  EXPECT_EQ(EngineOfCall(kPart), 4);
  control_->engines.pop_back();
  EXPECT_EQ(EngineOfCall(kPart), -1);
}

TEST_F(CudnnConvolutionTest, WithoutAnEngineTheImmediateFunctionRuns) {
  control_->engines.clear();
  EXPECT_EQ(EngineOfCall(kPart), -1);
}

TEST_F(CudnnConvolutionTest, OtherFactorsAndUnalignedOperandsTakeTheImmediateFunction) {
  ASSERT_TRUE(Prepare(kPart).ok());
  ASSERT_TRUE(Convolve(0, 0, 2, 0).ok());
  ASSERT_TRUE(Convolve(0, 0, 1, 0.5F).ok());
  ASSERT_TRUE(Convolve(0, 8).ok());
  EXPECT_EQ(control_->immediate_calls, 3);
  EXPECT_THAT(control_->executions, IsEmpty());
  ASSERT_TRUE(Convolve().ok());
  EXPECT_EQ(control_->immediate_calls, 3);
  EXPECT_THAT(control_->executions, SizeIs(1));
}

TEST_F(CudnnConvolutionTest, APackMapsTensorIdsToTheCallsPointers) {
  ASSERT_TRUE(Prepare(kPart).ok());
  ASSERT_TRUE(Convolve(3).ok());
  const FakeCudnnExecution& done = control_->executions[0];
  EXPECT_THAT(done.ids, ElementsAre(1, 2, 3));
  char* const at = operands_ + 64 * 3;
  EXPECT_THAT(done.pointers, ElementsAre(at, at + 16, at + 32));
}

TEST_F(CudnnConvolutionTest, PacksAreKeptForTheSamePointersAndBounded) {
  ASSERT_TRUE(Prepare(kPart).ok());
  for (int round = 0; round < 3; ++round) {
    for (size_t block = 0; block < kPacks; ++block) ASSERT_TRUE(Convolve(block).ok());
  }
  EXPECT_EQ(control_->packs_made, static_cast<int>(kPacks));
  ASSERT_TRUE(Convolve(kPacks).ok());  // replaces the oldest pack
  EXPECT_EQ(control_->packs_made, static_cast<int>(kPacks) + 1);
  EXPECT_EQ(control_->packs_alive, static_cast<int>(kPacks));
  ASSERT_TRUE(Convolve(1).ok());
  EXPECT_EQ(control_->packs_made, static_cast<int>(kPacks) + 1);
  ASSERT_TRUE(Convolve(0).ok());
  EXPECT_EQ(control_->packs_made, static_cast<int>(kPacks) + 2);
  EXPECT_EQ(control_->executions.back().pointers[0], operands_);
  EXPECT_EQ(control_->immediate_calls, 0);
}

TEST_F(CudnnConvolutionTest, AnotherLanesWorkspaceNeedsAnotherPack) {
  ASSERT_TRUE(Prepare(kPart).ok());
  core::LibraryArguments arguments;
  arguments.a = arguments.b = arguments.d = operands_;
  alignas(64) char other[64] = {};
  for (char* const workspace : {workspace_, other, workspace_, other}) {
    ASSERT_TRUE(plan_->Enqueue(&handle_, nullptr, workspace, arguments).ok());
    EXPECT_EQ(control_->executions.back().workspace, workspace);
  }
  EXPECT_EQ(control_->packs_made, 2);
}

// The second call starts while the first is in cuDNN, the third while both are.
TEST_F(CudnnConvolutionTest, ConcurrentCallsNeitherShareAPlanNorWait) {
  ASSERT_TRUE(Prepare(kPart).ok());
  int depth = 0;
  control_->during_execution = [&] {
    ++depth;
    EXPECT_TRUE(Convolve().ok());
  };
  ASSERT_TRUE(Convolve().ok());
  EXPECT_EQ(depth, 2);
  ASSERT_THAT(control_->executions, SizeIs(2));
  EXPECT_NE(control_->executions[0].plan, control_->executions[1].plan);
  EXPECT_EQ(control_->executions[1].target, kPart);
  EXPECT_EQ(control_->immediate_calls, 1);
  control_->during_execution = nullptr;
  ASSERT_TRUE(Convolve().ok());
  EXPECT_THAT(control_->executions, SizeIs(3)) << "both are free again";
}

TEST_F(CudnnConvolutionTest, ACallTakesTheGraphThatHasItsPack) {
  ASSERT_TRUE(Prepare(kPart).ok());
  control_->during_execution = [&] {
    control_->during_execution = nullptr;
    EXPECT_TRUE(Convolve(1).ok());
  };
  ASSERT_TRUE(Convolve(0).ok());
  for (const size_t block : {1u, 0u, 1u}) ASSERT_TRUE(Convolve(block).ok());
  EXPECT_EQ(control_->packs_made, 2);
}

TEST_F(CudnnConvolutionTest, AConvolutionAddsInPlaceAndNowhereElse) {
  ASSERT_TRUE(Prepare(kPart).ok());
  core::LibraryArguments arguments;
  arguments.a = arguments.b = arguments.c = operands_;
  arguments.d = operands_ + 64;
  arguments.beta = 1;
  const absl::Status status = plan_->Enqueue(&handle_, nullptr, workspace_, arguments);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(control_->immediate_calls, 0);
}

TEST_F(CudnnConvolutionTest, ThreadsNeverExecuteOnePlanAtOnce) {
  ASSERT_TRUE(Prepare(kPart).ok());
  control_->keeps_executions = false;
  control_->during_execution = [] { std::this_thread::yield(); };
  std::array<int, 4> failures{};
  std::vector<std::thread> threads;
  for (size_t thread = 0; thread < failures.size(); ++thread) {
    threads.emplace_back([this, thread, &failures] {
      for (size_t i = 0; i < 5000; ++i) {
        if (!Convolve(thread * 10 + i % 10).ok()) ++failures[thread];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(failures, Each(0));
  EXPECT_EQ(control_->shared_plans, 0);
  EXPECT_LE(control_->packs_alive, static_cast<int>(kPacks));
}

TEST_F(CudnnConvolutionTest, AGraphThatTheSmsRefuseIsNotTriedAgain) {
  ASSERT_TRUE(Prepare(kPart).ok());
  control_->execution = CUDNN_STATUS_EXECUTION_FAILED;
  ASSERT_TRUE(Convolve().ok());
  ASSERT_TRUE(Convolve().ok());
  EXPECT_THAT(control_->executions, SizeIs(1));
  EXPECT_EQ(control_->immediate_calls, 2);
}

TEST_F(CudnnConvolutionTest, ACallThatBothFormsRefuseLeavesTheGraphInUse) {
  ASSERT_TRUE(Prepare(kPart).ok());
  control_->execution = CUDNN_STATUS_BAD_PARAM;
  control_->immediate = CUDNN_STATUS_EXECUTION_FAILED;
  const absl::Status status = Convolve();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("cuDNN answers 2000 (as the test asked) to cudnnBackendExecute("),
                    HasSubstr(" in cudnn_convolution_graph.cc:")));
  control_->execution = control_->immediate = 0;
  control_->executions.clear();
  ASSERT_TRUE(Convolve().ok());
  EXPECT_THAT(control_->executions, SizeIs(1)) << "the graph is still used";
}

TEST_F(CudnnConvolutionTest, AFailedPackLeavesItsEntryFree) {
  ASSERT_TRUE(Prepare(kPart).ok());
  control_->refused_type = CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR;
  control_->refusal = CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
  control_->immediate = CUDNN_STATUS_EXECUTION_FAILED;
  EXPECT_EQ(Convolve().code(), absl::StatusCode::kResourceExhausted);
  control_->refused_type = -1;
  ASSERT_TRUE(Convolve().ok());
  EXPECT_THAT(control_->executions, SizeIs(1));
}

TEST_F(CudnnConvolutionTest, AShortageOfHostMemoryLeavesTheGraphInUse) {
  ASSERT_TRUE(Prepare(kPart).ok());
  control_->refused_type = CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR;
  control_->refusal = CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
  ASSERT_TRUE(Convolve().ok());
  EXPECT_EQ(control_->immediate_calls, 1);
  control_->refused_type = -1;
  ASSERT_TRUE(Convolve().ok());
  EXPECT_THAT(control_->executions, SizeIs(1)) << "the graph is used again";
}

TEST_F(CudnnConvolutionTest, AFailedPackIsNotMistakenForTheOneItReplaces) {
  ASSERT_TRUE(Prepare(kPart).ok());
  for (size_t block = 0; block < kPacks; ++block) ASSERT_TRUE(Convolve(block).ok());
  control_->refused_type = CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR;
  control_->refusal = control_->immediate = CUDNN_STATUS_INTERNAL_ERROR;
  EXPECT_FALSE(Convolve(kPacks).ok());
  control_->refused_type = -1;
  ASSERT_TRUE(Convolve(kPacks).ok());
  EXPECT_EQ(control_->executions.back().pointers[0], operands_ + 64 * kPacks);
}

TEST_F(CudnnConvolutionTest, AFailureOfTheLibraryFailsThePlan) {
  control_->refused_type = CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR;
  control_->refusal = CUDNN_STATUS_INTERNAL_ERROR;
  const absl::Status status = Prepare(kPart);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("cuDNN answers 4000 (as the test asked) to cudnnBackendFinalize("),
                    HasSubstr(" in cudnn_graph_descriptor.cc:"),
                    EndsWith(" The descriptor is of type 15 of the graph interface.")));
  control_->refusal = CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN;
  EXPECT_EQ(EngineOfCall(kPart), -1)
      << "the immediate function takes what the graph interface refuses";
}

TEST_F(CudnnConvolutionTest, TensorsHaveTheCallsLayoutAndGroups) {
  ASSERT_TRUE(Prepare(kPart).ok());
  const FakeCudnnTensor x = control_->tensors[0];
  EXPECT_THAT(x.sizes, ElementsAre(2, 8, 5, 7));
  EXPECT_THAT(x.strides, ElementsAre(280, 35, 7, 1));
  EXPECT_EQ(x.alignment, 16);
  const FakeCudnnTensor w = control_->tensors[1];
  EXPECT_THAT(w.sizes, ElementsAre(16, 4, 3, 3)) << "two groups";
  EXPECT_THAT(w.strides, ElementsAre(36, 9, 3, 1));
  EXPECT_THAT(control_->tensors[2].sizes, ElementsAre(2, 16, 5, 7));
  control_->tensors.clear();
  kernel_.library_call()->channels_last = true;
  ASSERT_TRUE(Prepare(kPart).ok());
  EXPECT_THAT(control_->tensors[0].strides, ElementsAre(280, 1, 56, 8));
  EXPECT_THAT(control_->tensors[1].strides, ElementsAre(36, 1, 12, 4));
}

TEST_F(CudnnConvolutionTest, ADescriptorEndsWithItsPlan) {
  control_->engines = {Engine(1), Engine(2), Engine(3)};
  control_->engines[0].takes_target = false;
  control_->engines[1].workspace = int64_t{1} << 40;
  control_->engines[2].knobs = {1, 2, 3};
  EXPECT_EQ(EngineOfCall(kPart), 3);
  EXPECT_GT(control_->descriptors_alive, 0);
  plan_.reset();
  EXPECT_EQ(control_->descriptors_alive, 0);
}

}  // namespace
}  // namespace gpushare::cuda
