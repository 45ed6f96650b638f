// Any words as a family of hints, and any merge: parsing and printing are inverse, and every way to merge
// gives the same.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/hint_merger.h"
#include "test/support/merge_laws.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace numalign;
  std::vector<uint32_t> words(size / 4);
  if (!words.empty()) std::memcpy(words.data(), data, words.size() * 4);
  if (auto family = HintFamily::from_words(words)) {
    // Flags that are not 0 or 1 are read as 1.
    if (HintFamily::from_words(family->to_words()) != family) std::abort();
    std::vector<HintFamily> families(2, *family);
    merge_hints(families, {.nodes = family->nodes, .distances = {}, .budget = 1000});
  }
  size_t next = 0;
  auto between = [&](int low, int high) {
    unsigned range = static_cast<unsigned>(high - low) + 1;
    unsigned value = next < size ? data[next++] : 0u;
    return low + static_cast<int>(value % range);
  };
  for (const std::string& broken : {test::broken_words_law(between), test::broken_merge_law(between, true),
                                    test::broken_merge_law(between, false)}) {
    if (broken.empty()) continue;
    std::fprintf(stderr, "%s\n", broken.c_str());
    std::abort();
  }
  return 0;
}
