#include "core/fingerprint.h"

#include <array>
#include <cstring>

namespace numalign {
namespace {

// Odd: a multiplication by it loses nothing.
constexpr uint64_t kFactor = 0x9E3779B97F4A7C15u;
constexpr size_t kLanes = 4;
constexpr size_t kWord = sizeof(uint64_t);

// Loses nothing, and no change of one bit is undone by that of another in the next word.
constexpr uint64_t add(uint64_t sum, uint64_t word) {
  const uint64_t product = (sum ^ word) * kFactor;
  return product ^ (product >> 29);
}

}  // namespace

uint64_t fingerprint(std::string_view bytes) {
  // A processor multiplies for the next lane before it has done so for the last.
  std::array<uint64_t, kLanes> lanes{1, 2, 3, 4};
  std::array<uint64_t, kLanes> words;
  uint64_t sum = bytes.size();
  for (; bytes.size() >= kLanes * kWord; bytes.remove_prefix(kLanes * kWord)) {
    std::memcpy(words.data(), bytes.data(), kLanes * kWord);
    for (size_t lane = 0; lane < kLanes; lane++) lanes[lane] = add(lanes[lane], words[lane]);
  }
  words = {};
  std::memcpy(words.data(), bytes.data(), bytes.size());
  for (size_t lane = 0; lane < kLanes; lane++) sum = add(add(sum, lanes[lane] * kFactor), words[lane]);
  return sum;
}

}  // namespace numalign
