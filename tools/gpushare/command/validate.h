// `gpushare validate FILE`: checks a scenario or a profile and says what is in it.

#ifndef GPUSHARE_TOOLS_GPUSHARE_COMMAND_VALIDATE_H_
#define GPUSHARE_TOOLS_GPUSHARE_COMMAND_VALIDATE_H_

#include <cstddef>
#include <string>
#include <vector>

namespace gpushare::tool {

// What a valid file holds. The fields of a scenario are empty for a profile.
struct Validated {
  std::string file;
  bool scenario = false;
  std::string name;
  size_t lc_apps = 0;
  size_t be_apps = 0;
  std::vector<std::string> cases;
  std::vector<std::string> policies;
};

// Throws InputError with one sentence if the file is invalid. `name` is a file, or the name of an
// installed scenario or profile (files.h).
Validated Validate(const std::string& name);

// One line that says what the file is.
std::string TextOf(const Validated& validated);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_COMMAND_VALIDATE_H_
