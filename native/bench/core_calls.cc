// Calls one hot function so many times, for callgrind: core_calls NUMBER TIMES. Without arguments: one line
// for each, with its number, the function and the name.
#include <cstdio>
#include <cstdlib>

#include "bench/cases.h"

int main(int argc, char** argv) {
  std::vector<numalign::bench::Case> all = numalign::bench::cases();
  if (argc != 3) {
    for (size_t i = 0; i < all.size(); i++)
      std::printf("%zu\t%s\t%s\n", i, all[i].function.c_str(), all[i].name.c_str());
    return 0;
  }
  const numalign::bench::Call call = all.at(std::strtoul(argv[1], nullptr, 10)).prepare();
  size_t times = std::strtoul(argv[2], nullptr, 10);
  for (size_t i = 0; i < times; i++) call(i);
}
