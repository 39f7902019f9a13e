// The gate of the LC fast path on real threads, for the thread sanitizer; lc_gate_test takes every
// interleaving in turn.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "src/core/state/shared/lc_gate.h"

namespace gpushare::core {
namespace {

constexpr uint64_t Bit(LaneIndex lane) { return uint64_t{1} << lane; }

// Two callers against one launcher. While a caller is inside, whatever BE launch is alive must have
// an epoch at or below the word that this caller raised.
TEST(LcGateThreads, LoseNoEviction) {
  constexpr int kRounds = 10000;
  LcGate gate;
  gate.WidenLanes(Bit(0));
  std::atomic<uint64_t> alive{0};  // epoch of the live BE launch, 0: none
  std::atomic<bool> stop{false};
  std::atomic<int64_t> lost{0};
  std::atomic<int64_t> launched{0};

  const auto caller = [&] {
    for (int i = 0; i < kRounds; ++i) {
      gate.EnterLc();
      const uint64_t word = gate.RaiseEpoch(0);
      for (int look = 0; look < 4; ++look) {
        const uint64_t epoch = alive.load(std::memory_order_acquire);
        if (epoch != 0 && static_cast<int64_t>(word - epoch) < 0) lost.fetch_add(1);
      }
      gate.LeaveLc();
      // Leave the launcher a gap now and then.
      if (i % 16 == 0) std::this_thread::yield();
    }
  };
  const auto launcher = [&] {
    while (!stop.load(std::memory_order_relaxed)) {
      const uint64_t epoch = gate.ReadLaunchEpoch(0);
      if (!gate.IsOpen(0)) {
        std::this_thread::yield();
        continue;
      }
      alive.store(epoch, std::memory_order_release);
      launched.fetch_add(1, std::memory_order_relaxed);
      // It lives until it is evicted or done.
      for (int work = 0; work < 50; ++work) {
        if (static_cast<int64_t>(gate.Epoch(0) - epoch) >= 0) break;
      }
      alive.store(0, std::memory_order_release);
    }
  };
  std::thread be(launcher);
  std::thread first(caller);
  std::thread second(caller);
  first.join();
  second.join();
  // With nobody inside, BE runs.
  const int64_t before = launched.load();
  while (launched.load() == before) std::this_thread::yield();
  stop.store(true);
  be.join();
  EXPECT_EQ(lost.load(), 0);
  EXPECT_EQ(gate.InFlight(), 0);
  EXPECT_EQ(gate.Epoch(0), uint64_t{2 * kRounds});
}

}  // namespace
}  // namespace gpushare::core
