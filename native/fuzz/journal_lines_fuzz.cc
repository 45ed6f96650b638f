// Any lines: those that are merged have a change that reads as JSON, as do pods. Lines are sealed here, since
// no mutation finds a checksum.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "core/crc32.h"
#include "core/journal_lines.h"
#include "core/json_scan.h"
#include "core/pod_rows.h"

namespace {

void check(std::string_view json) {
  numalign::JsonScan scan(json);
  std::string_view value;
  if (!scan.value(&value) || !scan.at_end()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)numalign::merge_lines(text, 1);
  numalign::PodRows pods;
  numalign::JsonScan scan(text);
  std::string_view uid;
  if (pods.take(scan, &uid)) check(pods.text());
  std::string lines;
  for (size_t begin = 0; begin < size;) {
    const size_t end = std::min(text.find('\n', begin), size);
    char seal[40];
    snprintf(seal, sizeof seal, ",\"checksum\":\"crc32:%08x\"}\n",
             numalign::crc32(text.substr(begin, end - begin)));
    lines += std::string(text.substr(begin, end - begin)) + seal;
    begin = end + 1;
  }
  for (const std::optional<uint64_t> before : {std::optional<uint64_t>(1), std::optional<uint64_t>()}) {
    const auto merged = numalign::merge_lines(lines, before);
    if (merged && !merged->change.empty()) check(merged->change);
  }
  return 0;
}
