#include "platform/process/random_uuid.h"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <string_view>

#include "platform/syscall.h"

namespace numalign {

Result<std::string> random_uuid() {
  std::array<uint8_t, 16> bytes;
  // So few are never cut short.
  while (getrandom(bytes.data(), bytes.size(), 0) < 0)
    if (errno != EINTR) return syscall_error("getrandom", "cannot make a random number");
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i++) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 0x0f];
  }
  return text;
}

}  // namespace numalign
