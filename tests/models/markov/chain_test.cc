// Chains of one, two and three kernels: closed forms, invariants, and a simulation of every warp.

#include "src/models/markov/chain.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace gpushare::models::markov {
namespace {

constexpr VirtualSm kSm = {
    .schedulers = 1, .latency_cycles = 100, .contention_slope = 1, .requests_per_cycle = 0.07};

// Short latencies, so that a simulation forgets its state soon.
constexpr VirtualSm kQuickSm = {
    .schedulers = 1, .latency_cycles = 20, .contention_slope = 1, .requests_per_cycle = 0.5};

ResidentKernel Warps(int32_t units, double memory_share, double uncoalesced_share = 0) {
  return {.units = units,
          .memory_share = memory_share,
          .uncoalesced_share = uncoalesced_share,
          .uncoalesced_requests = 8};
}

class MarkovChainTest : public testing::Test {
 protected:
  ChainIpc Solve(const std::vector<ResidentKernel>& kernels, const VirtualSm& sm = kSm) {
    return SolveChain(sm, kernels, kStatesMax, *workspace_);
  }

  std::unique_ptr<ChainWorkspace> workspace_ = std::make_unique<ChainWorkspace>();
};

TEST_F(MarkovChainTest, OneWarpWaitsForEachOfItsAccesses) {
  const double latency = MemoryLatency(kSm, 1);
  EXPECT_NEAR(latency, 100 + 1 / 0.07, 1e-9);
  EXPECT_NEAR(Solve({Warps(1, 0.2)}).ipc[0], 1 / (1 + 0.2 * latency), 1e-12);
  // Each of the eight requests takes 1 / B, and they stand in each other's way.
  const double uncoalesced = 100 + 8 / 0.07 + 7 / 0.07;
  EXPECT_NEAR(Solve({Warps(1, 0.2, 1)}).ipc[0], 1 / (1 + 0.2 * uncoalesced), 1e-12);
}

TEST_F(MarkovChainTest, WorkWithoutMemoryInstructionsIssuesEveryCycle) {
  VirtualSm sm = kSm;
  sm.schedulers = 4;
  EXPECT_NEAR(Solve({Warps(8, 0)}, sm).ipc[0], 4, 1e-12);
  const ChainIpc pair = Solve({Warps(6, 0), Warps(2, 0)}, sm);
  EXPECT_NEAR(pair.ipc[0], 3, 1e-12);
  EXPECT_NEAR(pair.ipc[1], 1, 1e-12);
}

TEST_F(MarkovChainTest, WarpsThatAreAllIdleBecomeReadyAgain) {
  EXPECT_GT(Solve({Warps(4, 1)}).ipc[0], 0.01) << "the paper's (W - I) / L is 0 there";
}

TEST_F(MarkovChainTest, RowsSumToOne) {
  StalledCounts scratch;
  for (const double uncoalesced : {0.0, 0.3, 1.0}) {
    const ResidentKernel kernel = Warps(7, 0.3, uncoalesced);
    std::vector<Stalled> states(static_cast<size_t>(CountStates(kernel)));
    ListStates(kernel, states);
    std::vector<double> row(states.size());
    for (const Stalled& from : states) {
      FillRow(kernel, from, {0.2, 0.05}, scratch, row);
      EXPECT_NEAR(std::accumulate(row.begin(), row.end(), 0.0), 1, 1e-12);
    }
  }
}

TEST_F(MarkovChainTest, ProbabilitiesSumToOneAndIpcStaysBelowThePeak) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> unit(0, 1);
  for (int repeat = 0; repeat < 100; ++repeat) {
    VirtualSm sm = kSm;
    sm.schedulers = 1 + repeat % 4;
    sm.latency_cycles = 1 + 800 * unit(random);
    std::vector<ResidentKernel> kernels;
    for (int k = 0; k <= repeat % kKernelsMax; ++k) {
      const double kinds = unit(random);
      kernels.push_back(
          Warps(1 + static_cast<int32_t>(9 * unit(random)), unit(random), kinds < 0.5 ? 0 : kinds));
    }
    const ChainIpc result = SolveChain(sm, kernels, 40, *workspace_);
    ASSERT_TRUE(result.known);
    EXPECT_LE(result.states, 40);
    const auto* const steady = workspace_->steady.begin();
    EXPECT_NEAR(std::accumulate(steady, steady + result.states, 0.0), 1, 1e-12);
    for (size_t k = 0; k < kernels.size(); ++k) EXPECT_GT(result.ipc[k], 0);
    EXPECT_LE(result.ipc[0] + result.ipc[1] + result.ipc[2], sm.schedulers * (1 + 1e-12));
  }
}

TEST_F(MarkovChainTest, AKernelWithoutWarpsChangesNothing) {
  const ResidentKernel kernel = Warps(9, 0.1);
  const ResidentKernel none = Warps(0, 0.7, 0.5);
  const double alone = Solve({kernel}).ipc[0];
  EXPECT_NEAR(Solve({kernel, none}).ipc[0], alone, 1e-13);
  EXPECT_NEAR(Solve({none, kernel}).ipc[1], alone, 1e-13);
  EXPECT_EQ(Solve({kernel, none}).ipc[1], 0);
  const ResidentKernel other = Warps(4, 0.4);
  EXPECT_NEAR(Solve({kernel, none, other}).ipc[2], Solve({kernel, other}).ipc[1], 1e-13);
}

TEST_F(MarkovChainTest, TheOrderOfTheKernelsDoesNotMatter) {
  const ResidentKernel a = Warps(4, 0.1);
  const ResidentKernel b = Warps(3, 0.4, 0.5);
  const ResidentKernel c = Warps(3, 0.02);
  EXPECT_NEAR(Solve({a, b}).ipc[0], Solve({b, a}).ipc[1], 1e-12);
  EXPECT_NEAR(Solve({a, b}).ipc[1], Solve({b, a}).ipc[0], 1e-12);
  // More states than fit: the bound must not favour the kernel that comes first.
  EXPECT_NEAR(Solve({a, b, c}).ipc[0], Solve({c, b, a}).ipc[2], 1e-12);
  EXPECT_NEAR(Solve({a, b, c}).ipc[1], Solve({c, b, a}).ipc[1], 1e-12);
}

TEST_F(MarkovChainTest, EqualKernelsShareTheIpcOfOneKernelWithAllTheWarps) {
  const double alone = Solve({Warps(9, 0.1)}).ipc[0];
  const ChainIpc pair = Solve({Warps(6, 0.1), Warps(3, 0.1)});
  EXPECT_NEAR(pair.ipc[0], alone * 6 / 9, 1e-12);
  EXPECT_NEAR(pair.ipc[1], alone * 3 / 9, 1e-12);
  const ChainIpc three = Solve({Warps(4, 0.1), Warps(3, 0.1), Warps(2, 0.1)});
  EXPECT_NEAR(three.ipc[0], alone * 4 / 9, 1e-12);
  EXPECT_NEAR(three.ipc[2], alone * 2 / 9, 1e-12);
}

TEST_F(MarkovChainTest, AnUncoalescedAccessOfOneRequestIsACoalescedOne) {
  ResidentKernel kernel = Warps(6, 0.2, 0.4);
  kernel.uncoalesced_requests = 1;
  EXPECT_NEAR(Solve({kernel}).ipc[0], Solve({Warps(6, 0.2)}).ipc[0], 1e-12);
}

TEST_F(MarkovChainTest, CountingUncoalescedAccessesAsCoalescedPredictsTooMuch) {
  // Figure 10 shows this for PC and SPMV.
  EXPECT_GT(Solve({Warps(8, 0.2)}).ipc[0], 1.5 * Solve({Warps(8, 0.2, 0.5)}).ipc[0]);
}

TEST_F(MarkovChainTest, MoreStatesThanTheBoundJoinWarpsAndKeepTheirNumber) {
  std::array<ResidentKernel, 2> kernels = {Warps(24, 0.1), Warps(24, 0.3)};
  BoundStates(kernels, kPlannedStatesMax);
  for (const ResidentKernel& kernel : kernels) {
    EXPECT_EQ(kernel.units, 8);
    EXPECT_DOUBLE_EQ(kernel.units * kernel.warps_per_unit, 24);
  }
  EXPECT_LE(SolveChain(kSm, kernels, kPlannedStatesMax, *workspace_).states, kPlannedStatesMax);
}

TEST_F(MarkovChainTest, AKernelOfFewWarpsKeepsItsStatesBesideALargeOne) {
  std::array<ResidentKernel, 2> kernels = {Warps(60, 0.1), Warps(2, 0.3)};
  BoundStates(kernels, kPlannedStatesMax);
  EXPECT_EQ(kernels[0].units, 26);
  EXPECT_EQ(kernels[1].units, 2);
}

TEST_F(MarkovChainTest, InputsOutOfRangeHaveNoPrediction) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(Solve({Warps(4, nan)}).known);
  EXPECT_FALSE(Solve({Warps(4, 1.5)}).known);
  EXPECT_FALSE(Solve({Warps(-1, 0.5)}).known);
  EXPECT_FALSE(Solve({Warps(4, 0.5, -0.1)}).known);
  EXPECT_FALSE(Solve(std::vector<ResidentKernel>(4, Warps(1, 0.1))).known);
  for (const double wrong : {0.0, -1.0, nan, 1e-320}) {
    VirtualSm sm = kSm;
    sm.requests_per_cycle = wrong;
    EXPECT_FALSE(Solve({Warps(4, 0.1)}, sm).known) << wrong;
  }
  EXPECT_TRUE(Solve({Warps(2'000'000'000, 0.1)}).known) << "joined until they fit";
}

// One warp after the other, by the rules of the paper and none of the code above.
class WarpSimulation {
 public:
  WarpSimulation(std::vector<ResidentKernel> kernels, uint64_t seed)
      : kernels_(std::move(kernels)), random_(seed) {
    for (size_t k = 0; k < kernels_.size(); ++k) {
      for (int32_t i = 0; i < kernels_[k].units; ++i) warps_.push_back({k, 0});
    }
  }

  // IPC of each kernel over `rounds`.
  std::vector<double> Run(int rounds) {
    std::vector<double> issued(kernels_.size());
    double cycles = 0;
    for (int round = 0; round < rounds; ++round) cycles += RunRound(issued);
    for (double& value : issued) value /= cycles;
    return issued;
  }

 private:
  struct Warp {
    size_t kernel;
    double requests;  // 0: ready
  };

  double RunRound(std::vector<double>& issued) {
    double ready = 0;
    double outstanding = 0;
    for (const Warp& warp : warps_) {
      ready += warp.requests == 0 ? 1 : 0;
      outstanding += warp.requests;
      issued[warp.kernel] += warp.requests == 0 ? 1 : 0;
    }
    const double cycles = std::max(1.0, ready);
    for (Warp& warp : warps_) {
      const ResidentKernel& kernel = kernels_[warp.kernel];
      if (warp.requests == 0) {
        if (!Happens(kernel.memory_share)) continue;
        warp.requests = Happens(kernel.uncoalesced_share) ? kernel.uncoalesced_requests : 1;
      } else {
        const double latency = kQuickSm.latency_cycles + outstanding / kQuickSm.requests_per_cycle +
                               (warp.requests - 1) / kQuickSm.requests_per_cycle;
        if (Happens(cycles / latency)) warp.requests = 0;
      }
    }
    return cycles;
  }

  bool Happens(double probability) { return unit_(random_) < probability; }

  std::vector<ResidentKernel> kernels_;
  std::vector<Warp> warps_;
  std::mt19937_64 random_;
  std::uniform_real_distribution<double> unit_{0, 1};
};

void ExpectSimulated(const std::vector<ResidentKernel>& kernels, const ChainIpc& predicted) {
  constexpr int kBatches = 20;
  constexpr int kRounds = 20'000;
  WarpSimulation simulation(kernels, 7);
  simulation.Run(kRounds / 5);  // forgets that all were ready
  std::vector<std::vector<double>> batches;
  for (int i = 0; i < kBatches; ++i) batches.push_back(simulation.Run(kRounds));
  for (size_t k = 0; k < kernels.size(); ++k) {
    double sum = 0;
    double squares = 0;
    for (const std::vector<double>& batch : batches) {
      sum += batch[k];
      squares += batch[k] * batch[k];
    }
    const double mean = sum / kBatches;
    const double error =
        std::sqrt(std::max(0.0, squares / kBatches - mean * mean) / (kBatches - 1));
    EXPECT_LT(error, 0.01 * mean) << "the simulation is too short to tell";
    EXPECT_NEAR(predicted.ipc[k], mean, 4 * error) << "kernel " << k;
  }
}

TEST_F(MarkovChainTest, OneKernelAgreesWithASimulationOfItsWarps) {
  const std::vector<ResidentKernel> kernels = {Warps(8, 0.1)};
  ExpectSimulated(kernels, Solve(kernels, kQuickSm));
}

TEST_F(MarkovChainTest, BothKindsOfAccessAgreeWithASimulation) {
  const std::vector<ResidentKernel> kernels = {Warps(8, 0.1, 0.25)};
  ExpectSimulated(kernels, Solve(kernels, kQuickSm));
}

TEST_F(MarkovChainTest, TwoKernelsAgreeWithASimulationOfTheirWarps) {
  const std::vector<ResidentKernel> kernels = {Warps(6, 0.02), Warps(4, 0.2, 1)};
  ExpectSimulated(kernels, Solve(kernels, kQuickSm));
}

TEST_F(MarkovChainTest, ThreeKernelsAgreeWithASimulationOfTheirWarps) {
  const std::vector<ResidentKernel> kernels = {Warps(3, 0.02), Warps(4, 0.1), Warps(2, 0.3, 0.5)};
  ExpectSimulated(kernels, Solve(kernels, kQuickSm));
}

}  // namespace
}  // namespace gpushare::models::markov
