#include "core/cpu_tables.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <vector>

namespace numalign {
namespace {

std::string_view next_line(std::string_view& text) {
  std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

void skip_blanks(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
}

// Cuts off a number and the blanks before it. The number ends at a blank or at the end of the line.
template <class Number>
std::optional<Number> next_number(std::string_view& text) {
  skip_blanks(text);
  Number number{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  size_t length = static_cast<size_t>(end - text.data());
  if (error != std::errc() || (length < text.size() && text[length] != ' ')) return {};
  text.remove_prefix(length);
  return number;
}

bool cut_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// Reads a line like `CPU0 CPU1 CPU5`: the ids in the order of the columns; empty for any other
// line.
std::vector<int> read_header(std::string_view line) {
  std::vector<int> columns;
  for (skip_blanks(line); !line.empty(); skip_blanks(line)) {
    if (!cut_prefix(line, "CPU")) return {};
    auto id = next_number<int>(line);
    if (!id || *id < 0 || *id > CpuSet::kMaxId) return {};
    columns.push_back(*id);
  }
  return columns;
}

}  // namespace

std::map<int, InterruptCount> sum_interrupts(std::string_view text, const CpuSet& cpus) {
  std::vector<int> columns = read_header(next_line(text));
  std::vector<InterruptCount> sums(columns.size());
  std::vector<uint64_t> row(columns.size());
  while (!text.empty()) {
    std::string_view line = next_line(text);
    skip_blanks(line);
    size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    std::string_view label = line.substr(0, colon);
    line.remove_prefix(colon + 1);
    size_t n = 0;
    while (n < row.size()) {
      auto count = next_number<uint64_t>(line);
      if (!count) break;
      row[n++] = *count;
    }
    if (n < row.size() || row.empty()) continue;
    bool is_numbered = !label.empty() && label.find_first_not_of("0123456789") == std::string_view::npos;
    for (size_t i = 0; i < n; i++) {
      sums[i].all += row[i];
      if (is_numbered) sums[i].numbered += row[i];
    }
  }
  std::map<int, InterruptCount> counts;
  for (size_t i = 0; i < columns.size(); i++) {
    if (cpus.contains(columns[i])) counts[columns[i]] = sums[i];
  }
  return counts;
}

std::map<int, CpuTicks> read_cpu_ticks(std::string_view text, const CpuSet& cpus) {
  // user nice system idle iowait irq softirq steal; guest and guest_nice are in user and nice.
  constexpr size_t kFields = 8;
  std::map<int, CpuTicks> found;
  while (!text.empty()) {
    std::string_view line = next_line(text);
    // The first line is the sum of the others.
    if (!cut_prefix(line, "cpu")) break;
    if (line.starts_with(' ')) continue;
    auto cpu = next_number<int>(line);
    if (!cpu || !cpus.contains(*cpu)) continue;
    std::array<uint64_t, kFields> fields{};
    size_t n = 0;
    while (n < kFields) {
      auto ticks = next_number<uint64_t>(line);
      if (!ticks) break;
      fields[n++] = *ticks;
    }
    if (n < kFields) continue;
    auto [user, nice, system, idle, iowait, irq, softirq, steal] = fields;
    found[*cpu] = {.busy = user + nice + system + irq + softirq, .idle = idle + iowait, .steal = steal};
  }
  return found;
}

}  // namespace numalign
