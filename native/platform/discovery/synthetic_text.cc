#include "platform/discovery/synthetic_text.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <set>

#include "core/id_set.h"

namespace numalign {
namespace {

// The most CPUs that Linux supports on any machine (NR_CPUS). hwloc inserts the parts of one object
// in quadratic time: 1,024 take a tenth of a second, 8,192 take ten.
constexpr unsigned long long kMaxSyntheticCpus = 8192;
constexpr unsigned long long kMaxSyntheticParts = 1024;

bool is_plain_ascii(char c) { return (c >= ' ' && c <= '~') || c == '\n' || c == '\t'; }

// The text without "(...)" and "[...]": the levels that multiply.
std::string levels_of(std::string_view text) {
  std::string levels;
  char closing = '\0';
  for (char c : text) {
    if (closing == '\0' && (c == '(' || c == '[')) closing = c == '(' ? ')' : ']';
    if (closing == '\0') levels += c;
    if (c == closing) closing = '\0';
  }
  return levels;
}

// The product of the counts, read like hwloc: a bare number, or what follows the next ':', in C's
// notation. Once too large, some number above the limit. Leaves malformed numbers for hwloc to
// refuse.
unsigned long long count_synthetic_cpus(std::string_view text) {
  std::string levels = levels_of(text);
  unsigned long long cpus = 1;
  for (const char* at = levels.c_str(); cpus <= kMaxSyntheticCpus;) {
    at += std::strspn(at, " \n\t");
    bool is_bare = *at >= '0' && *at <= '9';
    const char* number = is_bare ? at : std::strchr(at, ':');
    if (number == nullptr) break;
    if (!is_bare) number++;
    char* end = nullptr;
    unsigned long long count = std::strtoull(number, &end, 0);
    if (count > kMaxSyntheticParts) return kMaxSyntheticCpus + 1;
    if (count > 0) cpus *= count;
    at = end;
  }
  return cpus;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

// True if a level may have this name. hwloc compares only beginnings, and aborts the process at
// kinds that are not levels, like MemCache.
bool is_level_name(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  constexpr const char* kNames[] = {"machine", "package", "socket", "die",      "core",
                                    "pu",      "numa",    "node",   "numanode", "group"};
  if (std::ranges::find(kNames, lower) != std::end(kNames)) return true;
  if (lower.starts_with("group")) return is_number(std::string_view(lower).substr(5));
  bool is_cache = lower.size() >= 2 && lower[0] == 'l' && lower[1] >= '1' && lower[1] <= '5';
  if (!is_cache) return false;
  std::string_view kind = std::string_view(lower).substr(2);
  if (kind.ends_with("cache")) kind.remove_suffix(5);
  return kind.empty() || kind == "u" || kind == "d" || kind == "i";
}

// Levels are "name:count" or a bare count; brackets contain only NUMA nodes.
std::optional<std::string> check_synthetic_levels(std::string_view text) {
  std::string levels = levels_of(text);
  for (size_t at = 0; (at = levels.find_first_not_of(" \n\t", at)) != levels.npos;) {
    std::string_view level(levels.data() + at,
                           std::min(levels.find_first_of(" \n\t", at), levels.size()) - at);
    at += level.size();
    if (is_number(level)) continue;
    size_t colon = std::min(level.find(':'), level.size());
    if (colon == level.size() || !is_number(level.substr(colon + 1)) ||
        !is_level_name(level.substr(0, colon))) {
      return excerpt(level) +
             " is not a level (levels are type:count from the whole to its parts, ending with pu:count)";
    }
  }
  for (size_t at = 0; (at = text.find('[', at)) != text.npos;) {
    at++;
    std::string_view name = text.substr(at, std::min(text.find_first_of("(] ", at), text.size()) - at);
    if (name != "numa" && name != "numanode" && name != "NUMANode") {
      return excerpt(name) + " cannot be attached in brackets; only numa can";
    }
  }
  return std::nullopt;
}

// Checks plain lists like "indexes=0,2,1,3", which hwloc takes as they are: ids beyond the limit
// would become bitmaps of that length, and repeated ids contradict each other.
std::optional<std::string> check_index_list(std::string_view list) {
  std::set<unsigned long> seen;
  const char* at = list.data();
  const char* stop = at + list.size();
  while (at < stop) {
    unsigned long id = 0;
    auto [end, code] = std::from_chars(at, stop, id);
    if (code == std::errc::invalid_argument) return std::nullopt;  // for hwloc to refuse
    if (code != std::errc() || id > CpuSet::kMaxId)
      return "an index is above " + std::to_string(CpuSet::kMaxId);
    if (!seen.insert(id).second) return "index " + std::to_string(id) + " is given twice";
    at = end + 1;
  }
  return std::nullopt;
}

// Checks loops like "indexes=2*2:1*2" (step*count). hwloc checks only their total width;
// overlapping loops repeat ids.
std::optional<std::string> check_index_loops(std::string_view loops) {
  std::map<unsigned long, unsigned long> count_of_step;
  const char* stop = loops.data() + loops.size();
  for (const char* at = loops.data(); at < stop; at++) {
    unsigned long step = 0, count = 0;
    auto [star, step_code] = std::from_chars(at, stop, step);
    if (step_code != std::errc() || star == stop || *star != '*') return std::nullopt;  // for hwloc to refuse
    auto [end, count_code] = std::from_chars(star + 1, stop, count);
    if (count_code != std::errc()) return std::nullopt;
    bool fits = step >= 1 && count >= 1 && step <= CpuSet::kMaxId && count <= CpuSet::kMaxId;
    if (!fits || !count_of_step.emplace(step, count).second) return "the loops of its indexes overlap";
    at = end;
  }
  unsigned long covered = 1;
  for (auto [step, count] : count_of_step) {
    if (step % covered != 0) return "the loops of its indexes overlap";
    covered = step * count;
  }
  return std::nullopt;
}

std::optional<std::string> check_synthetic_indexes(std::string_view text) {
  constexpr std::string_view kKey = "indexes=";
  for (size_t at = text.find(kKey); at != text.npos; at = text.find(kKey, at)) {
    at += kKey.size();
    std::string_view list = text.substr(at, text.find_first_of(" )", at) - at);
    bool is_plain = list.find_first_not_of("0123456789,") == list.npos;
    if (auto what = is_plain ? check_index_list(list) : check_index_loops(list)) return what;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> check_synthetic(const std::string& text) {
  // hwloc 2.9 reads beyond its type names on a byte of 0xE0.
  if (!std::ranges::all_of(text, is_plain_ascii)) return "it holds a character that is not ASCII text";
  if (text.find_first_not_of(" \n\t") == text.npos) return "it is empty";
  if (auto what = check_synthetic_levels(text)) return what;
  if (count_synthetic_cpus(text) > kMaxSyntheticCpus) {
    return "it has more than " + std::to_string(kMaxSyntheticCpus) + " CPUs, or more than " +
           std::to_string(kMaxSyntheticParts) + " parts in one level";
  }
  return check_synthetic_indexes(text);
}

std::string excerpt(std::string_view text) {
  constexpr size_t kMaxLength = 80;
  std::string shown(text.substr(0, kMaxLength));
  for (char& c : shown) {
    if (c < ' ' || c > '~') c = '?';
  }
  return "\"" + shown + (text.size() > kMaxLength ? "...\"" : "\"");
}

}  // namespace numalign
