// The launches in a folder that tests/python/gpu/record_launches.py filled, as far as their files
// tell without a GPU, and which of them are worth loading. Threads: any.

#ifndef GPUSHARE_BENCHMARKS_GPU_PTX_RECORDED_FOLDER_H_
#define GPUSHARE_BENCHMARKS_GPU_PTX_RECORDED_FOLDER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gpushare::benchmarks {

struct RecordedFile {
  std::string path;  // of the .json
  std::string name;  // its stem
  std::string entry;
  std::string source;
  std::string ptx;  // the file of the text
  int threads = 0;
  int dynamic_shared_bytes = 0;
  int64_t blocks = 0;
  double bytes = 0;  // of all buffers
  bool tensor = false;
  double calls = 0;  // in one run, by the files of orders (*.tsv); 0: none names it
};

// All launches of the folder by name. Fails where a file is not what the recorder writes.
std::vector<RecordedFile> ReadRecordedFolder(const std::string& folder);

// Those with at least `blocks_min` blocks: of the ones that use Tensor cores and of the others the
// `count` with the most bytes each. With `ordered_only` those that an order names.
std::vector<RecordedFile> Shortlist(std::vector<RecordedFile> files, size_t count,
                                    int64_t blocks_min, bool ordered_only);

std::string ReadText(const std::string& path);

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_GPU_PTX_RECORDED_FOLDER_H_
