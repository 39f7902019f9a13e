// The first signal sets the flag, the second ends the process, and an ignored one stays ignored.

#include "tools/gpushare/base/interrupt.h"

#include <gtest/gtest.h>

#include <csignal>

namespace gpushare::tool {
namespace {

TEST(InterruptTest, TheFirstSignalSetsTheFlagAndTheNextGuardClearsIt) {
  {
    const InterruptGuard guard;
    EXPECT_NO_THROW(ThrowIfInterrupted());
    std::raise(SIGTERM);
    EXPECT_EQ(InterruptSignal(), SIGTERM);
    EXPECT_EQ(*InterruptFlag(), SIGTERM);
    try {
      ThrowIfInterrupted();
      FAIL() << "the interrupt is lost";
    } catch (const Interrupted& error) {
      EXPECT_EQ(error.signal(), SIGTERM);
      EXPECT_STREQ(error.what(), "The command was interrupted by SIGTERM.");
    }
  }
  const InterruptGuard guard;
  EXPECT_EQ(InterruptSignal(), 0);
}

TEST(InterruptDeathTest, TheSecondSignalEndsTheProcess) {
  const auto raise_twice = [] {
    std::signal(SIGINT, SIG_DFL);  // a parent may ignore it
    const InterruptGuard guard;
    std::raise(SIGINT);
    std::raise(SIGINT);
  };
  EXPECT_EXIT(raise_twice(), ::testing::KilledBySignal(SIGINT), "");
}

TEST(InterruptTest, ASignalThatTheParentIgnoresStaysIgnored) {
  const auto before = std::signal(SIGINT, SIG_IGN);
  {
    const InterruptGuard guard;
    std::raise(SIGINT);
    EXPECT_EQ(InterruptSignal(), 0);
  }
  EXPECT_EQ(std::signal(SIGINT, before), SIG_IGN);
}

}  // namespace
}  // namespace gpushare::tool
