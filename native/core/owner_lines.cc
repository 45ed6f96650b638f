#include "core/owner_lines.h"

#include <charconv>
#include <optional>

#include "core/json_scan.h"

namespace numalign {
namespace {

constexpr size_t kMostDigits = 15;

// Takes the last line; empty without one.
std::string_view take_line(std::string_view& file) {
  if (file.empty() || file.back() != '\n') return {};
  file.remove_suffix(1);
  const size_t begin = file.rfind('\n') + 1;
  const std::string_view line = file.substr(begin);
  file = file.substr(0, begin);
  return line;
}

bool read_number(std::string_view text, std::optional<uint64_t>* number) {
  uint64_t found = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), found);
  if (error != std::errc() || end != text.data() + text.size() || text.size() > kMostDigits) return false;
  *number = found;
  return true;
}

}  // namespace

bool is_settled_at(std::string_view file, uint64_t generation) {
  if (!take_line(file).starts_with("{\"lines\":")) return false;
  std::optional<uint64_t> last;
  // Claims count in all lines of a file whose last is of this generation.
  do {
    bool has_claim = false;
    JsonScan line(take_line(file));
    const bool is_object = line.object([&](std::string_view name) {
      std::string_view value;
      if (!line.value(&value)) return false;
      has_claim |= name == "pod" || name == "kubelet";
      return name != "generation" || last || read_number(value, &last);
    });
    if (!is_object || !last || *last > generation) return false;
    if (*last == generation && has_claim) return false;
  } while (*last == generation && !file.empty());
  return true;
}

}  // namespace numalign
