// A kernel of PTX on a GPU: its twins give the bits of the original, alone and under evictions, and
// every block task runs once. GPUSHARE_PTX_FOLDER names a folder of PTX that is loaded as well.

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "src/core/base/file_io.h"
#include "tests/cuda/code/ptx_code.h"
#include "tests/cuda/gpu_fixture.h"

namespace gpushare::cuda {
namespace {

constexpr uint32_t kThreads = 128;
constexpr uint32_t kBlocks = 20'000;
constexpr uint32_t kRounds = 20'000;  // about 100 us a block task
constexpr uint32_t kSlice = 3'000;
constexpr int kRepeats = 40;
constexpr size_t kFilesMax = 400;

// Every thread hashes its index, then adds the hash of the opposite thread of its 16 to out: a
// block task that runs twice, or with another %ctaid, or a warp whose threads run apart gives other
// bits.
constexpr char kChurn[] = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry churn(.param .u64 out, .param .u32 rounds, .param .u32 threads)
.reqntid 128
{
  .reg .pred %p<3>;
  .reg .b32 %r<14>;
  .reg .b64 %rd<4>;
  .shared .align 4 .b8 seen[512];
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [rounds];
  ld.param.u32 %r12, [threads];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, %nctaid.x;
  setp.ge.u32 %p2, %r3, %r12;
  @%p2 ret;
  mad.lo.s32 %r5, %r2, 128, %r3;
  mad.lo.s32 %r6, %r5, 747796405, %r4;
  activemask.b32 %r13;
  xor.b32 %r6, %r6, %r13;
  mov.u32 %r7, 0;
LOOP:
  mad.lo.s32 %r6, %r6, 1664525, 1013904223;
  add.s32 %r7, %r7, 1;
  setp.lt.u32 %p1, %r7, %r1;
  @%p1 bra LOOP;
  shl.b32 %r8, %r3, 2;
  mov.u32 %r9, seen;
  add.s32 %r10, %r9, %r8;
  st.shared.u32 [%r10], %r6;
  bar.sync 0;
  xor.b32 %r8, %r8, 60;
  add.s32 %r10, %r9, %r8;
  ld.shared.u32 %r11, [%r10];
  add.s32 %r6, %r6, %r11;
  mul.wide.u32 %rd2, %r5, 4;
  add.s64 %rd3, %rd1, %rd2;
  red.global.add.u32 [%rd3], %r6;
  ret;
}
)";

struct Arguments {
  uint32_t* out = nullptr;
  uint32_t rounds = kRounds;
  uint32_t threads = kThreads;  // those behind leave before the barrier
};

class PtxFunctionsGpuTest : public GpuTest {
 protected:
  PtxFunctionsGpuTest() : GpuTest(true) {}

  void Make(int dynamic_shared_bytes = 0) {
    desc_.resources.dynamic_shared_memory_bytes = dynamic_shared_bytes;
    desc_.id = core::KernelId{1};
    desc_.name = "churn";
    desc_.code = PtxCodeOf(kChurn, "churn");
    ASSERT_TRUE(desc_.ptx()->worker.made()) << desc_.ptx()->worker.refusal;
    desc_.resources.threads_per_block = kThreads;
    desc_.resources.registers_per_thread = desc_.resources.workers_per_sm_max = 0;
    desc_.evictable = true;
    absl::Status status = device_->DescribeKernel(desc_);
    ASSERT_TRUE(status.ok()) << status;
    status = device_->PrepareKernel(desc_);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&arguments_.out), Bytes()), cudaSuccess);
  }
  void TearDown() override { cudaFree(arguments_.out); }
  static size_t Bytes() { return sizeof(uint32_t) * kBlocks * kThreads; }

  void Launch(core::Form form, uint32_t begin, uint32_t count, bool first, uint64_t epoch) {
    core::LaunchRequest request;
    request.parts[0].launch = core::LaunchId{++launches_};
    request.parts[0].lane = lane_;
    request.form = form;
    request.block_begin = begin;
    request.parts[0].work.kernel = &desc_;
    request.parts[0].block_count = count;
    request.parts[0].work.grid[0] = static_cast<int32_t>(kBlocks);
    request.parts[0].work.grid[1] = request.parts[0].work.grid[2] = 1;
    request.parts[0].work.arguments = &arguments_;
    request.parts[0].work.arguments_bytes = sizeof(arguments_);
    if (form == core::Form::kWorkers) {
      request.parts[0].counter = 0;
      request.parts[0].reset_counter = first;
      request.parts[0].epoch = epoch;
    }
    const absl::Status status = device_->Launch(request);
    ASSERT_TRUE(status.ok()) << status;
  }
  // The lane does not wait for the legacy stream: a launch could write before the memory is
  // cleared.
  void Clear() {
    ASSERT_EQ(cudaMemset(arguments_.out, 0, Bytes()), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  }
  std::vector<uint32_t> Result() {
    std::vector<uint32_t> out(size_t{kBlocks} * kThreads);
    EXPECT_EQ(cudaMemcpy(out.data(), arguments_.out, Bytes(), cudaMemcpyDeviceToHost), cudaSuccess);
    return out;
  }
  std::vector<uint32_t> RunOriginal() {
    Clear();
    Launch(core::Form::kOriginal, 0, kBlocks, true, 0);
    EXPECT_EQ(NextCompletion().outcome, core::Outcome::kFinished);
    return Result();
  }
  // Evicts at random times until all is done. Adds to `evictions`.
  std::vector<uint32_t> RunEvicted(std::mt19937& random, int& evictions) {
    Clear();
    for (bool first = true;; first = false) {
      Launch(core::Form::kWorkers, 0, kBlocks, first, ++epoch_);
      const core::TimeNs evict_ns = device_->NowNs() + 20'000 + random() % 400'000;
      while (device_->NowNs() < evict_ns) {
      }
      EXPECT_TRUE(device_->Evict(lane_, epoch_, 0).ok());
      const core::Outcome outcome = NextCompletion().outcome;
      if (outcome != core::Outcome::kEvicted) {
        EXPECT_EQ(outcome, core::Outcome::kFinished);
        return Result();
      }
      ++evictions;
    }
  }

  core::KernelDesc desc_;
  Arguments arguments_;
  uint64_t launches_ = 0;
  uint64_t epoch_ = 0;
};

TEST_F(PtxFunctionsGpuTest, WorkersGiveTheOriginalsBitsUnderRandomEvictions) {
  ASSERT_NO_FATAL_FAILURE(Make());
  EXPECT_GT(desc_.resources.workers_per_sm_max, 1);
  std::mt19937 random(40);
  // 96: a warp ends before the barrier; 80: half of a warp too.
  for (const uint32_t threads : {kThreads, uint32_t{96}, uint32_t{80}}) {
    arguments_.threads = threads;
    const std::vector<uint32_t> original = RunOriginal();
    ASSERT_NE(original.front(), 0U);
    int evictions = 0;
    for (int i = 0; i < kRepeats; ++i) {
      ASSERT_EQ(RunEvicted(random, evictions), original) << threads << " threads, run " << i;
    }
    EXPECT_GT(evictions, kRepeats);
  }
}

TEST_F(PtxFunctionsGpuTest, SlicesGiveTheOriginalsBits) {
  ASSERT_NO_FATAL_FAILURE(Make());
  const std::vector<uint32_t> original = RunOriginal();
  Clear();
  for (uint32_t begin = 0; begin < kBlocks; begin += kSlice) {
    Launch(core::Form::kSlice, begin, std::min(kSlice, kBlocks - begin), true, 0);
    EXPECT_EQ(NextCompletion().outcome, core::Outcome::kFinished);
  }
  EXPECT_EQ(Result(), original);
}

// Without dynamic memory of its own the driver would allow it 48 KB less the static memory.
TEST_F(PtxFunctionsGpuTest, TwinsRunWithMoreSharedMemoryThanTheDefault) {
  ASSERT_NO_FATAL_FAILURE(Make(48 * 1024));
  ASSERT_TRUE(desc_.ptx()->worker.made()) << desc_.ptx()->worker.refusal;
  std::mt19937 random(48);
  int evictions = 0;
  const std::vector<uint32_t> original = RunOriginal();
  ASSERT_NE(original.front(), 0U);
  EXPECT_EQ(RunEvicted(random, evictions), original);
  EXPECT_GT(evictions, 0);
  Clear();
  Launch(core::Form::kSlice, 0, kBlocks, true, 0);
  EXPECT_EQ(NextCompletion().outcome, core::Outcome::kFinished);
  EXPECT_EQ(Result(), original);
}

TEST_F(PtxFunctionsGpuTest, KernelsOfAFolderLoadWithAsManyWorkers) {
  const char* const folder = std::getenv("GPUSHARE_PTX_FOLDER");
  if (folder == nullptr) GTEST_SKIP() << "GPUSHARE_PTX_FOLDER names no folder.";
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
    if (file.path().extension() == ".ptx") files.push_back(file.path());
  }
  std::sort(files.begin(), files.end());
  std::shuffle(files.begin(), files.end(), std::mt19937(40));
  files.resize(std::min(files.size(), kFilesMax));
  int made = 0;
  int refused = 0;
  int fewer = 0;
  for (const std::filesystem::path& file : files) {
    core::KernelDesc kernel;
    kernel.name = file.filename().string();
    kernel.code = PtxCodeOf(core::ReadWholeFile(file.string(), 16 << 20).value(), "");
    if (!kernel.ptx()->worker.made()) {
      ++refused;
      continue;
    }
    kernel.resources.block_x = kernel.ptx()->block[0];
    kernel.resources.threads_per_block = kernel.ptx()->block[0];
    kernel.resources.registers_per_thread = kernel.resources.workers_per_sm_max = 0;
    const absl::Status status = device_->DescribeKernel(kernel);
    ASSERT_TRUE(status.ok()) << file << ": " << status;
    int blocks = 0;
    ASSERT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel.functions()->original,
                                                            kernel.resources.threads_per_block, 0),
              cudaSuccess)
        << file;
    ++made;
    fewer += kernel.resources.workers_per_sm_max < blocks ? 1 : 0;
  }
  std::printf("%d made, %d refused, %d with fewer workers an SM than the original has blocks\n",
              made, refused, fewer);
  EXPECT_LE(fewer, made / 20);
}

}  // namespace
}  // namespace gpushare::cuda
