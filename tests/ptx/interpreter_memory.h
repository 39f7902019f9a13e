// Values in the memory that the interpreter runs kernels on: as bytes, by offset, and as addresses.

#ifndef GPUSHARE_TESTS_PTX_INTERPRETER_MEMORY_H_
#define GPUSHARE_TESTS_PTX_INTERPRETER_MEMORY_H_

#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/ptx/interpreter.h"

namespace gpushare::ptx {

template <class T>
std::vector<uint8_t> BytesOf(const T& value) {
  std::vector<uint8_t> bytes(sizeof(T));
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

template <class T>
T At(const std::vector<uint8_t>& memory, uint64_t offset) {
  T value;
  std::memcpy(&value, memory.data() + offset, sizeof(T));
  return value;
}

// The address by which a kernel sees that offset.
template <class T>
T* Device(uint64_t offset) {
  return reinterpret_cast<T*>(kGlobalBase + offset);
}

}  // namespace gpushare::ptx

#endif  // GPUSHARE_TESTS_PTX_INTERPRETER_MEMORY_H_
