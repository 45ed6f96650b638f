// SmallWords: a growing list of 64-bit words with the first few inside the object, because
// allocating memory for them would take longer than most uses. A plain value; concurrent reads of
// one object are safe.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

namespace numalign {

class SmallWords {
 public:
  SmallWords() = default;
  explicit SmallWords(size_t size, uint64_t value = 0) : size_(size) {
    if (is_small()) {
      std::fill_n(few_.begin(), size, value);
    } else {
      all_.assign(size, value);
    }
  }
  explicit SmallWords(std::span<const uint64_t> words) : SmallWords(words.size()) {
    std::ranges::copy(words, begin());
  }
  SmallWords(std::initializer_list<uint64_t> words) : SmallWords(std::span(words)) {}
  SmallWords(const SmallWords&) = default;
  SmallWords& operator=(const SmallWords&) = default;
  // A moved-from object is empty.
  SmallWords(SmallWords&& other) noexcept
      : size_(std::exchange(other.size_, 0)), few_(other.few_), all_(std::move(other.all_)) {}
  SmallWords& operator=(SmallWords&& other) noexcept {
    size_ = std::exchange(other.size_, 0);
    few_ = other.few_;
    all_ = std::move(other.all_);
    return *this;
  }
  ~SmallWords() = default;

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  uint64_t* begin() { return is_small() ? few_.data() : all_.data(); }
  uint64_t* end() { return begin() + size_; }
  const uint64_t* begin() const { return is_small() ? few_.data() : all_.data(); }
  const uint64_t* end() const { return begin() + size_; }
  uint64_t& operator[](size_t i) { return begin()[i]; }
  uint64_t operator[](size_t i) const { return begin()[i]; }
  uint64_t back() const { return begin()[size_ - 1]; }

  // New words are zero.
  void resize(size_t size) {
    if (size <= kFew) {
      if (!is_small()) std::copy_n(all_.begin(), size, few_.begin());
      if (size > size_) std::fill(few_.begin() + size_, few_.begin() + size, 0);
    } else {
      if (is_small()) all_.assign(few_.begin(), few_.begin() + size_);
      all_.resize(size);
    }
    size_ = size;
  }

  void push_back(uint64_t word) {
    resize(size_ + 1);
    begin()[size_ - 1] = word;
  }

  friend bool operator==(const SmallWords& a, const SmallWords& b) { return std::ranges::equal(a, b); }

 private:
  static constexpr size_t kFew = 8;  // 512 CPUs, or all masks of 9 NUMA nodes

  bool is_small() const { return size_ <= kFew; }

  size_t size_ = 0;
  std::array<uint64_t, kFew> few_{};
  std::vector<uint64_t> all_;  // if they do not fit inside
};

}  // namespace numalign
