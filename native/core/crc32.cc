#include "core/crc32.h"

#include <array>

namespace numalign {
namespace {

constexpr size_t kAtOnce = 8;
using Tables = std::array<std::array<uint32_t, 256>, kAtOnce>;

// tables[n][b]: what the byte b does to the checksum n bytes later.
constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; byte++) {
    uint32_t sum = byte;
    for (int bit = 0; bit < 8; bit++) sum = (sum >> 1) ^ (sum & 1 ? 0xEDB88320u : 0);
    tables[0][byte] = sum;
  }
  for (size_t n = 1; n < kAtOnce; n++)
    for (size_t byte = 0; byte < 256; byte++) {
      const uint32_t before = tables[n - 1][byte];
      tables[n][byte] = (before >> 8) ^ tables[0][before & 0xFF];
    }
  return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

uint32_t crc32(std::string_view bytes, uint32_t before) {
  uint32_t sum = ~before;
  auto byte_at = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  for (; bytes.size() >= kAtOnce; bytes.remove_prefix(kAtOnce)) {
    uint32_t next = 0;
    for (size_t i = 0; i < kAtOnce; i++) {
      const uint32_t of_sum = i < 4 ? (sum >> (8 * i)) & 0xFF : 0;
      next ^= kTables[kAtOnce - 1 - i][byte_at(i) ^ of_sum];
    }
    sum = next;
  }
  for (size_t i = 0; i < bytes.size(); i++) sum = (sum >> 8) ^ kTables[0][(sum ^ byte_at(i)) & 0xFF];
  return ~sum;
}

std::array<char, 8> crc32_digits(std::string_view bytes) {
  std::array<char, 8> digits;
  uint32_t sum = crc32(bytes);
  for (auto digit = digits.rbegin(); digit != digits.rend(); digit++, sum >>= 4)
    *digit = "0123456789abcdef"[sum & 15];
  return digits;
}

}  // namespace numalign
