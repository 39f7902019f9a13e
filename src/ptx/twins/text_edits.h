// Replacements of parts of a text; everything between them stays byte for byte.
//
// Where in the flow: below the transforms.
// Invariant: edits are added in the order of the text and do not overlap.

#ifndef GPUSHARE_SRC_PTX_TWINS_TEXT_EDITS_H_
#define GPUSHARE_SRC_PTX_TWINS_TEXT_EDITS_H_

#include <cassert>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpushare::ptx {

class TextEdits {
 public:
  // Replaces [begin, end); an empty range inserts.
  void Replace(uint32_t begin, uint32_t end, std::string text) {
    edits_.push_back({begin, end, std::move(text)});
  }

  // The edited part [begin, end) of `text`.
  std::string Apply(std::string_view text, uint32_t begin, uint32_t end) const {
    std::string out;
    out.reserve(end - begin + edits_.size() * 16);
    uint32_t at = begin;
    for (const Edit& edit : edits_) {
      assert(edit.begin >= at);
      if (edit.begin < at) continue;
      out.append(text.substr(at, edit.begin - at));
      out.append(edit.text);
      at = edit.end;
    }
    out.append(text.substr(at, end - at));
    return out;
  }

 private:
  struct Edit {
    uint32_t begin;
    uint32_t end;
    std::string text;
  };
  std::vector<Edit> edits_;
};

}  // namespace gpushare::ptx

#endif  // GPUSHARE_SRC_PTX_TWINS_TEXT_EDITS_H_
