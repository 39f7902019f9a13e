// `gpushare validate FILE`: checks a scenario or a profile and says what is in it.

#ifndef GPUSHARE_TOOLS_GPUSHARE_VALIDATE_H_
#define GPUSHARE_TOOLS_GPUSHARE_VALIDATE_H_

#include <string>

namespace gpushare::tool {

// One line that says what the file is. Throws InputError with one sentence if the file is invalid.
// `name` is a file, or the name of an installed scenario or profile (files.h).
std::string Validate(const std::string& name);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_VALIDATE_H_
