// Files that gzip compressed, as the samples under benchmarks/samples are.
//
// Threads: any.

#ifndef GPUSHARE_TOOLS_GPUSHARE_BASE_GZIP_H_
#define GPUSHARE_TOOLS_GPUSHARE_BASE_GZIP_H_

#include <cstdint>
#include <string>

namespace gpushare::tool {

// A path with the content of a file, decompressed where gzip compressed it: then a temporary file,
// which the program `gzip` fills and the destructor removes.
class Uncompressed {
 public:
  // InputError when gzip refuses the file, or more than `bytes_max` would come out of it. A file
  // that gzip did not compress, or that does not exist, is left to its reader.
  Uncompressed(const std::string& path, int64_t bytes_max);
  ~Uncompressed();
  Uncompressed(const Uncompressed&) = delete;
  Uncompressed& operator=(const Uncompressed&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::string temporary_;  // empty: none
};

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_BASE_GZIP_H_
