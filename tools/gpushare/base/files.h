// Whole-file reading and writing: bounded reads, writes that leave the old file or the new one.

#ifndef GPUSHARE_TOOLS_GPUSHARE_BASE_FILES_H_
#define GPUSHARE_TOOLS_GPUSHARE_BASE_FILES_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tools/gpushare/base/errors.h"

namespace gpushare::tool {

// InputError when `path` cannot be read, is no regular file, or holds more than `bytes_max`.
std::string ReadFile(const std::string& path, size_t bytes_max);

// Writes to a temporary name in the same folder and renames. On failure the old file stays, and
// RunError names the file and the reason.
void WriteFile(const std::string& path, std::string_view text);

// Writes to stdout and flushes. RunError on failure: a full disk behind stdout must not look like
// success.
void Print(std::string_view text);

// Makes `path` and its parents. RunError on failure.
void MakeFolder(const std::string& path);

// Replaces each ${NAME} by the environment variable NAME. InputError when it is not set or a brace
// is not closed.
std::string ExpandVariables(const std::string& text);

// Files that a user may name and need not have: scenarios and profiles. `cmake --install` puts them
// into share/gpushare/scenarios and share/gpushare/profiles.

// The installed folder share/gpushare, found from the path of the running program. It need not
// exist: a program in its build folder has none.
std::string InstalledShare();

// Where a scenario or profile named `name` may be, in order: `name` itself from the working folder,
// then share/FOLDER/name and share/FOLDER/name.json. An absolute path is only itself.
std::vector<std::string> PlacesOf(const std::string& name, const std::string& folder,
                                  const std::string& share = InstalledShare());

// Where the profile that a scenario names may be, in order: beside the scenario's file, from the
// working folder, and under its file name in share/profiles.
std::vector<std::string> ProfilePlaces(const std::string& profile, const std::string& scenario_file,
                                       const std::string& share = InstalledShare());

// The first of `places` that is a file; the first that exists at all when none is a file; else
// empty.
std::string FirstExisting(const std::vector<std::string>& places);

// The file of a scenario or profile that the user named. InputError, with every place that was
// searched, when it is nowhere.
std::string FindScenario(const std::string& name);
std::string FindProfile(const std::string& name);

// The error for a scenario or profile that is nowhere: the places, and the nearest name in them.
InputError NotFound(const std::string& kind, const std::string& name,
                    const std::vector<std::string>& places);

// "'a', 'b' and 'c'"
std::string QuotedList(const std::vector<std::string>& names);

// `path` if absolute, else `path` beside the file `beside`.
std::string ResolveBeside(const std::string& path, const std::string& beside);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_BASE_FILES_H_
