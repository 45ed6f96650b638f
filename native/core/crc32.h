// The CRC-32 of zlib, which seals lines of the state. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace numalign {

// `before`: the checksum of what stands before them.
uint32_t crc32(std::string_view bytes, uint32_t before = 0);

// The checksum as seals have it: eight hexadecimal digits.
std::array<char, 8> crc32_digits(std::string_view bytes);

}  // namespace numalign
