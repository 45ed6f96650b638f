#include "core/numa_maps.h"

#include <algorithm>
#include <charconv>

#include "core/id_set.h"

namespace numalign {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{1} << 53;    // far more than a machine has
constexpr uint64_t kMaxPageKib = uint64_t{1} << 24;  // 16 GiB, the largest page of any kernel

// The whole text as a number. nullopt if it is not a number, or greater than `max`.
std::optional<uint64_t> parse_number(std::string_view text, uint64_t max, int base = 10) {
  uint64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || number > max) return {};
  return number;
}

// Cuts the first word off `line`.
std::string_view next_word(std::string_view& line) {
  size_t first = std::min(line.find_first_not_of(" \n"), line.size());
  line.remove_prefix(first);
  std::string_view word = line.substr(0, line.find_first_of(" \n"));
  line.remove_prefix(word.size());
  return word;
}

// The text behind `key` in a word like `N0=4`.
std::optional<std::string_view> after(std::string_view word, std::string_view key) {
  if (!word.starts_with(key)) return {};
  return word.substr(key.size());
}

}  // namespace

uint64_t NumaMapsLine::resident_bytes() const {
  uint64_t pages = 0;
  for (auto [node, count] : pages_by_node) pages += count;
  return pages * page_bytes;
}

std::optional<NumaMapsLine> parse_numa_maps_line(std::string_view line) {
  NumaMapsLine parsed;
  auto start = parse_number(next_word(line), UINT64_MAX, 16);
  if (!start || next_word(line).empty()) return {};  // the second word is the policy
  parsed.start = *start;
  NodeSet nodes;
  uint64_t pages_in_all = 0;
  for (std::string_view word = next_word(line); !word.empty(); word = next_word(line)) {
    if (auto size = after(word, "kernelpagesize_kB=")) {
      auto kib = parse_number(*size, kMaxPageKib);
      if (!kib || *kib == 0 || parsed.page_bytes != 0) return {};
      parsed.page_bytes = *kib * 1024;
    } else if (auto pages = after(word, "N")) {
      // File names are written with an escaped '=', and other members start with small letters.
      size_t equals = pages->find('=');
      if (equals == std::string_view::npos) continue;
      auto node = parse_number(pages->substr(0, equals), NodeSet::kMaxId);
      auto count = parse_number(pages->substr(equals + 1), kMaxBytes - pages_in_all);
      if (!node || !count || nodes.contains(static_cast<int>(*node))) return {};
      nodes.insert(static_cast<int>(*node));
      pages_in_all += *count;
      parsed.pages_by_node.emplace_back(static_cast<int>(*node), *count);
    }
  }
  if (parsed.page_bytes == 0 ? pages_in_all > 0 : pages_in_all > kMaxBytes / parsed.page_bytes) return {};
  return parsed;
}

std::optional<AddressRange> parse_maps_line(std::string_view line) {
  std::string_view range = next_word(line);
  size_t dash = range.find('-');
  if (dash == std::string_view::npos) return {};
  auto start = parse_number(range.substr(0, dash), UINT64_MAX, 16);
  auto end = parse_number(range.substr(dash + 1), UINT64_MAX, 16);
  if (!start || !end || *start >= *end) return {};
  return AddressRange{*start, *end};
}

}  // namespace numalign
