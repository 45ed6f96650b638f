#include "core/core_kinds.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <tuple>

namespace numalign {
namespace {

// The types of Intel's hybrid processors; more is faster.
constexpr std::string_view kTypes[] = {"IntelLowPower", "IntelAtom", "IntelCore"};

int parse_positive(std::string_view text) {
  int number = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc() && end == text.data() + text.size() ? std::max(number, 0) : 0;
}

auto key_of(const CoreFacts& facts) { return std::tuple(facts.capacity, facts.type, facts.max_mhz); }

bool is_near(int less, int more) { return less > more - more / 10.0; }

bool is_same_kind(const CoreFacts& a, const CoreFacts& fastest) {
  auto near = [](int x, int y) { return x == y || is_near(std::min(x, y), std::max(x, y)); };
  return a.type == fastest.type && near(a.capacity, fastest.capacity) && near(a.max_mhz, fastest.max_mhz);
}

bool covers_each_once(std::span<const CoreFacts> facts, std::span<const CpuInfo> cpus) {
  return std::ranges::all_of(cpus, [&](const CpuInfo& cpu) {
    return std::ranges::count_if(facts, [&](const CoreFacts& of) { return of.cpus.contains(cpu.cpu); }) == 1;
  });
}

}  // namespace

void CoreFacts::note(std::string_view name, std::string_view value) {
  if (name == "LinuxCapacity") capacity = std::max(capacity, parse_positive(value));
  if (name == "FrequencyMaxMHz") max_mhz = std::max(max_mhz, parse_positive(value));
  if (name != "CoreType") return;
  auto known = std::ranges::find(kTypes, value);
  if (known != std::end(kTypes)) type = static_cast<int>(known - std::begin(kTypes)) + 1;
}

std::vector<CpuInfo> with_kinds(std::vector<CpuInfo> cpus, std::span<const CoreFacts> facts) {
  for (CpuInfo& cpu : cpus) cpu.kind = 0;
  if (facts.size() < 2 || !covers_each_once(facts, cpus)) return cpus;
  std::vector<CoreFacts> fastest_first(facts.begin(), facts.end());
  std::ranges::stable_sort(fastest_first, std::greater(), key_of);
  // The kinds from the fastest, with the fastest of their cores.
  std::vector<const CoreFacts*> kinds;
  std::map<int, int> kind_of_cpu;
  for (const CoreFacts& of : fastest_first) {
    if (kinds.empty() || !is_same_kind(of, *kinds.back())) kinds.push_back(&of);
    of.cpus.for_each([&](int cpu) { kind_of_cpu[cpu] = static_cast<int>(kinds.size()) - 1; });
  }
  // A core is of the kind of its first CPU.
  int slowest = static_cast<int>(kinds.size()) - 1;
  for (CpuInfo& cpu : cpus) cpu.kind = slowest - kind_of_cpu.at(cpu.core);
  return cpus;
}

}  // namespace numalign
