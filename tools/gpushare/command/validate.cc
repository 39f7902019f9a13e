#include "tools/gpushare/command/validate.h"

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/files.h"
#include "tools/gpushare/base/json_reader.h"
#include "tools/gpushare/base/library.h"
#include "tools/gpushare/base/limits.h"
#include "tools/gpushare/colocate/preflight.h"
#include "tools/gpushare/datacenter/warehouse.h"
#include "tools/gpushare/scenario/scenario.h"

namespace gpushare::tool {

Validated Validate(const std::string& name) {
  std::vector<std::string> places = PlacesOf(name, "scenarios");
  const std::vector<std::string> profiles = PlacesOf(name, "profiles");
  places.insert(places.end(), profiles.begin() + 1, profiles.end());
  const std::string file = FirstExisting(places);
  if (file.empty()) {
    throw NotFound("scenario or profile", name, places);
  }
  const std::string text = ReadFile(file, kScenarioBytesMax);
  const Json document = ParseJson(text, file);
  // Only a profile has the key of a device at its root; a scenario has not.
  if (document.is_object() && document.contains("device") && !document.contains("cases")) {
    Check(gpushare_profile_validate(file.c_str()));
    Validated profile;
    profile.file = file;
    return profile;
  }
  const bool datacenter = document.is_object() && document.contains("datacenter");
  const Scenario scenario =
      datacenter ? ParseWarehouse(text, file).apps : ParseScenario(text, file);
  RequireProfile(scenario);
  DeviceChoice device = {.device = "sim", .profile = scenario.profile, .seed = scenario.seed};
  Preflight(scenario, device, *MakeNoWorkloads(), scenario.policies);
  Validated validated = {
      file, true, scenario.name, scenario.lc.size(), scenario.be.size(), {}, scenario.policies};
  for (const Case& one : scenario.cases) validated.cases.push_back(one.name);
  return validated;
}

namespace {

std::string Count(size_t count, const char* one, const char* several) {
  return std::to_string(count) + " " + (count == 1 ? one : several);
}

}  // namespace

std::string TextOf(const Validated& validated) {
  if (!validated.scenario) return "'" + validated.file + "' is a good profile.\n";
  return "'" + validated.file +
         "' is a good scenario: " + Count(validated.lc_apps, "LC app", "LC apps") + ", " +
         Count(validated.be_apps, "BE app", "BE apps") + ", " +
         Count(validated.cases.size(), "case", "cases") + ", " +
         Count(validated.policies.size(), "policy", "policies") + ".\n";
}

}  // namespace gpushare::tool
