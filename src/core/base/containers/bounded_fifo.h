// A queue of at most `capacity` elements whose memory is reserved when it is made.
//
// The reserved memory is not touched before it is used, so a large capacity costs address space
// only. Elements leave in batches. Threads: one at a time.

#ifndef GPUSHARE_SRC_CORE_BASE_CONTAINERS_BOUNDED_FIFO_H_
#define GPUSHARE_SRC_CORE_BASE_CONTAINERS_BOUNDED_FIFO_H_

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <vector>

#include "src/core/base/containers/bounded_list.h"

namespace gpushare::core {

template <class T>
class BoundedFifo {
 public:
  explicit BoundedFifo(size_t capacity) { elements_.reserve(capacity); }

  bool empty() const { return size() == 0; }
  size_t size() const { return elements_.size() - first_; }

  // The queue must not be full.
  void Push(const T& element) {
    if (elements_.size() == elements_.capacity()) DropTaken();
    assert(elements_.size() < elements_.capacity() && "a Push to a full queue");
    elements_.push_back(element);
  }

  // Moves the first elements to `out`, at most `count` and as many as it has room for.
  template <int N>
  void Take(size_t count, BoundedList<T, N>& out) {
    out.Clear();
    const size_t taken = std::min({count, size(), static_cast<size_t>(N)});
    for (size_t i = 0; i < taken; ++i) out.Add(elements_[first_ + i]);
    first_ += taken;
    if (empty()) DropTaken();
  }

 private:
  void DropTaken() {
    elements_.erase(elements_.begin(), elements_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }

  std::vector<T> elements_;
  size_t first_ = 0;  // index of the oldest element
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_BASE_CONTAINERS_BOUNDED_FIFO_H_
