// `gpushare validate FILE`: says whether a scenario or a profile is good, and what is in it.

#ifndef GPUSHARE_TOOLS_GPUSHARE_VALIDATE_H_
#define GPUSHARE_TOOLS_GPUSHARE_VALIDATE_H_

#include <string>

namespace gpushare::tool {

// One line that says what the file is. Throws InputError with one sentence when it is not good.
// `name` is a file, or the name of an installed scenario or profile (files.h).
std::string Validate(const std::string& name);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_VALIDATE_H_
