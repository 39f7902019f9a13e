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

std::string ResolveBeside(const std::string& path, const std::string& beside) {
  const fs::path given(path);
  if (given.is_absolute()) return path;
  return (fs::path(beside).parent_path() / given).lexically_normal().string();
}

}  // namespace gpushare::tool
