// Fingerprint: a checksum of 64 bits that is quick to make. It guards against damage, not against
// forgery, and is of no use outside a machine: its value depends on the order of bytes. Pure.
#pragma once

#include <cstdint>
#include <string_view>

namespace numalign {

// Differs wherever two texts of one length differ in some of one word, and almost surely elsewhere.
uint64_t fingerprint(std::string_view bytes);

}  // namespace numalign
