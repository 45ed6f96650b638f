// Clock ticks (USER_HZ), the unit of some times in /proc.
#pragma once

#include <unistd.h>

#include <cstdint>

namespace numalign {

inline uint64_t ticks_to_ns(uint64_t ticks) {
  static const uint64_t ns_per_tick = 1'000'000'000 / static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  return ticks * ns_per_tick;
}

}  // namespace numalign
