// Any lines: those that are merged have a change that reads as JSON, and all pods of a change of plain pods
// are plain. Lines are sealed here, since no mutation finds a checksum.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/crc32.h"
#include "core/journal_lines.h"
#include "core/json_scan.h"
#include "core/plain_pod.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)numalign::merge_lines(text, 1);
  (void)numalign::is_plain_pod(text);
  std::string lines;
  for (size_t begin = 0; begin < size;) {
    const size_t end = std::min(text.find('\n', begin), size);
    char seal[40];
    snprintf(seal, sizeof seal, ",\"checksum\":\"crc32:%08x\"}\n",
             numalign::crc32(text.substr(begin, end - begin)));
    lines += std::string(text.substr(begin, end - begin)) + seal;
    begin = end + 1;
  }
  const auto merged = numalign::merge_lines(lines, 1);
  if (!merged || merged->change.empty()) return 0;
  numalign::JsonScan scan(merged->change);
  bool are_plain = true;
  const bool is_object = scan.object([&](std::string_view name) {
    std::string_view value;
    if (name != "pods") return scan.value(&value);
    return scan.list([&] {
      if (!scan.value(&value)) return false;
      are_plain = are_plain && numalign::is_plain_pod(value);
      return true;
    });
  });
  if (!is_object || !scan.at_end() || are_plain != merged->has_plain_pods) std::abort();
  return 0;
}
