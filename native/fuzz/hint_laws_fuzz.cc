// Hints of memory and of devices for any request: they are those of the walked rules, in both forms.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "test/support/hint_laws.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  size_t next = 0;
  auto between = [&](int low, int high) {
    unsigned range = static_cast<unsigned>(high - low) + 1;
    unsigned value = next < size ? data[next++] : 0u;
    return low + static_cast<int>(value % range);
  };
  std::string broken = numalign::test::broken_hint_law(between);
  if (broken.empty()) return 0;
  std::fprintf(stderr, "%s\n", broken.c_str());
  std::abort();
}
