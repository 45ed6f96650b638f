// What the micro-benchmarks measure: the hot functions of the core, each asked something else in every call.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace numalign::bench {

struct Case {
  std::string name;
  // The function that is measured, as callgrind's --toggle-collect takes it.
  std::string function;
  // One call, the i-th.
  std::function<void(size_t)> call;
};

std::vector<Case> cases();

}  // namespace numalign::bench
