#include "tools/gpushare/base/suggest.h"

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace gpushare::tool {

namespace {

// A name of a user is short; longer words are no misspelt names.
constexpr size_t kWordMax = 64;
constexpr size_t kListMax = 16;

bool Same(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

// The optimal string alignment distance, row by row.
size_t Edits(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> edits(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) edits[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) edits[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replace = edits[i - 1][j - 1] + (Same(a[i - 1], b[j - 1]) ? 0 : 1);
      edits[i][j] = std::min({edits[i - 1][j] + 1, edits[i][j - 1] + 1, replace});
      if (i > 1 && j > 1 && Same(a[i - 1], b[j - 2]) && Same(a[i - 2], b[j - 1])) {
        edits[i][j] = std::min(edits[i][j], edits[i - 2][j - 2] + 1);
      }
    }
  }
  return edits[a.size()][b.size()];
}

}  // namespace

std::string Nearest(const std::string& word, const std::vector<std::string>& choices) {
  if (word.empty() || word.size() > kWordMax) return "";
  std::string nearest;
  size_t fewest = 0;
  for (const std::string& choice : choices) {
    if (choice.size() > kWordMax) continue;
    const size_t edits = Edits(word, choice);
    if (3 * edits > std::max(word.size(), choice.size())) continue;
    if (nearest.empty() || edits < fewest) {
      nearest = choice;
      fewest = edits;
    }
  }
  return nearest;
}

std::string DidYouMean(const std::string& word, const std::vector<std::string>& choices) {
  const std::string nearest = Nearest(word, choices);
  return nearest.empty() ? "." : "; did you mean '" + nearest + "'?";
}

std::string ListOf(const std::string& what, const std::vector<std::string>& choices) {
  if (choices.empty()) return "";
  const size_t shown = std::min(choices.size(), kListMax);
  std::string text = " The " + what + " are ";
  for (size_t i = 0; i < shown; ++i) {
    if (i > 0) text += i + 1 == shown && shown == choices.size() ? " and " : ", ";
    text += choices[i];
  }
  if (shown < choices.size()) text += " and " + std::to_string(choices.size() - shown) + " more";
  return text + ".";
}

}  // namespace gpushare::tool
