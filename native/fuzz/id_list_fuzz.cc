// Any text: parsing never crashes, and what it accepts prints as a text that means the same.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/id_list.h"

namespace {

template <class Tag>
void check(std::string_view text) {
  auto parsed = numalign::parse_id_list<Tag>(text);
  if (!parsed.ok()) {
    if (parsed.error().code == numalign::ErrorCode::kInvalidList && !parsed.error().message.empty()) return;
    std::fputs("a refusal without its code or message\n", stderr);
    std::abort();
  }
  std::string printed = numalign::format_id_list(parsed.value());
  auto again = numalign::parse_id_list<Tag>(printed);
  if (again.ok() && again.value() == parsed.value() && numalign::format_id_list(again.value()) == printed)
    return;
  std::fprintf(stderr, "printed as \"%s\", which does not mean the same\n", printed.c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  check<numalign::CpuTag>(text);
  check<numalign::NodeTag>(text);
  return 0;
}
