// `gpushare validate FILE`: says whether a scenario or a profile is good, and what is in it.

#ifndef GPUSHARE_TOOLS_GPUSHARE_VALIDATE_H_
#define GPUSHARE_TOOLS_GPUSHARE_VALIDATE_H_

#include <string>

namespace gpushare::tool {

// One line that says what the file is. Throws InputError with one sentence when it is not good.
std::string Validate(const std::string& file);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_VALIDATE_H_
