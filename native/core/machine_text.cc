#include "core/machine_text.h"

#include <array>
#include <charconv>

#include "core/crc32.h"
#include "core/id_list.h"

namespace numalign {
namespace {

// The number is that of the format: another one is another mark.
constexpr std::string_view kHead = "numalign machine 1 crc32:";
constexpr std::string_view kEndOfMark = "\n\n";
constexpr std::array kColumns = {&CpuInfo::cpu, &CpuInfo::core, &CpuInfo::package, &CpuInfo::die,
                                 &CpuInfo::l3,  &CpuInfo::node, &CpuInfo::kind};
constexpr size_t kSumLength = 8;  // of crc32_digits()

std::string sum_of(std::string_view text) {
  const auto digits = crc32_digits(text);
  return std::string(digits.begin(), digits.end());
}

// Takes `prefix` off; false if the text does not begin with it.
bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// Takes a number and the character behind it off.
bool take(std::string_view& text, int& number, char end) {
  const char* const last = text.data() + text.size();
  auto [at, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc() || at == last || *at != end) return false;
  text.remove_prefix(static_cast<size_t>(at - text.data()) + 1);
  return true;
}

}  // namespace

std::string machine_text(std::string_view mark, const MachineParts& machine) {
  std::string body = std::string(mark) + std::string(kEndOfMark) + format_id_list(machine.nodes) + "\n";
  for (const CpuInfo& cpu : machine.cpus) {
    for (const auto column : kColumns) body += std::to_string(cpu.*column) + " ";
    body.back() = '\n';
  }
  return std::string(kHead) + sum_of(body) + "\n" + body;
}

std::optional<MachineParts> parse_machine_text(std::string_view text, std::string_view mark) {
  if (!take(text, kHead) || text.size() <= kSumLength) return std::nullopt;
  const std::string_view sum = text.substr(0, kSumLength);
  text.remove_prefix(kSumLength);
  if (!take(text, "\n") || sum != sum_of(text) || !take(text, mark) || !take(text, kEndOfMark))
    return std::nullopt;
  const size_t end = text.find('\n');
  if (end == text.npos) return std::nullopt;
  Result<NodeSet> nodes = parse_id_list<NodeTag>(text.substr(0, end));
  if (!nodes.ok()) return std::nullopt;
  text.remove_prefix(end + 1);
  MachineParts machine{{}, std::move(nodes).value()};
  while (!text.empty()) {
    CpuInfo& cpu = machine.cpus.emplace_back();
    for (const auto column : kColumns) {
      if (!take(text, cpu.*column, column == kColumns.back() ? '\n' : ' ')) return std::nullopt;
    }
  }
  return machine;
}

}  // namespace numalign
