// The engine's tables: vectors whose indices are slots and handles, which are signed.
//
// Indices such as launch slots are int32_t, because -1 means none. A table takes them as they are,
// so that no caller casts. Invariant, checked in debug builds: an index is within the table.
// Threads: as std::vector.

#ifndef GPUSHARE_SRC_SIM_TABLE_H_
#define GPUSHARE_SRC_SIM_TABLE_H_

#include <cassert>
#include <concepts>
#include <cstddef>
#include <vector>

namespace gpushare::sim {

template <class T>
class Table : public std::vector<T> {
 public:
  using std::vector<T>::vector;

  T& operator[](std::integral auto index) { return std::vector<T>::operator[](Checked(index)); }
  const T& operator[](std::integral auto index) const {
    return std::vector<T>::operator[](Checked(index));
  }

 private:
  size_t Checked(std::integral auto index) const {
    const auto at = static_cast<size_t>(index);
    assert(at < this->size());
    return at;
  }
};

}  // namespace gpushare::sim

#endif  // GPUSHARE_SRC_SIM_TABLE_H_
