// The CRC-32 of zlib, which seals lines of the state. Pure.
#pragma once

#include <cstdint>
#include <string_view>

namespace numalign {

// `before`: the checksum of what stands before them.
uint32_t crc32(std::string_view bytes, uint32_t before = 0);

}  // namespace numalign
