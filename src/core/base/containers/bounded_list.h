// A list of at most N elements that lives where it stands: an array and its count as one type.
//
// Elements need no destructor. Storage beyond size() is never touched, so that making, copying and
// clearing a list costs what its elements cost. Indices are int, as counts are in the rest of the
// core. An index outside [0, size()) and an Add to a full list are bugs of the caller and assert.
//
// Threads: as a plain array: one writer, or many readers.

#ifndef GPUSHARE_SRC_CORE_BASE_CONTAINERS_BOUNDED_LIST_H_
#define GPUSHARE_SRC_CORE_BASE_CONTAINERS_BOUNDED_LIST_H_

#include <cassert>
#include <cstddef>
#include <new>
#include <type_traits>

#include "absl/types/span.h"

namespace gpushare::core {

template <class T, int N>
class BoundedList {
  static_assert(N > 0, "a list holds something");
  static_assert(std::is_trivially_destructible_v<T>, "elements are dropped without a destructor");

 public:
  static constexpr int kCapacity = N;

  BoundedList() {}  // NOLINT(modernize-use-equals-default): storage stays uninitialised
  BoundedList(const BoundedList& other) { *this = other; }
  BoundedList& operator=(const BoundedList& other) {
    if (this != &other) Assign(other.span());
    return *this;
  }

  int size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool full() const { return size_ == N; }

  T& operator[](int index) { return data()[Checked(index)]; }
  const T& operator[](int index) const { return data()[Checked(index)]; }
  T& back() { return (*this)[size_ - 1]; }
  const T& back() const { return (*this)[size_ - 1]; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  absl::Span<T> span() { return absl::MakeSpan(data(), static_cast<size_t>(size_)); }
  absl::Span<const T> span() const {
    return absl::MakeConstSpan(data(), static_cast<size_t>(size_));
  }

  // The list must not be full.
  T& Add() {
    assert(!full() && "an Add to a full list");
    return *new (data() + size_++) T;  // default-initialised: T() would zero unused storage first
  }
  T& Add(const T& value) {
    assert(!full() && "an Add to a full list");
    return *new (data() + size_++) T(value);
  }
  // False, and no change, when the list is full.
  bool TryAdd(const T& value) {
    if (full()) return false;
    Add(value);
    return true;
  }
  T PopBack() {
    const T last = back();
    --size_;
    return last;
  }
  // The last element takes the place of the removed one.
  void RemoveAt(int index) {
    (*this)[index] = back();
    --size_;
  }
  // Copies `values`; of a longer span, the first N.
  void Assign(absl::Span<const T> values) {
    Clear();
    for (const T& value : values) {
      if (!TryAdd(value)) return;
    }
  }
  void Clear() { size_ = 0; }

 private:
  size_t Checked(int index) const {
    assert(index >= 0 && index < size_ && "an index outside the list");
    return static_cast<size_t>(index);
  }
  T* data() { return storage_; }
  const T* data() const { return storage_; }

  int size_ = 0;
  union {  // holds no element until Add makes one
    T storage_[N];
  };
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_BASE_CONTAINERS_BOUNDED_LIST_H_
