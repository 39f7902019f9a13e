// The name that was meant: near misspellings are found, far words are not.

#include "tools/gpushare/base/suggest.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gpushare::tool {
namespace {

const std::vector<std::string> kCommands = {"colocate", "explain", "calibrate", "validate"};

TEST(SuggestTest, FindsInsertedDeletedReplacedAndSwappedLetters) {
  for (const char* word : {"coloocate", "coocate", "colocote", "cloocate", "COLOCATE"}) {
    EXPECT_EQ(Nearest(word, kCommands), "colocate") << word;
  }
  EXPECT_EQ(Nearest("calocate", {"colocate", "calibrate"}), "colocate");
}

TEST(SuggestTest, AFarWordHasNoSuggestion) {
  EXPECT_EQ(Nearest("run", kCommands), "");
  EXPECT_EQ(Nearest("", kCommands), "");
  EXPECT_EQ(Nearest(std::string(100'000, 'x'), kCommands), "");
  EXPECT_EQ(Nearest("explain", {}), "");
  EXPECT_EQ(DidYouMean("run", kCommands), ".");
  EXPECT_EQ(DidYouMean("explian", kCommands), "; did you mean 'explain'?");
}

TEST(SuggestTest, AListIsASentenceOfBoundedLength) {
  EXPECT_EQ(ListOf("commands", {"a"}), " The commands are a.");
  EXPECT_EQ(ListOf("commands", {"a", "b", "c"}), " The commands are a, b and c.");
  EXPECT_EQ(ListOf("commands", {}), "");
  const std::string list = ListOf("cases", std::vector<std::string>(20, "x"));
  EXPECT_NE(list.find("x and 4 more."), std::string::npos) << list;
}

}  // namespace
}  // namespace gpushare::tool
