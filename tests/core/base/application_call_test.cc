#include "src/core/base/application_call.h"

#include <pthread.h>

#include <new>
#include <stdexcept>
#include <string>

#include "gtest/gtest.h"

namespace gpushare::core {
namespace {

TEST(ApplicationCallTest, AnExceptionIsNamedByItsTypeAndMessageOnOneLine) {
  EXPECT_EQ(ThrownBy([] {}), "");
  EXPECT_EQ(ThrownBy([] { throw std::runtime_error("boom"); }), "std::runtime_error: boom");
  EXPECT_EQ(ThrownBy([] { throw std::out_of_range("two\nlines. "); }),
            "std::out_of_range: two lines");
  EXPECT_EQ(ThrownBy([] { throw std::bad_alloc(); }), "std::bad_alloc: std::bad_alloc");
  EXPECT_EQ(ThrownBy([] { throw 7; }), "a value of type int");
  EXPECT_LT(ThrownBy([] { throw std::runtime_error(std::string(100000, 'x')); }).size(), 500U);
}

TEST(ApplicationCallTest, TheThreadIsInsideACallbackDuringTheCallOnly) {
  int inside = 0;
  ThrownBy([&] { inside = callback_depth; });
  EXPECT_EQ(inside, 1);
  EXPECT_EQ(callback_depth, 0);
  ThrownBy([] { throw 1; });
  EXPECT_EQ(callback_depth, 0);
}

// glibc aborts the process when a handler swallows the unwind of pthread_exit.
TEST(ApplicationCallTest, TheUnwindOfAThreadThatEndsPasses) {
  struct Seen {
    bool returned = false;
    int depth_after = -1;
  } seen;
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, nullptr,
                [](void* user) -> void* {
                  struct AtEnd {
                    Seen& seen;
                    ~AtEnd() { seen.depth_after = callback_depth; }
                  } at_end{*static_cast<Seen*>(user)};
                  ThrownBy([] { pthread_exit(nullptr); });
                  at_end.seen.returned = true;
                  return nullptr;
                },
                &seen),
            0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  EXPECT_FALSE(seen.returned);
  EXPECT_EQ(seen.depth_after, 0);
}

}  // namespace
}  // namespace gpushare::core
