#include "tools/gpushare/files.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "tools/gpushare/errors.h"

namespace gpushare::tool {

namespace fs = std::filesystem;

std::string ReadFile(const std::string& path, size_t bytes_max) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (error || !fs::exists(status)) throw InputError("The file '" + path + "' does not exist.");
  if (!fs::is_regular_file(status)) throw InputError("'" + path + "' is not a regular file.");
  const auto size = fs::file_size(path, error);
  if (error) throw InputError("The size of the file '" + path + "' cannot be read.");
  if (size > bytes_max) {
    throw InputError("The file '" + path + "' has " + std::to_string(size) +
                     " bytes, and the limit is " + std::to_string(bytes_max) + ".");
  }
  std::ifstream in(path, std::ios::binary);
  std::string text(static_cast<size_t>(size), '\0');
  if (!in || !in.read(text.data(), static_cast<std::streamsize>(size))) {
    throw InputError("The file '" + path + "' cannot be read.");
  }
  return text;
}

void WriteFile(const std::string& path, std::string_view text) {
  const std::string temporary = path + ".tmp";
  {
    std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
    out.flush();
    if (!out) throw RunError("The file '" + temporary + "' cannot be written.");
  }
  std::error_code error;
  fs::rename(temporary, path, error);
  if (error) throw RunError("The file '" + path + "' cannot be replaced: " + error.message() + ".");
}

void MakeFolder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw RunError("The folder '" + path + "' cannot be made: " + error.message() + ".");
}

std::string ExpandVariables(const std::string& text) {
  std::string out;
  size_t at = 0;
  while (true) {
    const size_t open = text.find("${", at);
    if (open == std::string::npos) return out + text.substr(at);
    const size_t close = text.find('}', open);
    if (close == std::string::npos) {
      throw InputError("The path '" + text + "' opens a '${' that it does not close.");
    }
    const std::string name = text.substr(open + 2, close - open - 2);
    const char* value = name.empty() ? nullptr : std::getenv(name.c_str());
    if (value == nullptr) {
      throw InputError("The path '" + text + "' needs the environment variable '" + name +
                       "', and it is not set.");
    }
    out.append(text, at, open - at).append(value);
    at = close + 1;
  }
}

std::string InstalledShare() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return "";
  return (program.parent_path() / GPUSHARE_SHARE_FROM_PROGRAM).lexically_normal().string();
}

std::vector<std::string> PlacesOf(const std::string& name, const std::string& folder,
                                  const std::string& share) {
  std::vector<std::string> places = {name};
  if (share.empty() || fs::path(name).is_absolute()) return places;
  const fs::path installed = fs::path(share) / folder / name;
  places.push_back(installed.lexically_normal().string());
  places.push_back(places.back() + ".json");
  return places;
}

std::vector<std::string> ProfilePlaces(const std::string& profile, const std::string& scenario_file,
                                       const std::string& share) {
  const fs::path given(profile);
  if (given.is_absolute()) return {profile};
  std::vector<std::string> places = {ResolveBeside(profile, scenario_file), profile};
  if (places[0] == places[1]) places.pop_back();
  if (!share.empty()) {
    places.push_back((fs::path(share) / "profiles" / given.filename()).string());
  }
  return places;
}

std::string FirstExisting(const std::vector<std::string>& places) {
  std::error_code error;
  for (const std::string& place : places) {
    if (fs::is_regular_file(place, error)) return place;
  }
  for (const std::string& place : places) {
    if (fs::exists(place, error)) return place;
  }
  return "";
}

std::string QuotedList(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    text += i == 0 ? "" : i + 1 == names.size() ? " and " : ", ";
    text += "'" + names[i] + "'";
  }
  return text;
}

namespace {

std::string FindNamed(const char* kind, const std::string& name,
                      const std::vector<std::string>& places) {
  std::string found = FirstExisting(places);
  if (!found.empty()) return found;
  throw InputError(std::string("The ") + kind + " '" + name +
                   "' does not exist; the places searched are " + QuotedList(places) + ".");
}

}  // namespace

std::string FindScenario(const std::string& name) {
  return FindNamed("scenario", name, PlacesOf(name, "scenarios"));
}

std::string FindProfile(const std::string& name) {
  return FindNamed("profile", name, PlacesOf(name, "profiles"));
}

std::string ResolveBeside(const std::string& path, const std::string& beside) {
  const fs::path given(path);
  if (given.is_absolute()) return path;
  return (fs::path(beside).parent_path() / given).lexically_normal().string();
}

}  // namespace gpushare::tool
