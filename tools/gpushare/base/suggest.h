// "did you mean": the known name that is nearest to a wrong one.
//
// Pure.

#ifndef GPUSHARE_TOOLS_GPUSHARE_BASE_SUGGEST_H_
#define GPUSHARE_TOOLS_GPUSHARE_BASE_SUGGEST_H_

#include <string>
#include <vector>

namespace gpushare::tool {

// The choice with the fewest edits (letters inserted, deleted, replaced, or two neighbours swapped;
// case does not count). Empty when none is near: more edits than a third of the longer name.
std::string Nearest(const std::string& word, const std::vector<std::string>& choices);

// "; did you mean 'colocate'?" for the end of a sentence, else ".".
std::string DidYouMean(const std::string& word, const std::vector<std::string>& choices);

// " The policies are a, b and c." with at most 16 names; empty without any.
std::string ListOf(const std::string& what, const std::vector<std::string>& choices);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_BASE_SUGGEST_H_
