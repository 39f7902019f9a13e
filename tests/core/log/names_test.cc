// The words and phrases of the enumerations: each value has its own, and other numbers have none.

#include "src/core/log/names.h"

#include <cctype>
#include <cstdint>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "src/core/base/types.h"
#include "src/core/log/event_log.h"
#include "src/core/seams/device.h"

namespace gpushare::core {
namespace {

using Namer = const char* (*)(int64_t);

struct Enumeration {
  const char* what;
  Namer name;
  int64_t last;
};

// Metrics and files carry these words, so they hold nothing that either would have to escape.
constexpr Enumeration kWords[] = {
    {"AppClass", AppClassName, static_cast<int64_t>(AppClass::kBestEffort)},
    {"TaskKind", TaskKindName, static_cast<int64_t>(TaskKind::kOpaque)},
    {"Form", FormName, static_cast<int64_t>(Form::kSegments)},
    {"Verdict", VerdictName, static_cast<int64_t>(Verdict::kShutdown)},
    {"Reason", ReasonName, static_cast<int64_t>(Reason::kDependencyFailed)},
    {"EventType", EventTypeName, static_cast<int64_t>(kLastEventType)},
};
constexpr Enumeration kPhrases[] = {
    {"Reason", ReasonPhrase, static_cast<int64_t>(Reason::kDependencyFailed)},
    {"Outcome", OutcomePhrase, static_cast<int64_t>(Outcome::kDeviceLost)},
};

void ExpectDistinctTexts(const Enumeration& enumeration) {
  std::set<std::string> seen = {"", "unknown"};
  for (int64_t number = 0; number <= enumeration.last; ++number) {
    const std::string text = enumeration.name(number);
    // A number between two values that no value has.
    if (text == "unknown") continue;
    EXPECT_TRUE(seen.insert(text).second)
        << enumeration.what << " " << number << " is called '" << text << "'";
  }
  for (const int64_t number : {int64_t{-1}, enumeration.last + 1, int64_t{1} << 32}) {
    EXPECT_STREQ(enumeration.name(number), "unknown") << enumeration.what << " " << number;
  }
}

TEST(NamesTest, EachValueHasAWordOfItsOwn) {
  for (const Enumeration& words : kWords) {
    ExpectDistinctTexts(words);
    for (int64_t number = 0; number <= words.last; ++number) {
      for (const char letter : std::string(words.name(number))) {
        EXPECT_TRUE(std::islower(static_cast<unsigned char>(letter)) != 0 || letter == '_')
            << words.what << ": " << words.name(number);
      }
    }
  }
}

TEST(NamesTest, EachValueHasAPhraseOfItsOwn) {
  for (const Enumeration& phrases : kPhrases) ExpectDistinctTexts(phrases);
}

// Phrases of holds begin with "held: ", those of evictions with "evicted".
TEST(NamesTest, APhraseSaysWhetherTheTaskIsHeldOrEvicted) {
  for (int64_t number = 0; number <= static_cast<int64_t>(Reason::kDependencyFailed); ++number) {
    const std::string word = ReasonName(number);
    const std::string phrase = ReasonPhrase(number);
    EXPECT_EQ(word.starts_with("hold_"), phrase.starts_with("held: ")) << phrase;
    EXPECT_EQ(word.starts_with("evict_"), phrase.starts_with("evicted")) << phrase;
  }
}

}  // namespace
}  // namespace gpushare::core
