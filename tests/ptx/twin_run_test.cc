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
#include "tests/ptx/interpreter_memory.h"
#include "tests/ptx/kernels.h"

namespace gpushare::ptx {
namespace {

// The memory of a run: what the protocol needs, then the kernel's words.
constexpr uint64_t kWord = 0;
constexpr uint64_t kCounter = 8;
constexpr uint64_t kScratch = 32;
constexpr uint64_t kCompletion = 64;
constexpr uint64_t kHostWord = 16;
constexpr uint64_t kRetired = 24;
constexpr uint64_t kSmWorkers = 104;  // of up to six SMs
constexpr uint64_t kOut = 128;
constexpr size_t kBytes = 4096;

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

// One launch of a worker twin whose block tasks are the words of kBlockSum.
struct WorkerRun {
  Case c = Cases()[1];
  Twin twin = Transform(c.text, "k", {.workers = true});
  std::vector<uint8_t> memory = std::vector<uint8_t>(kBytes);
  gpushare_worker_launch header;
  InterpreterLaunch launch;

  explicit WorkerRun(std::array<uint32_t, 3> grid = Cases()[1].grid) {
    c.grid = grid;
    header = Header(c);
    header.eviction_word = Device<uint64_t>(kWord);
    header.counter = Device<uint32_t>(kCounter);
    header.sequence = 1;
    header.epoch = 1;
    launch.grid = {4, 1, 1};
  }

  gpushare_worker_completion Run(uint64_t seed = 5) {
    launch.parameters = {BytesOf(header), BytesOf<uint64_t>(kGlobalBase + kOut)};
    EXPECT_EQ(Interpreter(twin.text, twin.worker_entry).Run(launch, memory, seed), "");
    return At<gpushare_worker_completion>(memory, kCompletion);
  }

  // Without evictions and with claims of one, each worker that stays fails one claim.
  uint32_t WorkersThatStayed() const { return At<uint32_t>(memory, kCounter) - Blocks(c); }
  uint32_t CountOf(uint32_t sm) const { return At<uint32_t>(memory, kSmWorkers + 4 * sm); }
};

TEST(TwinRun, TheLeaderRelaysTheHostsWordAndTakesNoBlockTask) {
  uint32_t evictions = 0;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    WorkerRun run;
    run.header.host_eviction_word = Device<uint64_t>(kHostWord);
    run.launch.grid = {1 + 2, 1, 1};
    uint32_t left = 1;
    uint32_t done = 0;
    for (uint32_t round = 1; left > 0; ++round) {
      ASSERT_LT(round, 100u);
      run.header.epoch = round;
      run.header.sequence = round;
      const uint64_t evict_at = random() % 12000;
      const uint64_t word = uint64_t{round} << 32;
      run.launch.each_step = [&](uint64_t step) {
        if (step == evict_at) std::memcpy(run.memory.data() + kHostWord, &word, sizeof(word));
      };
      const gpushare_worker_completion record = run.Run(random());
      ASSERT_EQ(record.sequence, round);
      left = record.block_tasks_left;
      done += record.block_tasks_done;
      evictions += left > 0 ? 1 : 0;
      if (left > 0) {
        EXPECT_EQ(At<uint64_t>(run.memory, kWord), word);
      }
    }
    EXPECT_EQ(done, Blocks(run.c));
    ExpectSameOut(run.memory, RunOriginal(run.c, 1));
  }
  EXPECT_GT(evictions, 0u);
}

// The low half of the word is how many workers stay: the leader is not one of them.
TEST(TwinRun, TheFirstWorkerBehindTheLeaderIsKept) {
  WorkerRun run;
  run.header.host_eviction_word = Device<uint64_t>(kHostWord);
  run.launch.grid = {1 + 3, 1, 1};
  const uint64_t keep_one = uint64_t{1} << 32 | 1;
  std::memcpy(run.memory.data() + kHostWord, &keep_one, sizeof(keep_one));
  std::memcpy(run.memory.data() + kWord, &keep_one, sizeof(keep_one));
  const gpushare_worker_completion record = run.Run();
  EXPECT_EQ(record.block_tasks_done, Blocks(run.c));
  EXPECT_EQ(run.WorkersThatStayed(), 1u);
  ExpectSameOut(run.memory, RunOriginal(run.c, 1));
}

TEST(TwinRun, WorkersOutsideOfTheirSmsLeaveAtOnce) {
  struct Row {
    uint32_t first, count, stay;
  };
  for (const Row& row : {Row{0, 0, 4}, Row{1, 2, 2}, Row{2, 1, 1}, Row{3, 8, 1}, Row{4, 2, 0}}) {
    SCOPED_TRACE(row.first);
    WorkerRun run;
    run.launch.sms = 4;
    run.header.sm_first = row.first;
    run.header.sm_count = row.count;
    const gpushare_worker_completion record = run.Run();
    EXPECT_EQ(record.sequence, 1u);
    const uint32_t done = row.stay > 0 ? Blocks(run.c) : 0;
    EXPECT_EQ(record.block_tasks_done, done);
    EXPECT_EQ(record.block_tasks_left, Blocks(run.c) - done);
    if (row.stay > 0) {
      EXPECT_EQ(run.WorkersThatStayed(), row.stay);
    }
  }
}

TEST(TwinRun, AnSmKeepsAsManyWorkersAsAllowedAndItsCountIsGivenBack) {
  struct Row {
    uint32_t per_sm, stay;
  };
  // Six blocks on two SMs; 0 is no bound. There are so many block tasks that all blocks have
  // counted themselves before the first one leaves, so that who stays is all that ever stays at
  // once.
  for (const Row& row : {Row{0, 6}, Row{1, 2}, Row{2, 4}, Row{3, 6}}) {
    for (uint64_t seed = 1; seed <= 2; ++seed) {
      SCOPED_TRACE(row.per_sm);
      WorkerRun run({24, 1, 1});
      run.launch.grid = {6, 1, 1};
      run.launch.sms = 2;
      std::array<uint32_t, 2> peak = {};  // with blocks that are about to leave
      run.launch.each_step = [&](uint64_t) {
        for (uint32_t sm = 0; sm < 2; ++sm) peak[sm] = std::max(peak[sm], run.CountOf(sm));
      };
      run.header.sm_workers = Device<uint32_t>(kSmWorkers);
      run.header.workers_per_sm = row.per_sm;
      EXPECT_EQ(run.Run(seed).block_tasks_done, Blocks(run.c));
      EXPECT_EQ(run.WorkersThatStayed(), row.stay);
      EXPECT_GE(std::min(peak[0], peak[1]), row.per_sm);
      EXPECT_LE(std::max(peak[0], peak[1]), row.per_sm == 0 ? 0u : 3u);
      EXPECT_EQ(run.CountOf(0), 0u);
      EXPECT_EQ(run.CountOf(1), 0u);
      ExpectSameOut(run.memory, RunOriginal(run.c, 1));
    }
  }
}

TEST(TwinRun, WorkersRetreatFromAFullSm) {
  WorkerRun run;
  run.launch.sms = 1;
  run.header.sm_workers = Device<uint32_t>(kSmWorkers);
  run.header.workers_per_sm = 2;
  const uint32_t others = 2;  // of another launch
  std::memcpy(run.memory.data() + kSmWorkers, &others, sizeof(others));
  const gpushare_worker_completion record = run.Run();
  EXPECT_EQ(record.block_tasks_done, 0u);
  EXPECT_EQ(record.block_tasks_left, Blocks(run.c));
  EXPECT_EQ(run.CountOf(0), others);
}

TEST(TwinRun, TheLastWorkerZeroesTheRetiredCounterAlone) {
  for (const bool retires : {true, false}) {
    WorkerRun run;
    const uint32_t old = 77;
    std::memcpy(run.memory.data() + kRetired, &old, sizeof(old));
    if (retires) run.header.retired_counter = Device<uint32_t>(kRetired);
    EXPECT_EQ(run.Run().block_tasks_left, 0u);
    EXPECT_EQ(At<uint32_t>(run.memory, kRetired), retires ? 0u : old);
    EXPECT_EQ(At<uint32_t>(run.memory, kRetired + 4), 0u);
  }
}

TEST(TwinRun, WorkersClaimFromTheirFirstBlockTaskOn) {
  WorkerRun run;
  const uint32_t half = 3;
  run.header.block_begin = half;
  run.header.block_count = Blocks(run.c) - half;
  run.header.claim_batch = 3;
  EXPECT_EQ(run.Run().block_tasks_done, Blocks(run.c) - half);
  for (uint32_t block = 0; block < half; ++block) {
    EXPECT_EQ(At<uint32_t>(run.memory, kOut + 4 * uint64_t{block}), 0u);
  }
  const uint32_t none = 0;
  std::memcpy(run.memory.data() + kCounter, &none, sizeof(none));
  run.header.block_begin = 0;
  run.header.block_count = half;
  EXPECT_EQ(run.Run().block_tasks_done, half);
  ExpectSameOut(run.memory, RunOriginal(run.c, 1));
}

TEST(TwinRun, WithoutACounterEachWorkerExecutesItsOwnBlockTaskOnce) {
  for (const uint32_t begin : {0u, 2u}) {
    WorkerRun run;
    run.header.counter = nullptr;
    run.header.block_begin = begin;
    run.header.block_count = Blocks(run.c) - begin;
    run.launch.grid = {Blocks(run.c) + 2, 1, 1};  // the last have none
    const gpushare_worker_completion record = run.Run();
    EXPECT_EQ(record.block_tasks_done, Blocks(run.c) - begin);
    EXPECT_EQ(record.block_tasks_left, 0u);
    EXPECT_EQ(At<uint32_t>(run.memory, kCounter), 0u);
    const std::vector<uint8_t> whole = RunOriginal(run.c, 1);
    for (uint32_t block = 0; block < Blocks(run.c); ++block) {
      const uint64_t place = kOut + 4 * uint64_t{block};
      EXPECT_EQ(At<uint32_t>(run.memory, place), block < begin ? 0 : At<uint32_t>(whole, place));
    }
  }
}

TEST(TwinRun, ALaunchReportsOnlyWhereItIsAskedTo) {
  WorkerRun quiet;
  quiet.header.scratch = nullptr;
  EXPECT_EQ(quiet.Run().sequence, 0u);
  ExpectSameOut(quiet.memory, RunOriginal(quiet.c, 1));
  WorkerRun unrecorded;
  unrecorded.header.completion = nullptr;
  EXPECT_EQ(unrecorded.Run().sequence, 0u);
  EXPECT_EQ(At<gpushare_worker_scratch>(unrecorded.memory, kScratch).ended_sequence, 1u);
}

}  // namespace
}  // namespace gpushare::ptx
