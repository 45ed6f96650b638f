// The CRC-32 of zlib, which seals lines of the state. Pure.
#pragma once

#include <cstdint>
#include <string_view>

namespace numalign {

uint32_t crc32(std::string_view bytes);

}  // namespace numalign
