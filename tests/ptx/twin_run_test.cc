// Twins run in the interpreter with random orders and random evictions: the memory they leave is
// the original's, bit for bit, and the completion record adds up.

#include <gpushare/device/launch.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "src/ptx/twin.h"
#include "tests/ptx/interpreter.h"
#include "tests/ptx/kernels.h"

namespace gpushare::ptx {
namespace {

// The memory of a run: what the protocol needs, then the kernel's words.
constexpr uint64_t kWord = 0;
constexpr uint64_t kCounter = 8;
constexpr uint64_t kScratch = 32;
constexpr uint64_t kCompletion = 64;
constexpr uint64_t kOut = 128;
constexpr size_t kBytes = 4096;

template <class T>
std::vector<uint8_t> BytesOf(const T& value) {
  std::vector<uint8_t> bytes(sizeof(T));
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

template <class T>
T At(const std::vector<uint8_t>& memory, uint64_t offset) {
  T value;
  std::memcpy(&value, memory.data() + offset, sizeof(T));
  return value;
}

template <class T>
T* Device(uint64_t offset) {
  return reinterpret_cast<T*>(kGlobalBase + offset);  // an address of the interpreter's memory
}

struct Case {
  std::string name;
  std::string text;
  std::array<uint32_t, 3> grid;
};

std::vector<Case> Cases() {
  return {{"three dimensions", KernelText(kThreeDimensions), {3, 2, 2}},
          {"block sum", KernelText(kBlockSum, ".reqntid 32\n"), {7, 1, 1}},
          {"early return", KernelText(kEarlyReturn, ".maxntid 32, 1, 1\n"), {9, 1, 1}}};
}

uint32_t Blocks(const Case& c) { return c.grid[0] * c.grid[1] * c.grid[2]; }

std::vector<uint8_t> RunOriginal(const Case& c, uint64_t seed) {
  std::vector<uint8_t> memory(kBytes);
  InterpreterLaunch launch;
  launch.grid = c.grid;
  launch.parameters = {BytesOf<uint64_t>(kGlobalBase + kOut)};
  EXPECT_EQ(Interpreter(c.text, "k").Run(launch, memory, seed), "");
  return memory;
}

gpushare_worker_launch Header(const Case& c) {
  gpushare_worker_launch header = {};
  header.scratch = Device<gpushare_worker_scratch>(kScratch);
  header.completion = Device<gpushare_worker_completion>(kCompletion);
  header.block_count = Blocks(c);
  header.grid_x = c.grid[0];
  header.grid_y = c.grid[1];
  header.grid_z = c.grid[2];
  return header;
}

void ExpectSameOut(const std::vector<uint8_t>& got, const std::vector<uint8_t>& expected) {
  EXPECT_TRUE(std::equal(got.begin() + kOut, got.end(), expected.begin() + kOut));
}

// Launches until no block task is left, each launch evicted at a random step.
void RunWorkers(const Case& c, const Twin& twin, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint8_t> memory(kBytes);
  uint32_t done = 0;
  uint32_t left = 1;
  for (uint32_t round = 1; left > 0; ++round) {
    ASSERT_LT(round, 200u) << "block tasks are never finished";
    gpushare_worker_launch header = Header(c);
    header.eviction_word = Device<uint64_t>(kWord);
    header.counter = Device<uint32_t>(kCounter);
    header.epoch = round;
    header.sequence = round;
    header.claim_batch = 1 + static_cast<uint32_t>(random() % 3);
    const uint64_t evict_at = random() % 6000;
    const uint64_t keep = random() % 8 == 0 ? 1 : 0;
    InterpreterLaunch launch;
    launch.grid = {1 + static_cast<uint32_t>(random() % 3), 1, 1};
    launch.parameters = {BytesOf(header), BytesOf<uint64_t>(kGlobalBase + kOut)};
    launch.each_step = [&](uint64_t step) {
      const uint64_t word = uint64_t{round} << 32 | keep;
      if (step == evict_at) std::memcpy(memory.data() + kWord, &word, sizeof(word));
    };
    ASSERT_EQ(Interpreter(twin.text, twin.worker_entry).Run(launch, memory, random()), "");
    const auto record = At<gpushare_worker_completion>(memory, kCompletion);
    ASSERT_EQ(record.sequence, round);
    done += record.block_tasks_done;
    left = record.block_tasks_left;
    EXPECT_EQ(done + left, Blocks(c));
    const auto scratch = At<gpushare_worker_scratch>(memory, kScratch);
    EXPECT_EQ(scratch.finished, 0u);
    EXPECT_EQ(scratch.ended_sequence, round);
  }
  ExpectSameOut(memory, RunOriginal(c, seed));
}

TEST(TwinRun, WorkersUnderRandomEvictionsLeaveTheOriginalsMemory) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    const Twin twin = Transform(c.text, "k", {.workers = true});
    ASSERT_TRUE(twin.ok()) << twin.refusal.message;
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      SCOPED_TRACE(seed);
      RunWorkers(c, twin, seed);
    }
  }
}

TEST(TwinRun, SlicesLeaveTheOriginalsMemory) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    const Twin twin = Transform(c.text, "k", {.slice = true});
    ASSERT_TRUE(twin.ok()) << twin.refusal.message;
    std::vector<uint8_t> memory(kBytes);
    for (uint32_t begin = 0; begin < Blocks(c); begin += 2) {
      gpushare_worker_launch header = Header(c);
      header.block_begin = begin;
      header.block_count = std::min(2u, Blocks(c) - begin);
      header.sequence = begin + 1;
      if (begin % 4 == 0) header.scratch = nullptr;  // a slice that reports nothing
      InterpreterLaunch launch;
      launch.grid = {header.block_count, 1, 1};
      launch.parameters = {BytesOf(header), BytesOf<uint64_t>(kGlobalBase + kOut)};
      ASSERT_EQ(Interpreter(twin.text, twin.slice_entry).Run(launch, memory, begin + 3), "");
      if (begin % 4 == 0) continue;
      EXPECT_EQ(At<gpushare_worker_completion>(memory, kCompletion).block_tasks_done,
                header.block_count);
    }
    ExpectSameOut(memory, RunOriginal(c, 9));
  }
}

}  // namespace
}  // namespace gpushare::ptx
