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
  std::vector<std::string> symbols = {};  // that lie in it; one of its name stands for itself
};

// Overwrites bytes of a file.
template <class T>
void Put(std::string& file, size_t at, T value) {
  std::memcpy(file.data() + at, &value, sizeof(value));
}

// The first section is that of names, of sections and symbols; the second is the symbols' table.
inline std::string Cubin(std::vector<CubinSection> sections) {
  sections.insert(sections.begin(), {{".shstrtab", 0}, {".symtab", 0}});
  std::string names(1, '\0');
  std::string symbols;
  std::vector<size_t> at;
  for (size_t i = 0; i < sections.size(); ++i) {
    at.push_back(names.size());
    names += sections[i].name + '\0';
    for (const std::string& symbol : sections[i].symbols) {
      const size_t begin = symbols.size();
      symbols.append(24, '\0');
      Put<uint32_t>(symbols, begin, static_cast<uint32_t>(names.size()));
      Put<uint8_t>(symbols, begin + 4, symbol == sections[i].name ? 3 : 1);
      Put<uint16_t>(symbols, begin + 6, static_cast<uint16_t>(i));
      names += symbol + '\0';
    }
  }
  constexpr size_t kHeaderBytes = 64;
  std::string file(kHeaderBytes, '\0');
  std::memcpy(file.data(), "\177ELF\2\1", 6);
  file += names + symbols;
  sections[0].bytes = names.size();
  sections[1].bytes = symbols.size();
  Put<uint64_t>(file, 0x28, file.size());
  Put<uint16_t>(file, 0x3a, 64);
  Put<uint16_t>(file, 0x3c, static_cast<uint16_t>(sections.size()));
  Put<uint16_t>(file, 0x3e, 0);
  for (size_t i = 0; i < sections.size(); ++i) {
    const size_t begin = file.size();
    file.append(64, '\0');
    Put<uint32_t>(file, begin, static_cast<uint32_t>(at[i]));
    Put<uint32_t>(file, begin + 4, i == 1 ? 2 : 1);
    Put<uint64_t>(file, begin + 0x18, i == 1 ? kHeaderBytes + names.size() : kHeaderBytes);
    Put<uint64_t>(file, begin + 0x20, sections[i].bytes);
  }
  return file;
}

}  // namespace gpushare::cuda

#endif  // GPUSHARE_TESTS_CUDA_CODE_FAKE_CUBIN_H_
