// Kernel tables with a column per CPU: /proc/interrupts, /proc/softirqs and /proc/stat, summed up
// for each CPU. Pure functions; any text is accepted without harm.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "core/id_set.h"

namespace numalign {

// The interrupts of a CPU.
struct InterruptCount {
  uint64_t all = 0;
  // From numbered lines, which belong to devices. Other lines are timers, calls between CPUs and so
  // on. On ARM, timers have numbers too.
  uint64_t numbered = 0;
};

// Sums up /proc/interrupts, or /proc/softirqs, which has no numbers. Leaves out CPUs of `cpus`
// without a column. Ignores lines that are not by CPU (ERR, MIS).
std::map<int, InterruptCount> sum_interrupts(std::string_view text, const CpuSet& cpus);

// Clock ticks (USER_HZ).
struct CpuTicks {
  uint64_t busy = 0;  // in user and kernel mode, with interrupts and guests
  uint64_t idle = 0;  // with the time that something waits for a disk
  uint64_t steal = 0;
};

// Sums up /proc/stat. Leaves out CPUs that it does not list, which are offline.
std::map<int, CpuTicks> read_cpu_ticks(std::string_view text, const CpuSet& cpus);

}  // namespace numalign
