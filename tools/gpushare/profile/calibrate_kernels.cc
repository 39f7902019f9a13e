#include "tools/gpushare/profile/calibrate_kernels.h"

#include <algorithm>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/suggest.h"

namespace gpushare::tool {

namespace {

// Names in a message; more are counted.
constexpr size_t kNamesMax = 60;

bool Has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void AddMissing(const std::vector<std::string>& more, std::vector<std::string>& names) {
  for (const std::string& name : more) {
    if (!Has(names, name)) names.push_back(name);
  }
}

std::string ListOf(const std::vector<std::string>& names) {
  std::string list;
  for (size_t i = 0; i < names.size() && i < kNamesMax; ++i) {
    list += (i == 0 ? "" : ", ") + names[i];
  }
  if (names.size() > kNamesMax)
    list += " and " + std::to_string(names.size() - kNamesMax) + " more";
  return list;
}

}  // namespace

std::vector<std::string> ChooseKernels(const KernelChoice& choice) {
  std::vector<std::string> all = choice.profile;
  if (choice.with_catalogue) AddMissing(choice.catalogue, all);
  if (choice.asked.empty()) return all;
  std::vector<std::string> known = all;
  AddMissing(choice.catalogue, known);
  AddMissing(choice.others, known);
  std::vector<std::string> names;
  for (const std::string& name : choice.asked) {
    if (!Has(known, name)) {
      throw InputError("--kernels has '" + name.substr(0, 80) +
                       "', and the kernels that can be calibrated on this device are " +
                       (known.empty() ? "none" : ListOf(known)) + DidYouMean(name, known));
    }
    if (Has(names, name)) {
      throw InputError("--kernels has '" + name + "' twice, and each kernel is measured once.");
    }
    names.push_back(name);
  }
  return names;
}

}  // namespace gpushare::tool
