// Tables of the kernel with figures by CPU: /proc/interrupts, /proc/softirqs and /proc/stat, summed up for
// each CPU. Pure functions; any text is accepted without harm.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "core/id_set.h"

namespace numalign {

// How often a CPU was interrupted.
struct InterruptCount {
  uint64_t all = 0;
  // Lines with a number, which are those of devices. (The others are timers, calls from CPU to CPU and so on;
  // on ARM the timers have numbers too.)
  uint64_t numbered = 0;
};

// Of /proc/interrupts, or of /proc/softirqs, which has no numbers. CPUs of `cpus` that have no column are
// left out. Lines that are not by CPU (ERR, MIS) do not count.
std::map<int, InterruptCount> sum_interrupts(std::string_view text, const CpuSet& cpus);

// Clock ticks (USER_HZ).
struct CpuTicks {
  uint64_t busy = 0;  // in user and kernel mode, with interrupts; guests are part of it
  uint64_t idle = 0;  // with the time that something waits for a disk
  uint64_t steal = 0;
};

// Of /proc/stat. CPUs that it does not list (they are offline) are left out.
std::map<int, CpuTicks> read_cpu_ticks(std::string_view text, const CpuSet& cpus);

}  // namespace numalign
