// Fused twins run in the interpreter with random orders and random evictions of either part: each
// part leaves the memory that its original leaves alone, bit for bit.

#include <gpushare/device/launch.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "src/ptx/fused.h"
#include "tests/ptx/fused_kernels.h"
#include "tests/ptx/interpreter.h"
#include "tests/ptx/interpreter_memory.h"
#include "tests/ptx/kernels.h"

namespace gpushare::ptx {
namespace {

// The memory of a run: for each part what the protocol needs, then its words.
constexpr uint64_t kPartBytes = 4096;
constexpr uint64_t kWord = 0;
constexpr uint64_t kHostWord = 8;
constexpr uint64_t kCounter = 16;
constexpr uint64_t kScratch = 32;
constexpr uint64_t kCompletion = 64;
constexpr uint64_t kOut = 128;

struct Kernel {
  std::string name;
  std::string text;
  std::array<uint32_t, 3> block;
  std::array<uint32_t, 3> grid;
  uint32_t dynamic_shared_bytes = 0;
  bool has_addend = false;

  uint32_t blocks() const { return grid[0] * grid[1] * grid[2]; }
  FusedPart part(uint32_t copies) const {
    return {.text = text,
            .block = block,
            .dynamic_shared_bytes = dynamic_shared_bytes,
            .copies = copies,
            .registers = 32};
  }
};

std::vector<Kernel> Kernels() {
  return {{"three dimensions", KernelText(kThreeDimensions), {32, 1, 1}, {3, 2, 1}},
          {"block sum", KernelText(kBlockSum, ".reqntid 32\n"), {32, 1, 1}, {5, 1, 1}},
          {"early return", KernelText(kEarlyReturn, ".maxntid 32, 1, 1\n"), {32, 1, 1}, {6, 1, 1}},
          {"turn round", std::string(kTurnRound), {64, 1, 1}, {4, 1, 1}, 256, true},
          {"deep block", std::string(kDeepBlock), {8, 4, 2}, {2, 2, 1}}};
}

// The parameters of a part as one struct.
std::vector<uint8_t> PackedArguments(const Kernel& kernel, uint64_t base) {
  std::vector<uint8_t> bytes = BytesOf<uint64_t>(kGlobalBase + base + kOut);
  if (kernel.has_addend) bytes.insert(bytes.end(), {77, 0, 0, 0});
  return bytes;
}

void AddArguments(const Kernel& kernel, InterpreterLaunch& launch) {
  launch.parameters.push_back(BytesOf<uint64_t>(kGlobalBase + kOut));
  if (kernel.has_addend) launch.parameters.push_back(BytesOf<uint32_t>(77));
}

std::vector<uint8_t> RunAlone(const Kernel& kernel) {
  std::vector<uint8_t> memory(kPartBytes);
  InterpreterLaunch launch;
  launch.grid = kernel.grid;
  launch.block = kernel.block;
  launch.dynamic_shared_bytes = kernel.dynamic_shared_bytes;
  AddArguments(kernel, launch);
  EXPECT_EQ(Interpreter(kernel.text, "").Run(launch, memory, 5), "");
  return memory;
}

// One part of a task: its header and what is left.
struct Side {
  const Kernel& kernel;
  uint64_t base;
  uint32_t done = 0;
  uint32_t left = 1;
  bool empty = false;      // it has no block tasks
  bool by_leader = false;  // the host's word is copied by the leader
  uint64_t evict_at = 0;   // step
  uint64_t keep = 0;       // workers
  uint32_t evictions = 0;  // launches that left block tasks

  template <class T>
  T* Device(uint64_t offset) const {
    return reinterpret_cast<T*>(kGlobalBase + base + offset);
  }
  gpushare_worker_launch Header(uint32_t round, uint32_t batch) const {
    gpushare_worker_launch header = {};
    header.eviction_word = Device<uint64_t>(kWord);
    if (by_leader) header.host_eviction_word = Device<uint64_t>(kHostWord);
    header.counter = Device<uint32_t>(kCounter);
    header.scratch = Device<gpushare_worker_scratch>(kScratch);
    header.completion = Device<gpushare_worker_completion>(kCompletion);
    header.sequence = round;
    header.epoch = round;
    header.block_count = empty ? 0 : kernel.blocks();
    header.grid_x = kernel.grid[0];
    header.grid_y = kernel.grid[1];
    header.grid_z = kernel.grid[2];
    header.claim_batch = batch;
    return header;
  }
  void Evict(std::vector<uint8_t>& memory, uint64_t step, uint32_t round) const {
    if (step != evict_at) return;
    const uint64_t word = uint64_t{round} << 32 | keep;
    std::memcpy(memory.data() + base + (by_leader ? kHostWord : kWord), &word, sizeof(word));
  }
  void ReadRecord(const std::vector<uint8_t>& memory, uint32_t round) {
    const auto record = At<gpushare_worker_completion>(memory, base + kCompletion);
    ASSERT_EQ(record.sequence, round) << "the part's last worker did not report";
    done += record.block_tasks_done;
    left = record.block_tasks_left;
    evictions += left > 0 ? 1 : 0;
    EXPECT_EQ(done + left, empty ? 0u : kernel.blocks());
    EXPECT_EQ(At<gpushare_worker_scratch>(memory, base + kScratch).finished, 0u);
  }
  void ExpectOriginals(const std::vector<uint8_t>& memory) const {
    const std::vector<uint8_t> alone = empty ? std::vector<uint8_t>(kPartBytes) : RunAlone(kernel);
    EXPECT_TRUE(std::equal(alone.begin() + kOut, alone.end(),
                           memory.begin() + static_cast<std::ptrdiff_t>(base + kOut)))
        << kernel.name;
  }
};

struct Run {
  uint32_t tensor_copies = 1;
  uint32_t cuda_copies = 1;
  bool move_registers = false;
  uint64_t seed = 1;
};

// How often each part was evicted with block tasks left.
struct Evictions {
  uint32_t tensor = 0;
  uint32_t cuda = 0;
  Evictions& operator+=(const Evictions& more) {
    tensor += more.tensor;
    cuda += more.cuda;
    return *this;
  }
};

// Launches until neither part has block tasks left, and adds the evictions.
void RunPair(Side tensor, Side cuda, const Run& run, Evictions& evictions) {
  FusedPart first = tensor.kernel.part(run.tensor_copies);
  if (run.move_registers) first.registers = 60;  // more than 3 blocks an SM have at launch
  const FusedTwin twin = Fuse(first, cuda.kernel.part(run.cuda_copies),
                              {.move_registers = run.move_registers, .blocks_per_sm = 3});
  ASSERT_TRUE(twin.ok()) << twin.refusal.message;
  std::mt19937_64 random(run.seed);
  std::vector<uint8_t> memory(2 * kPartBytes);
  for (uint32_t round = 1; tensor.left + cuda.left > 0; ++round) {
    ASSERT_LT(round, 200u) << "block tasks are never finished";
    for (Side* side : {&tensor, &cuda}) {
      side->evict_at = random() % 9000;
      side->keep = random() % 8 == 0 ? 1 : 0;
    }
    InterpreterLaunch launch;
    const uint32_t leaders = tensor.by_leader || cuda.by_leader ? 1 : 0;
    launch.grid = {leaders + 1 + static_cast<uint32_t>(random() % 2), 1, 1};
    launch.block = {twin.layout.threads, 1, 1};
    launch.dynamic_shared_bytes = twin.layout.dynamic_shared ? twin.layout.shared_bytes : 0;
    // Both orders of progress, and neither.
    const uint32_t second = twin.layout.cuda.first_thread;
    if (round % 3 == 1) launch.slow_threads = {0, second};
    if (round % 3 == 2) launch.slow_threads = {second, twin.layout.threads};
    const auto batch = static_cast<uint32_t>(1 + random() % 3);
    launch.parameters.push_back(BytesOf(tensor.Header(round, batch)));
    launch.parameters.push_back(PackedArguments(tensor.kernel, tensor.base));
    launch.parameters.push_back(BytesOf(cuda.Header(round, 4 - batch)));
    launch.parameters.push_back(PackedArguments(cuda.kernel, cuda.base));
    launch.each_step = [&](uint64_t step) {
      tensor.Evict(memory, step, round);
      cuda.Evict(memory, step, round);
    };
    ASSERT_EQ(Interpreter(twin.text, twin.entry).Run(launch, memory, random()), "");
    tensor.ReadRecord(memory, round);
    cuda.ReadRecord(memory, round);
  }
  tensor.ExpectOriginals(memory);
  cuda.ExpectOriginals(memory);
  evictions += {tensor.evictions, cuda.evictions};
}

TEST(FusedRun, EveryPairUnderRandomEvictionsLeavesTheOriginalsMemory) {
  const std::vector<Kernel> kernels = Kernels();
  uint64_t seed = 1;
  Evictions evictions;
  for (const Kernel& first : kernels) {
    for (const Kernel& second : kernels) {
      SCOPED_TRACE(first.name + " with " + second.name);
      RunPair({first, 0}, {second, kPartBytes}, {.seed = ++seed}, evictions);
    }
  }
  EXPECT_GT(evictions.tensor, 0u);
  EXPECT_GT(evictions.cuda, 0u);
}

TEST(FusedRun, CopiesOfAPartShareNothing) {
  const std::vector<Kernel> kernels = Kernels();
  uint64_t seed = 100;
  Evictions evictions;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const Kernel& first = kernels[i];
    const Kernel& second = kernels[(i + 2) % kernels.size()];
    SCOPED_TRACE(first.name + " with " + second.name);
    RunPair({first, 0}, {second, kPartBytes},
            {.tensor_copies = 2, .cuda_copies = 1 + static_cast<uint32_t>(i % 3), .seed = ++seed},
            evictions);
  }
  EXPECT_GT(evictions.tensor, 0u);
  EXPECT_GT(evictions.cuda, 0u);
}

TEST(FusedRun, OnePartMayHaveNoBlockTasks) {
  const std::vector<Kernel> kernels = Kernels();
  const Kernel& sum = kernels[1];
  const Kernel& turn = kernels[3];
  Evictions evictions;
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    RunPair({.kernel = sum, .base = 0, .empty = true}, {turn, kPartBytes}, {.seed = seed},
            evictions);
    RunPair({sum, 0}, {.kernel = turn, .base = kPartBytes, .empty = true}, {.seed = seed},
            evictions);
  }
  EXPECT_GT(evictions.tensor, 0u);
  EXPECT_GT(evictions.cuda, 0u);
}

// The leader's block copies the word of a part that has one, and returns for the other.
TEST(FusedRun, TheLeaderEvictsThePartThatHasAHostWord) {
  const std::vector<Kernel> kernels = Kernels();
  Evictions second;
  Evictions first;
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    RunPair({kernels[2], 0}, {.kernel = kernels[3], .base = kPartBytes, .by_leader = true},
            {.seed = seed}, second);
    RunPair({.kernel = kernels[1], .base = 0, .by_leader = true}, {kernels[4], kPartBytes},
            {.tensor_copies = 2, .seed = seed}, first);
  }
  // Evictions of the part whose word the leader copies.
  EXPECT_GT(second.cuda, 0u);
  EXPECT_GT(first.tensor, 0u);
}

// Parts are whole warpgroups then: most threads of these small kernels are padding.
TEST(FusedRun, UnusedThreadsOfWarpgroupsEnd) {
  std::vector<Kernel> kernels = Kernels();
  Evictions evictions;
  RunPair({kernels[3], 0}, {kernels[2], kPartBytes},
          {.tensor_copies = 2, .move_registers = true, .seed = 3}, evictions);
}

}  // namespace
}  // namespace gpushare::ptx
