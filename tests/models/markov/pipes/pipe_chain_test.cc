// The chain with pipes: closed forms, invariants, and a simulation of every warp.

#include "src/models/markov/pipes/pipe_chain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace gpushare::models::markov {
namespace {

constexpr Arbitration kEqual = {1, 1};

PipeResident Warps(int32_t units, double stall_share, double latency_cycles, Pipe pipe = Pipe::kAlu,
                   double pipe_cycles = 0) {
  PipeResident resident;
  resident.units = units;
  resident.kernel.stall_share = stall_share;
  resident.kernel.latency_cycles = latency_cycles;
  resident.kernel.pipe_cycles[static_cast<size_t>(pipe)] = pipe_cycles;
  return resident;
}

class PipeChainTest : public testing::Test {
 protected:
  ChainIpc Solve(const std::vector<PipeResident>& kernels, const Arbitration& arbitration = {}) {
    return SolvePipeChain(1, kernels, arbitration, *workspace_);
  }

  std::unique_ptr<ChainWorkspace> workspace_ = std::make_unique<ChainWorkspace>();
};

TEST_F(PipeChainTest, OneWarpStallsForItsLatencyOrItsPipe) {
  EXPECT_NEAR(Solve({Warps(1, 0.2, 30)}).ipc[0], 1 / (1 + 0.2 * 30), 1e-12);
  EXPECT_NEAR(Solve({Warps(1, 0.2, 30, Pipe::kDram, 50)}).ipc[0], 1 / (1 + 0.2 * 50), 1e-12);
}

TEST_F(PipeChainTest, APipeBoundsTheIpcOfManyWarps) {
  // 0.1 stalls an instruction, 25 cycles of the pipe each.
  const double bound = 1 / (0.1 * 25);
  EXPECT_LT(Solve({Warps(40, 0.1, 20, Pipe::kSpecial, 25)}).ipc[0], bound * (1 + 1e-12));
  EXPECT_GT(Solve({Warps(40, 0.1, 20, Pipe::kSpecial, 25)}).ipc[0], 0.98 * bound);
  PipeResident slow = Warps(40, 0.01, 5);
  slow.kernel.issue_cycles = 1.25;
  EXPECT_NEAR(Solve({slow}).ipc[0], 0.8, 1e-3) << "issue slots bound it";
}

TEST_F(PipeChainTest, TwoKernelsOnOnePipeAreSlowerThanOnTwo) {
  const PipeResident alu = Warps(8, 0.1, 20, Pipe::kAlu, 15);
  const PipeResident special = Warps(8, 0.1, 20, Pipe::kSpecial, 15);
  const ChainIpc same = Solve({alu, alu}, kEqual);
  const ChainIpc other = Solve({alu, special}, kEqual);
  EXPECT_LT(same.ipc[0] + same.ipc[1], 1 / (0.1 * 15) * (1 + 1e-12));
  EXPECT_GT(other.ipc[0] + other.ipc[1], 1.2 * (same.ipc[0] + same.ipc[1]));
}

TEST_F(PipeChainTest, AnOlderKernelTakesIssueSlotsAndSmPipesButNotDram) {
  const PipeResident issue = Warps(6, 0.05, 10);
  const ChainIpc slots = Solve({issue, issue});
  EXPECT_GT(slots.ipc[0], 3 * slots.ipc[1]);
  for (const Pipe pipe :
       {Pipe::kAlu, Pipe::kTensor, Pipe::kSpecial, Pipe::kLsu, Pipe::kL1, Pipe::kL2, Pipe::kDram}) {
    const PipeResident full = Warps(6, 0.2, 20, pipe, 40);
    const ChainIpc pair = Solve({full, full}, {1, 0.3});
    const double ratio = pair.ipc[0] / pair.ipc[1];
    if (pipe == Pipe::kL2 || pipe == Pipe::kDram) {
      EXPECT_NEAR(ratio, 1, 1e-9);
    } else {
      EXPECT_GT(ratio, 2) << static_cast<int>(pipe);
    }
  }
}

TEST_F(PipeChainTest, ProbabilitiesSumToOneAndIpcStaysBelowThePeak) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> unit(0, 1);
  for (int repeat = 0; repeat < 200; ++repeat) {
    std::vector<PipeResident> kernels;
    for (int k = 0; k < 2; ++k) {
      PipeResident one = Warps(1 + static_cast<int32_t>(12 * unit(random)),
                               0.01 + 0.9 * unit(random), 200 * unit(random));
      one.warps_per_unit = 0.25 + 2 * unit(random);
      one.kernel.issue_cycles = 1 + unit(random);
      for (double& cycles : one.kernel.pipe_cycles) {
        cycles = unit(random) < 0.5 ? 0 : 60 * unit(random);
      }
      kernels.push_back(one);
    }
    const int32_t schedulers = 1 + repeat % 4;
    const ChainIpc result = SolvePipeChain(
        schedulers, kernels, {0.01 + 0.99 * unit(random), 0.1 + 0.9 * unit(random)}, *workspace_);
    ASSERT_TRUE(result.known);
    EXPECT_LE(result.states, kPlannedStatesMax);
    const auto* const steady = workspace_->steady.begin();
    EXPECT_NEAR(std::accumulate(steady, steady + result.states, 0.0), 1, 1e-12);
    EXPECT_GT(result.ipc[0], 0);
    EXPECT_GT(result.ipc[1], 0);
    EXPECT_LE(result.ipc[0] + result.ipc[1], schedulers * (1 + 1e-12));
  }
}

TEST_F(PipeChainTest, AKernelWithoutWarpsChangesNothing) {
  const PipeResident kernel = Warps(7, 0.1, 30, Pipe::kL1, 20);
  const PipeResident none = Warps(0, 0.7, 90, Pipe::kL1, 90);
  const double alone = Solve({kernel}).ipc[0];
  EXPECT_NEAR(Solve({kernel, none}).ipc[0], alone, 1e-13);
  EXPECT_NEAR(Solve({none, kernel}).ipc[1], alone, 1e-13);
  EXPECT_EQ(Solve({none, kernel}).ipc[0], 0);
}

TEST_F(PipeChainTest, WithoutAgeTheOrderDoesNotMatterAndEqualKernelsShare) {
  const PipeResident a = Warps(5, 0.1, 30, Pipe::kL1, 20);
  const PipeResident b = Warps(3, 0.3, 90, Pipe::kL1, 10);
  EXPECT_NEAR(Solve({a, b}, kEqual).ipc[0], Solve({b, a}, kEqual).ipc[1], 1e-12);
  const double alone = Solve({Warps(8, 0.1, 30, Pipe::kL1, 20)}).ipc[0];
  const ChainIpc pair = Solve({a, Warps(3, 0.1, 30, Pipe::kL1, 20)}, kEqual);
  EXPECT_NEAR(pair.ipc[0], alone * 5 / 8, 1e-12);
  EXPECT_NEAR(pair.ipc[1], alone * 3 / 8, 1e-12);
}

TEST_F(PipeChainTest, InputsOutOfRangeHaveNoPrediction) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(Solve({}).known);
  EXPECT_FALSE(Solve({Warps(4, nan, 10)}).known);
  EXPECT_FALSE(Solve({Warps(4, 0, 10)}).known);
  EXPECT_FALSE(Solve({Warps(4, 0.1, nan)}).known);
  EXPECT_FALSE(Solve({Warps(-1, 0.1, 10)}).known);
  EXPECT_FALSE(Solve({Warps(4, 0.1, 10, Pipe::kAlu, -1)}).known);
  EXPECT_FALSE(Solve({Warps(4, 0.1, 10)}, {0, 1}).known);
  PipeResident fast = Warps(4, 0.1, 10);
  fast.kernel.issue_cycles = 0.5;
  EXPECT_FALSE(Solve({fast}).known) << "two instructions a slot pass the peak";
  EXPECT_FALSE(Solve(std::vector<PipeResident>(3, Warps(1, 0.1, 10))).known);
  EXPECT_FALSE(
      SolvePipeChain(0, std::vector<PipeResident>{Warps(1, 0.1, 10)}, {}, *workspace_).known);
}

// One warp after the other, by the rules of docs/models.md and none of the code above: the factor
// on a pipe is found by bisection, not by a closed form.
class WarpSimulation {
 public:
  WarpSimulation(std::vector<PipeResident> kernels, Arbitration arbitration)
      : kernels_(std::move(kernels)), arbitration_(arbitration) {
    for (const PipeResident& kernel : kernels_) {
      stalled_.emplace_back(static_cast<size_t>(kernel.units), false);
    }
  }

  std::array<double, 2> Run(int rounds) {
    std::array<double, 2> issued = {};
    double cycles = 0;
    for (int round = 0; round < rounds; ++round) cycles += RunRound(issued);
    return {issued[0] / cycles, issued[1] / cycles};
  }

 private:
  static double Count(const std::vector<bool>& flags, bool value) {
    return static_cast<double>(std::count(flags.begin(), flags.end(), value));
  }
  // Use of the pipe when the younger kernel's cycles are multiplied by `factor`.
  double UseAt(size_t pipe, double factor) const {
    double use = 0;
    for (size_t k = 0; k < kernels_.size(); ++k)
      use += Count(stalled_[k], true) * Part(k, pipe, factor);
    return use;
  }
  double Factor(size_t k, size_t pipe, double factor) const {
    const double wait =
        k == 0 && pipe < static_cast<size_t>(Pipe::kL2) ? arbitration_.older_wait : 1;
    return std::max(1.0, wait * factor);
  }
  double Cycles(size_t k, size_t pipe, double factor) const {
    const PipeKernel& kernel = kernels_[k].kernel;
    const double own = kernel.pipe_cycles[pipe];
    return std::max(0.0, kernel.latency_cycles - own) + own * Factor(k, pipe, factor);
  }
  double Part(size_t k, size_t pipe, double factor) const {
    const double own = kernels_[k].kernel.pipe_cycles[pipe];
    return own > 0 ? own / Cycles(k, pipe, factor) : 0;
  }
  double Latency(size_t k) const {
    double latency = kernels_[k].kernel.latency_cycles;
    for (size_t pipe = 0; pipe < kPipes; ++pipe) {
      if (kernels_[k].kernel.pipe_cycles[pipe] <= 0) continue;
      double low = 1;
      double high = 1e4;
      for (int i = 0; i < 60 && UseAt(pipe, low) > 1; ++i) {
        const double middle = (low + high) / 2;
        (UseAt(pipe, middle) > 1 ? low : high) = middle;
      }
      latency = std::max(latency, Cycles(k, pipe, low));
    }
    return latency;
  }

  // Of all kernels; the same numbers of stalled warps always have the same ones.
  std::array<double, 2> Latencies() {
    std::array<int, 2> counts = {};
    for (size_t k = 0; k < kernels_.size(); ++k) {
      counts[k] = static_cast<int>(Count(stalled_[k], true));
    }
    const auto [found, is_new] = latencies_.try_emplace(counts);
    if (is_new) {
      for (size_t k = 0; k < kernels_.size(); ++k) found->second[k] = Latency(k);
    }
    return found->second;
  }

  double RunRound(std::array<double, 2>& issued) {
    std::array<double, 2> rate = {1, 1};
    if (Count(stalled_[0], false) > 0) rate[1] = arbitration_.younger_issue;
    const std::array<double, 2> latency = Latencies();
    double cycles = 0;
    for (size_t k = 0; k < kernels_.size(); ++k) {
      const double ready = Count(stalled_[k], false) * rate[k];
      issued[k] += ready;
      cycles += ready * kernels_[k].kernel.issue_cycles;
    }
    cycles = std::max(1.0, cycles);
    for (size_t k = 0; k < kernels_.size(); ++k) {
      for (size_t i = 0; i < stalled_[k].size(); ++i) {
        const bool was = stalled_[k][i];
        const double moves = was ? cycles / latency[k] : kernels_[k].kernel.stall_share * rate[k];
        if (unit_(random_) < moves) stalled_[k][i] = !was;
      }
    }
    return cycles;
  }

  std::vector<PipeResident> kernels_;
  Arbitration arbitration_;
  std::vector<std::vector<bool>> stalled_;
  std::map<std::array<int, 2>, std::array<double, 2>> latencies_;
  std::mt19937_64 random_{11};
  std::uniform_real_distribution<double> unit_{0, 1};
};

void ExpectSimulated(const std::vector<PipeResident>& kernels, const Arbitration& arbitration,
                     const ChainIpc& predicted) {
  constexpr int kBatches = 20;
  constexpr int kRounds = 20'000;
  WarpSimulation simulation(kernels, arbitration);
  simulation.Run(kRounds);  // forgets that all were ready
  std::array<std::array<double, kBatches>, 2> batches;
  for (size_t i = 0; i < kBatches; ++i) {
    const auto ipc = simulation.Run(kRounds);
    for (size_t k = 0; k < 2; ++k) batches[k][i] = ipc[k];
  }
  for (size_t k = 0; k < kernels.size(); ++k) {
    const double mean = std::accumulate(batches[k].begin(), batches[k].end(), 0.0) / kBatches;
    double squares = 0;
    for (const double value : batches[k]) squares += (value - mean) * (value - mean);
    const double error = std::sqrt(squares / kBatches / (kBatches - 1));
    EXPECT_LT(error, 0.02 * mean) << "the simulation is too short to tell";
    EXPECT_NEAR(predicted.ipc[k], mean, 4 * error) << "kernel " << k;
  }
}

TEST_F(PipeChainTest, OneKernelAgreesWithASimulationOfItsWarps) {
  const std::vector<PipeResident> kernels = {Warps(8, 0.2, 20, Pipe::kSpecial, 9)};
  ExpectSimulated(kernels, {}, Solve(kernels));
}

TEST_F(PipeChainTest, TwoKernelsOfOneAgeAgreeWithASimulation) {
  PipeResident older = Warps(5, 0.2, 20, Pipe::kDram, 12);
  older.kernel.issue_cycles = 1.2;
  const std::vector<PipeResident> kernels = {older, Warps(4, 0.3, 15, Pipe::kDram, 6)};
  ExpectSimulated(kernels, kEqual, Solve(kernels, kEqual));
}

TEST_F(PipeChainTest, AnOlderAndAYoungerKernelAgreeWithASimulation) {
  const Arbitration arbitration = {0.2, 0.3};
  PipeResident younger = Warps(4, 0.4, 15, Pipe::kAlu, 8);
  younger.kernel.pipe_cycles[static_cast<size_t>(Pipe::kL2)] = 10;
  const std::vector<PipeResident> kernels = {Warps(5, 0.3, 20, Pipe::kAlu, 7), younger};
  ExpectSimulated(kernels, arbitration, Solve(kernels, arbitration));
}

}  // namespace
}  // namespace gpushare::models::markov
