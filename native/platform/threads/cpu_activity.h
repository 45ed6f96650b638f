// The activity of CPUs: interrupts, time, frequency. Reads /proc/interrupts, /proc/softirqs,
// /proc/stat and cpufreq in sysfs. What cannot be read is nullopt, never zero. Thread-safety: may
// be called from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/id_set.h"

namespace numalign {

// Nanoseconds, to 10 ms.
struct CpuTimes {
  uint64_t busy_ns;
  uint64_t idle_ns;
  uint64_t steal_ns;
};

struct CpuActivity {
  int cpu = -1;
  std::optional<uint64_t> interrupts;
  std::optional<uint64_t> numbered_interrupts;
  std::optional<uint64_t> softirqs;
  std::optional<CpuTimes> times;
  std::optional<uint64_t> frequency_khz;
};

// The activity of each of these CPUs. `with_interrupts`: on a large machine that table costs the
// most, because the kernel writes out every interrupt line for every CPU. `with_frequency`: some
// kernels (x86 before 5.18) interrupt each CPU to learn it.
std::vector<CpuActivity> cpu_activity(const CpuSet& cpus, bool with_interrupts, bool with_frequency = true);

}  // namespace numalign
