// Any text: parsing the files of /proc about tasks and CPUs never crashes, and what is accepted is within its
// bounds.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/cpu_tables.h"
#include "core/task_files.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  if (auto stat = numalign::parse_task_stat(text)) {
    bool is_part = stat->command.data() >= text.data() && stat->command.size() < text.size();
    if (!is_part || stat->processor < 0) std::abort();
  }
  (void)numalign::parse_task_schedstat(text);
  (void)numalign::parse_task_sched(text);
  (void)numalign::parse_task_status(text);
  const numalign::CpuSet cpus{0, 1, 3};
  for (const auto& [cpu, count] : numalign::sum_interrupts(text, cpus)) {
    if (!cpus.contains(cpu)) std::abort();
  }
  for (const auto& [cpu, ticks] : numalign::read_cpu_ticks(text, cpus)) {
    if (!cpus.contains(cpu)) std::abort();
  }
  return 0;
}
