// What the micro-benchmarks measure: the hot functions of the core, each asked something else in every call.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace numalign::bench {

using Call = std::function<void(size_t)>;

struct Case {
  std::string name;
  // The function that is measured, as callgrind's --toggle-collect takes it.
  std::string function;
  // Makes what is asked; the i-th call is made with i.
  std::function<Call()> prepare;
};

std::vector<Case> cases();

}  // namespace numalign::bench
