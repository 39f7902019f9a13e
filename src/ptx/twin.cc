#include "src/ptx/twin.h"

namespace gpushare::ptx {
namespace {

Refusal NotYet() {
  return {Reason::kUnknownOpcode, 0, "This build makes no twins: its parser is not there yet."};
}

}  // namespace

std::vector<std::string> Entries(std::string_view) { return {}; }

Checked Check(std::string_view, std::string_view) { return {{}, NotYet()}; }

Twin Transform(std::string_view text, std::string_view, const Forms& forms, const Options&) {
  Twin twin;
  if (forms.original && !forms.workers && !forms.slice) {
    twin.text = text;
  } else {
    twin.refusal = NotYet();
  }
  return twin;
}

}  // namespace gpushare::ptx
