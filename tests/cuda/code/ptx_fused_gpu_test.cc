// Fused twins of kernels of PTX on a GPU: while either part is evicted at random times, both leave
// the bits of their originals, and every block task runs once.

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "src/cuda/driver/driver_api.h"
#include "src/ptx/fused.h"
#include "src/ptx/twin.h"
#include "tests/cuda/gpu_fixture.h"
#include "tests/ptx/fused_kernels.h"
#include "tests/ptx/kernels.h"

namespace gpushare::cuda {
namespace {

constexpr int32_t kBlocks = 400'000;  // short block tasks: some 2 ms of both kernels
constexpr int kRepeats = 40;
constexpr int kRoundsMax = 1'000;

// A kernel with its memory and the arguments that it is launched with.
struct Subject {
  core::KernelDesc desc = {};
  std::string text = {};
  std::array<uint32_t, 3> block = {32, 1, 1};
  std::array<int32_t, 3> grid = {kBlocks, 1, 1};
  uint32_t dynamic_shared_bytes = 0;
  std::vector<uint8_t> arguments = {};
  uint32_t* out = nullptr;
  std::vector<uint32_t> alone = {};

  size_t words() const { return size_t{kBlocks} * block[0] * block[1] * block[2]; }
  ptx::FusedPart part(uint32_t copies, uint32_t registers) const {
    return {.text = text,
            .block = block,
            .dynamic_shared_bytes = dynamic_shared_bytes,
            .copies = copies,
            .registers = registers};
  }
};

struct Ratio {
  uint32_t tensor = 1;
  uint32_t cuda = 1;
  bool move_registers = false;
};

class PtxFusedGpuTest : public GpuTest {
 protected:
  PtxFusedGpuTest() : GpuTest(true) {}

  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    api_ = LoadDriverApi().value();
    partner_lane_ = device_->CreateLane({.evictable = true}).value();
  }
  void TearDown() override {
    for (auto& [name, subject] : subjects_) cudaFree(subject.out);
    for (const CUlibrary library : libraries_) api_.cuLibraryUnload(library);
  }

  CUfunction Load(const std::string& text, const std::string& entry) {
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    CUfunction function = nullptr;
    EXPECT_EQ(
        api_.cuLibraryLoadData(&library, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0),
        CUDA_SUCCESS)
        << entry;
    libraries_.push_back(library);
    EXPECT_EQ(api_.cuLibraryGetKernel(&kernel, library, entry.c_str()), CUDA_SUCCESS);
    EXPECT_EQ(api_.cuKernelGetFunction(&function, kernel), CUDA_SUCCESS);
    return function;
  }

  void Add(const std::string& name, Subject subject, bool has_addend) {
    const ptx::Twin twin = ptx::Transform(subject.text, "", {.workers = true});
    ASSERT_TRUE(twin.ok()) << twin.refusal.message;
    core::KernelDesc& desc = subject.desc;
    desc.id = core::KernelId{static_cast<uint32_t>(subjects_.size() + 1)};
    desc.name = name;
    core::PtxCode code;
    code.text = subject.text;
    code.module = twin.text;
    code.entry = twin.facts.entry;
    code.worker.entry = twin.worker_entry;
    for (size_t i = 0; i < 3; ++i) code.block[i] = static_cast<int32_t>(subject.block[i]);
    desc.code = code;
    desc.resources.threads_per_block =
        static_cast<int32_t>(subject.block[0] * subject.block[1] * subject.block[2]);
    desc.resources.block_x = code.block[0];
    desc.resources.block_y = code.block[1];
    desc.resources.block_z = code.block[2];
    desc.resources.dynamic_shared_memory_bytes = static_cast<int32_t>(subject.dynamic_shared_bytes);
    desc.resources.registers_per_thread = desc.resources.workers_per_sm_max = 0;
    desc.evictable = true;
    absl::Status status = device_->DescribeKernel(desc);
    ASSERT_TRUE(status.ok()) << status;
    status = device_->PrepareKernel(desc);
    ASSERT_TRUE(status.ok()) << status;
    const size_t bytes = subject.words() * sizeof(uint32_t);
    ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&subject.out), bytes), cudaSuccess);
    subject.arguments.resize(has_addend ? 12 : 8);
    std::memcpy(subject.arguments.data(), &subject.out, sizeof(subject.out));
    if (has_addend) subject.arguments[8] = 77;
    subjects_.emplace(name, std::move(subject));
    subjects_.at(name).alone = RunAlone(subjects_.at(name));
  }
  void AddAll() {
    Add("early", {.desc = {}, .text = ptx::KernelText(ptx::kEarlyReturn)}, false);
    Add("turn",
        {.desc = {},
         .text = std::string(ptx::kTurnRound),
         .block = {64, 1, 1},
         .dynamic_shared_bytes = 256},
        true);
    Add("deep",
        {.desc = {},
         .text = std::string(ptx::kDeepBlock),
         .block = {8, 4, 2},
         .grid = {kBlocks / 4, 4, 1}},
        false);
  }

  core::LaunchPart PartOf(const Subject& subject, core::LaneIndex lane) {
    core::LaunchPart part;
    part.launch = core::LaunchId{++launches_};
    part.lane = lane;
    part.work.kernel = &subject.desc;
    part.block_count = kBlocks;
    for (size_t i = 0; i < 3; ++i) part.work.grid[i] = subject.grid[i];
    part.work.arguments = subject.arguments.data();
    part.work.arguments_bytes = static_cast<uint32_t>(subject.arguments.size());
    return part;
  }
  // Lanes do not wait for the legacy stream: a launch could write before the memory is cleared.
  static void Clear(const Subject& subject) {
    ASSERT_EQ(cudaMemset(subject.out, 0, subject.words() * sizeof(uint32_t)), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  }
  static std::vector<uint32_t> Result(const Subject& subject) {
    std::vector<uint32_t> out(subject.words());
    EXPECT_EQ(
        cudaMemcpy(out.data(), subject.out, out.size() * sizeof(uint32_t), cudaMemcpyDeviceToHost),
        cudaSuccess);
    return out;
  }
  std::vector<uint32_t> RunAlone(const Subject& subject) {
    Clear(subject);
    core::LaunchRequest request;
    request.parts[0] = PartOf(subject, lane_);
    const absl::Status status = device_->Launch(request);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(NextCompletion().outcome, core::Outcome::kFinished);
    return Result(subject);
  }

  core::FusedKernelDesc Fuse(const Subject& tensor, const Subject& cuda, const Ratio& ratio) {
    const ptx::FusedTwin twin =
        ptx::Fuse(tensor.part(ratio.tensor, 90), cuda.part(ratio.cuda, 32),
                  {.move_registers = ratio.move_registers, .blocks_per_sm = 2});
    EXPECT_TRUE(twin.ok()) << twin.refusal.message;
    core::FusedKernelDesc fused;
    fused.id = core::KernelId{++fused_};
    fused.name = twin.entry;
    fused.tensor_part = tensor.desc.id;
    fused.cuda_part = cuda.desc.id;
    fused.tensor_blocks = static_cast<int32_t>(ratio.tensor);
    fused.cuda_blocks = static_cast<int32_t>(ratio.cuda);
    fused.threads_per_block = static_cast<int32_t>(twin.layout.threads);
    fused.dynamic_shared_memory_bytes =
        twin.layout.dynamic_shared ? static_cast<int32_t>(twin.layout.shared_bytes) : 0;
    const CUfunction function = Load(twin.text, twin.entry);
    fused.function = function;
    int registers = 0;
    api_.cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function);
    if (ratio.move_registers) {
      EXPECT_EQ(static_cast<uint32_t>(registers), twin.layout.registers);
    }
    const absl::Status status = device_->PrepareFusedKernel(fused);
    EXPECT_TRUE(status.ok()) << status;
    return fused;
  }

  // Launches both until neither has block tasks left; each launch evicts both at random times.
  void RunFused(const core::FusedKernelDesc& fused, const Subject& tensor, const Subject& cuda,
                std::mt19937& random) {
    Clear(tensor);
    Clear(cuda);
    for (int round = 0; round < kRoundsMax; ++round) {
      core::LaunchRequest request;
      request.form = core::Form::kFused;
      request.fused = &fused;
      request.parts[0] = PartOf(tensor, lane_);
      request.parts.Add(PartOf(cuda, partner_lane_));
      for (int i = 0; i < 2; ++i) {
        request.parts[i].counter = i;
        request.parts[i].reset_counter = round == 0;
        request.parts[i].epoch = ++epoch_;
      }
      const absl::Status status = device_->Launch(request);
      ASSERT_TRUE(status.ok()) << status;
      for (int i = 0; i < 2; ++i) {
        const core::LaunchPart& part = request.parts[round % 2 == 0 ? i : 1 - i];
        const core::TimeNs evict_ns = device_->NowNs() + 20'000 + random() % 600'000;
        while (device_->NowNs() < evict_ns) {
        }
        ASSERT_TRUE(device_->Evict(part.lane, part.epoch, 0).ok());
      }
      int finished = 0;
      for (int i = 0; i < 2; ++i) {
        const core::Outcome outcome = NextCompletion().outcome;
        finished += outcome == core::Outcome::kFinished ? 1 : 0;
        ASSERT_TRUE(outcome == core::Outcome::kFinished || outcome == core::Outcome::kEvicted);
        evictions_ += outcome == core::Outcome::kEvicted ? 1 : 0;
      }
      if (finished == 2) {
        EXPECT_TRUE(Result(tensor) == tensor.alone);
        EXPECT_TRUE(Result(cuda) == cuda.alone);
        return;
      }
    }
    FAIL() << "block tasks are never finished";
  }

  DriverApi api_;
  core::LaneIndex partner_lane_ = core::kNoLane;
  std::map<std::string, Subject> subjects_;
  std::vector<CUlibrary> libraries_;
  uint64_t launches_ = 0;
  uint64_t epoch_ = 0;
  uint32_t fused_ = 0;
  int evictions_ = 0;
};

TEST_F(PtxFusedGpuTest, BothPartsGiveTheirOriginalsBitsUnderRandomEvictions) {
  ASSERT_NO_FATAL_FAILURE(AddAll());
  std::mt19937 random(41);
  struct Pair {
    const char* tensor;
    const char* cuda;
    Ratio ratio;
  };
  for (const Pair& pair : {Pair{"turn", "deep", {}}, Pair{"deep", "early", {1, 2}},
                           Pair{"early", "turn", {2, 1}}, Pair{"turn", "early", {2, 1, true}}}) {
    SCOPED_TRACE(std::string(pair.tensor) + " with " + pair.cuda);
    const Subject& tensor = subjects_.at(pair.tensor);
    const Subject& cuda = subjects_.at(pair.cuda);
    const core::FusedKernelDesc fused = Fuse(tensor, cuda, pair.ratio);
    if (HasFailure()) return;
    for (int i = 0; i < kRepeats; ++i) {
      ASSERT_NO_FATAL_FAILURE(RunFused(fused, tensor, cuda, random)) << i;
    }
  }
  EXPECT_GT(evictions_, 4 * kRepeats);
}

}  // namespace
}  // namespace gpushare::cuda
