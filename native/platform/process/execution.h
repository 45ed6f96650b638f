// Execution: replaces this process by another program (execve(2)), in the state of a child that
// libuv starts: no signal is ignored or blocked, the standard streams block, and only the listed
// descriptors stay open, beside those that execve(2) keeps anyway.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"

namespace numalign {

struct Program {
  // A path, or a name to find in the PATH of `environment`, as execvp(3) does.
  std::string file;
  std::vector<std::string> arguments;    // the first is the program's own name
  std::vector<std::string> environment;  // NAME=value
  std::vector<int> descriptors;          // that the program inherits under the same numbers
};

// Returns only if the kernel refuses; signals and descriptors are then as before.
Error execute(const Program& program);

}  // namespace numalign
