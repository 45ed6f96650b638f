// Sets as 32-bit words, their form in JavaScript: lowest ids first, no zero at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "core/id_set.h"

namespace numalign {

// nullopt: the words have room for ids above the maximum.
template <class Tag>
std::optional<IdSet<Tag>> set_of_words(std::span<const uint32_t> words32) {
  constexpr size_t kMost = IdSet<Tag>::kMaxId / 32 + 1;
  if (words32.size() > kMost) return std::nullopt;
  SmallWords words((words32.size() + 1) / 2);
  for (size_t i = 0; i < words32.size(); i++)
    words[i / 2] |= static_cast<uint64_t>(words32[i]) << (i % 2 * 32);
  return IdSet<Tag>::from_words(std::move(words));
}

template <class Tag>
size_t word_count(const IdSet<Tag>& set) {
  std::span<const uint64_t> words = set.words();
  return words.size() * 2 - (!words.empty() && words.back() >> 32 == 0 ? 1 : 0);
}

// REQUIRES: room for word_count(set) words.
template <class Tag>
void copy_words(const IdSet<Tag>& set, uint32_t* to) {
  const size_t n = word_count(set);
  for (size_t i = 0; i < n; i++) to[i] = static_cast<uint32_t>(set.words()[i / 2] >> (i % 2 * 32));
}

}  // namespace numalign
