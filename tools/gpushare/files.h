// Whole-file reading and writing: bounded reads, writes that leave the old file or the new one.

#ifndef GPUSHARE_TOOLS_GPUSHARE_FILES_H_
#define GPUSHARE_TOOLS_GPUSHARE_FILES_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace gpushare::tool {

// InputError when `path` cannot be read, is no regular file, or holds more than `bytes_max`.
std::string ReadFile(const std::string& path, size_t bytes_max);

// Writes to a temporary name in the same folder and renames. RunError on failure.
void WriteFile(const std::string& path, std::string_view text);

// Makes `path` and its parents. RunError on failure.
void MakeFolder(const std::string& path);

// Replaces each ${NAME} by the environment variable NAME. InputError when it is not set or a brace
// is not closed.
std::string ExpandVariables(const std::string& text);

// `path` if absolute, else `path` beside the file `beside`.
std::string ResolveBeside(const std::string& path, const std::string& beside);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_FILES_H_
