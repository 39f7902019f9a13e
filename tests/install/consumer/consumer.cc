// Uses the installed C++ header, as C++17, without any of the library's own dependencies.
#include <cstdio>
#include <cstring>
#include <gpushare/gpushare.hpp>

int main() {
  if (std::strlen(gpushare_version_string()) == 0) return 1;
  size_t names_bytes = 0;
  if (gpushare_policy_names(nullptr, 0, &names_bytes) != GPUSHARE_OK || names_bytes == 0) return 1;
  std::printf("consumer in C++: gpushare %s works\n", gpushare_version_string());
  return 0;
}
