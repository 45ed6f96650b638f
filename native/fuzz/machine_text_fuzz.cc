// Any text with a good checksum: parsing never crashes, and what it accepts is written as it was.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/crc32.h"
#include "core/machine_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string body = "mark\n\n" + std::string(reinterpret_cast<const char*>(data), size);
  char sum[9];
  std::snprintf(sum, sizeof sum, "%08x", numalign::crc32(body));
  const std::string text = "numalign machine 1 crc32:" + std::string(sum) + "\n" + body;
  const auto machine = numalign::parse_machine_text(text, "mark");
  if (!machine || numalign::parse_machine_text(numalign::machine_text("mark", *machine), "mark") == machine)
    return 0;
  std::fputs("it is written as another machine\n", stderr);
  std::abort();
}
