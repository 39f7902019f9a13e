// Cubins of a test: an ELF header, the names of the sections, and their headers.

#ifndef GPUSHARE_TESTS_CUDA_CODE_FAKE_CUBIN_H_
#define GPUSHARE_TESTS_CUDA_CODE_FAKE_CUBIN_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace gpushare::cuda {

struct CubinSection {
  std::string name;
  uint64_t bytes = 16;
};

// Overwrites bytes of a file.
template <class T>
void Put(std::string& file, size_t at, T value) {
  std::memcpy(file.data() + at, &value, sizeof(value));
}

// The section of names is the first one.
inline std::string Cubin(std::vector<CubinSection> sections) {
  sections.insert(sections.begin(), {".shstrtab", 0});
  std::string names(1, '\0');
  std::vector<size_t> at;
  for (const CubinSection& section : sections) {
    at.push_back(names.size());
    names += section.name + '\0';
  }
  sections[0].bytes = names.size();
  constexpr size_t kHeaderBytes = 64;
  std::string file(kHeaderBytes, '\0');
  std::memcpy(file.data(), "\177ELF\2\1", 6);
  file += names;
  Put<uint64_t>(file, 0x28, file.size());
  Put<uint16_t>(file, 0x3a, 64);
  Put<uint16_t>(file, 0x3c, static_cast<uint16_t>(sections.size()));
  Put<uint16_t>(file, 0x3e, 0);
  for (size_t i = 0; i < sections.size(); ++i) {
    const size_t begin = file.size();
    file.append(64, '\0');
    Put<uint32_t>(file, begin, static_cast<uint32_t>(at[i]));
    Put<uint64_t>(file, begin + 0x18, kHeaderBytes);
    Put<uint64_t>(file, begin + 0x20, sections[i].bytes);
  }
  return file;
}

}  // namespace gpushare::cuda

#endif  // GPUSHARE_TESTS_CUDA_CODE_FAKE_CUBIN_H_
