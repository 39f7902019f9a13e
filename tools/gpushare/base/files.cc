#include "tools/gpushare/base/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/suggest.h"

namespace gpushare::tool {

namespace fs = std::filesystem;

namespace {

// Most files of a folder that are compared with a misspelt name.
constexpr size_t kNamesMax = 4096;

}  // namespace

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

namespace {

// Writes the text to a new file and onto the disk. 0, else the errno.
int WriteAndSync(const std::string& path, std::string_view text) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return errno;
  int error = 0;
  while (error == 0 && !text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno != EINTR) error = errno;
    if (written > 0) text.remove_prefix(static_cast<size_t>(written));
  }
  // A device or FIFO has nothing to sync.
  if (error == 0 && fsync(file) != 0 && errno != EINVAL && errno != EROFS) error = errno;
  // Some file systems report a full disk here.
  if (close(file) != 0 && error == 0) error = errno;
  return error;
}

}  // namespace

void WriteFile(const std::string& path, std::string_view text) {
  // What is no file (/dev/null) is written in place: a rename would replace it.
  std::error_code unknown;
  const bool in_place = fs::is_other(path, unknown);
  const std::string temporary = in_place ? path : path + ".tmp";
  int error = WriteAndSync(temporary, text);
  if (error == 0 && !in_place && std::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return;
  if (!in_place) unlink(temporary.c_str());
  throw RunError("The file '" + path + "' cannot be written: " + std::strerror(error) + ".");
}

void Print(std::string_view text) {
  const size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
  if (written == text.size() && std::fflush(stdout) == 0) return;
  throw RunError(std::string("The standard output cannot be written: ") + std::strerror(errno) +
                 ".");
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

// The names of the JSON files beside a file that does not exist, as a user would write them: with
// the ending if the name has it.
std::vector<std::string> NamesBeside(const std::string& place, bool ending) {
  std::vector<std::string> names;
  fs::path folder = fs::path(place).parent_path();
  if (folder.empty()) folder = ".";
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (names.size() == kNamesMax) break;
    if (entry.path().extension() != ".json") continue;
    names.push_back(ending ? entry.path().filename().string() : entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string FindNamed(const char* kind, const std::string& name,
                      const std::vector<std::string>& places) {
  std::string found = FirstExisting(places);
  if (!found.empty()) return found;
  throw NotFound(kind, name, places);
}

}  // namespace

InputError NotFound(const std::string& kind, const std::string& name,
                    const std::vector<std::string>& places) {
  const std::string word = fs::path(name).filename().string();
  std::string text = "The " + kind + " '" + name + "' does not exist; the places searched are " +
                     QuotedList(places) + ".";
  for (const std::string& place : places) {
    const std::string nearest =
        Nearest(word, NamesBeside(place, fs::path(name).extension() == ".json"));
    if (nearest.empty()) continue;
    text += " The nearest name is '" + nearest + "'.";
    break;
  }
  return InputError(text);
}

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
