// Opens CUDA's libraries. See library_opener.h.

#include "src/cuda/driver/library_opener.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace gpushare::cuda {
namespace {

constexpr char kFoldersVariable[] = "GPUSHARE_CUDA_LIBRARY_PATH";

// The folders of NVIDIA's packages and runfiles; sbsa is aarch64.
constexpr absl::string_view kToolkitFolders[] = {
    "/usr/local/cuda/lib64",
    "/usr/local/cuda/lib",
    "/usr/local/cuda/targets/x86_64-linux/lib",
    "/usr/local/cuda/targets/sbsa-linux/lib",
    "/usr/local/cuda/extras/CUPTI/lib64",
};

std::vector<std::string> Candidates(absl::string_view file_name) {
  std::vector<std::string> paths;
  if (const char* const folders = std::getenv(kFoldersVariable); folders != nullptr) {
    for (const absl::string_view folder : absl::StrSplit(folders, ':', absl::SkipEmpty())) {
      paths.push_back(absl::StrCat(folder, "/", file_name));
    }
  }
  paths.emplace_back(file_name);
  for (const absl::string_view folder : kToolkitFolders) {
    paths.push_back(absl::StrCat(folder, "/", file_name));
  }
  return paths;
}

}  // namespace

absl::StatusOr<void*> OpenLibrary(const char* file_name, const char* user) {
  std::string first_problem;
  for (const std::string& path : Candidates(file_name)) {
    // RTLD_GLOBAL, because cuDNN looks for cuBLASLt among the open libraries.
    if (void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL); library != nullptr) {
      return library;
    }
    const char* const text = dlerror();
    if (first_problem.empty() && text != nullptr) first_problem = text;
  }
  return absl::UnavailableError(absl::StrCat("The library ", file_name, " cannot be opened (",
                                             first_problem, "), and ", user, " needs it; set ",
                                             kFoldersVariable, " to the folder that has it."));
}

}  // namespace gpushare::cuda
