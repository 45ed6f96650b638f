// IdSet<Tag>: a set of small non-negative ids, stored as a bitmap that grows with its greatest
// member. CpuSet and NodeSet are distinct types over it, so that CPUs and NUMA nodes cannot be
// mixed up. NodeMask: at most 64 NUMA nodes in one word, for the merge of topology hints. Plain
// values: copyable, no shared state; concurrent reads of one object are safe.
#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "core/small_words.h"

namespace numalign {

// The number of set bits. std::popcount would call a function, because compilers may not assume the
// instruction on x86-64.
constexpr int count_ones(uint64_t bits) {
#ifdef __POPCNT__
  return std::popcount(bits);
#else
  bits -= bits >> 1 & 0x5555555555555555;
  bits = (bits & 0x3333333333333333) + (bits >> 2 & 0x3333333333333333);
  bits = (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0f;
  return static_cast<int>(bits * 0x0101010101010101 >> 56);
#endif
}

template <class Tag>
class IdSet {
 public:
  using Word = uint64_t;
  static constexpr int kWordBits = 64;
  static constexpr int kMaxId = Tag::kMaxId;

  IdSet() = default;
  IdSet(std::initializer_list<int> ids) {
    for (int id : ids) insert(id);
  }
  static IdSet from_words(std::span<const Word> words) { return from_words(SmallWords(words)); }
  static IdSet from_words(SmallWords words) {
    IdSet set;
    set.words_ = std::move(words);
    set.trim();
    return set;
  }

  // Word i holds ids 64*i to 64*i+63, lowest id in the lowest bit; the last word is never zero.
  std::span<const Word> words() const { return words_; }

  bool empty() const { return words_.empty(); }
  int size() const {
    int n = 0;
    for (Word w : words_) n += count_ones(w);
    return n;
  }
  bool contains(int id) const {
    size_t i = word_of(id);
    return id >= 0 && i < words_.size() && (words_[i] >> (id % kWordBits) & 1) != 0;
  }
  // REQUIRES: 0 <= id <= kMaxId.
  void insert(int id) {
    assert(id >= 0 && id <= kMaxId);
    size_t i = word_of(id);
    if (i >= words_.size()) words_.resize(i + 1);
    words_[i] |= Word{1} << (id % kWordBits);
  }
  // REQUIRES: 0 <= first <= last <= kMaxId.
  void insert_range(int first, int last) {
    assert(first >= 0 && first <= last && last <= kMaxId);
    if (word_of(last) >= words_.size()) words_.resize(word_of(last) + 1);
    for (size_t i = word_of(first); i <= word_of(last); i++) {
      Word mask = ~Word{0};
      if (i == word_of(first)) mask &= ~Word{0} << (first % kWordBits);
      if (i == word_of(last)) mask &= ~Word{0} >> (kWordBits - 1 - last % kWordBits);
      words_[i] |= mask;
    }
  }
  void erase(int id) {
    if (!contains(id)) return;
    words_[word_of(id)] &= ~(Word{1} << (id % kWordBits));
    trim();
  }

  // The lowest member that is at least `from`, or -1.
  int next(int from) const {
    from = std::max(from, 0);
    for (size_t i = word_of(from); i < words_.size(); i++) {
      Word w = words_[i];
      if (i == word_of(from)) w &= ~Word{0} << (from % kWordBits);
      if (w != 0) return static_cast<int>(i) * kWordBits + std::countr_zero(w);
    }
    return -1;
  }
  int first() const { return next(0); }
  int last() const {
    return words_.empty() ? -1
                          : static_cast<int>(words_.size()) * kWordBits - 1 - std::countl_zero(words_.back());
  }
  template <class F>
  void for_each(F&& visit) const {
    for (size_t i = 0; i < words_.size(); i++) {
      for (Word w = words_[i]; w != 0; w &= w - 1) {
        visit(static_cast<int>(i) * kWordBits + std::countr_zero(w));
      }
    }
  }

  IdSet& operator|=(const IdSet& other) {
    if (other.words_.size() > words_.size()) words_.resize(other.words_.size());
    for (size_t i = 0; i < other.words_.size(); i++) words_[i] |= other.words_[i];
    return *this;
  }
  IdSet& operator&=(const IdSet& other) {
    if (words_.size() > other.words_.size()) words_.resize(other.words_.size());
    for (size_t i = 0; i < words_.size(); i++) words_[i] &= other.words_[i];
    trim();
    return *this;
  }
  IdSet& operator-=(const IdSet& other) {
    size_t n = std::min(words_.size(), other.words_.size());
    for (size_t i = 0; i < n; i++) words_[i] &= ~other.words_[i];
    trim();
    return *this;
  }
  friend IdSet operator|(IdSet a, const IdSet& b) { return a |= b; }
  friend IdSet operator&(IdSet a, const IdSet& b) { return a &= b; }
  friend IdSet operator-(IdSet a, const IdSet& b) { return a -= b; }
  friend bool operator==(const IdSet&, const IdSet&) = default;

  bool is_subset_of(const IdSet& other) const { return (*this - other).empty(); }
  bool intersects(const IdSet& other) const { return !(*this & other).empty(); }

 private:
  static size_t word_of(int id) { return static_cast<size_t>(id) / kWordBits; }
  void trim() {
    size_t size = words_.size();
    while (size > 0 && words_[size - 1] == 0) size--;
    if (size < words_.size()) words_.resize(size);
  }

  SmallWords words_;
};

struct CpuTag {
  static constexpr int kMaxId = 65535;  // Linux itself stops at 8,191 (NR_CPUS on x86)
};
struct NodeTag {
  static constexpr int kMaxId = 1023;  // Linux: MAX_NUMNODES is at most 1,024
};
using CpuSet = IdSet<CpuTag>;
using NodeSet = IdSet<NodeTag>;

// A set of NUMA node positions or ids below 64, ordered as hints are: fewer nodes first, then lower
// bits.
class NodeMask {
 public:
  static constexpr int kBits = 64;

  constexpr NodeMask() = default;
  constexpr explicit NodeMask(uint64_t bits) : bits_(bits) {}

  constexpr uint64_t bits() const { return bits_; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr int size() const { return count_ones(bits_); }
  constexpr bool contains(int node) const { return node >= 0 && node < kBits && (bits_ >> node & 1) != 0; }
  constexpr bool is_narrower_than(NodeMask other) const {
    return size() != other.size() ? size() < other.size() : bits_ < other.bits_;
  }
  friend constexpr NodeMask operator&(NodeMask a, NodeMask b) { return NodeMask(a.bits_ & b.bits_); }
  friend constexpr NodeMask operator|(NodeMask a, NodeMask b) { return NodeMask(a.bits_ | b.bits_); }
  friend constexpr bool operator==(NodeMask, NodeMask) = default;

 private:
  uint64_t bits_ = 0;
};

}  // namespace numalign
