#include "platform/threads/cpu_activity.h"

#include <charconv>
#include <string>

#include "core/cpu_tables.h"
#include "platform/threads/clock_ticks.h"
#include "platform/threads/proc_folder.h"

namespace numalign {
namespace {

template <class T>
const T* find(const std::map<int, T>& by_cpu, int cpu) {
  auto found = by_cpu.find(cpu);
  return found == by_cpu.end() ? nullptr : &found->second;
}

std::optional<uint64_t> read_frequency(ProcFolder& folder, int cpu) {
  auto text = folder.read(("cpu" + std::to_string(cpu) + "/cpufreq/scaling_cur_freq").c_str());
  uint64_t khz = 0;
  if (!text) return {};
  auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), khz);
  // Some drivers write <unknown>.
  if (error != std::errc() || khz == 0) return {};
  return khz;
}

}  // namespace

std::vector<CpuActivity> cpu_activity(const CpuSet& cpus, bool with_interrupts, bool with_frequency) {
  ProcFolder proc("/proc");
  std::map<int, InterruptCount> interrupts;
  std::map<int, InterruptCount> softirqs;
  std::map<int, CpuTicks> ticks;
  if (with_interrupts) {
    if (auto text = proc.read("interrupts")) interrupts = sum_interrupts(*text, cpus);
    if (auto text = proc.read("softirqs")) softirqs = sum_interrupts(*text, cpus);
  }
  if (auto text = proc.read("stat")) ticks = read_cpu_ticks(*text, cpus);

  ProcFolder sysfs("/sys/devices/system/cpu");
  std::vector<CpuActivity> activity;
  cpus.for_each([&](int cpu) {
    CpuActivity one;
    one.cpu = cpu;
    if (const auto* count = find(interrupts, cpu)) {
      one.interrupts = count->all;
      one.numbered_interrupts = count->numbered;
    }
    if (const auto* count = find(softirqs, cpu)) one.softirqs = count->all;
    if (const auto* time = find(ticks, cpu)) {
      one.times = {ticks_to_ns(time->busy), ticks_to_ns(time->idle), ticks_to_ns(time->steal)};
    }
    if (with_frequency) one.frequency_khz = read_frequency(sysfs, cpu);
    activity.push_back(one);
  });
  return activity;
}

}  // namespace numalign
