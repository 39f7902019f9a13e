// An array of fixed size whose memory comes as it is touched, a page at a time.
//
// For tables that are sized for the worst case and mostly stay empty. The system maps zeroed pages
// when they are first touched; nothing runs at construction. So an element is valid when all its
// bytes are zero, and has no destructor. A first touch costs a page fault (about 0.5 us) and no
// allocation. Huge pages are refused: one touch would bring, and zero, two megabytes.
//
// Invariants: the elements never move. Threads: as for a plain array.

#ifndef GPUSHARE_SRC_CORE_BASE_CONTAINERS_PAGED_ARRAY_H_
#define GPUSHARE_SRC_CORE_BASE_CONTAINERS_PAGED_ARRAY_H_

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace gpushare::core {

template <class T>
class PagedArray {
  static_assert(std::is_trivially_destructible_v<T>);

 public:
  PagedArray() = default;
  // Throws std::bad_alloc.
  explicit PagedArray(size_t size) : size_(size) {
    if (size == 0) return;
    if (size > ~size_t{0} / sizeof(T)) throw std::bad_alloc();
    void* const memory = ::mmap(nullptr, Bytes(), PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    ::madvise(memory, Bytes(), MADV_NOHUGEPAGE);  // without it the array works too
    elements_ = static_cast<T*>(memory);
  }
  ~PagedArray() {
    if (elements_ != nullptr) ::munmap(elements_, Bytes());
  }
  PagedArray(PagedArray&& other) noexcept
      : elements_(std::exchange(other.elements_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  PagedArray& operator=(PagedArray&& other) noexcept {
    std::swap(elements_, other.elements_);
    std::swap(size_, other.size_);
    return *this;
  }

  // Like a pointer, the array does not pass its constness on.
  T& operator[](size_t index) const { return elements_[index]; }
  T* data() const { return elements_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  size_t Bytes() const { return size_ * sizeof(T); }

  T* elements_ = nullptr;
  size_t size_ = 0;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_BASE_CONTAINERS_PAGED_ARRAY_H_
