// Execution: this process becomes another program (execve(2)), as a child that libuv starts would begin: no
// signal is ignored or blocked, the standard streams block, and of other descriptors only those stay open
// that are named, beside what is not closed by execve(2) anyway.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"

namespace numalign {

struct Program {
  // A path, or a name that is looked for in the PATH of `environment`, as execvp(3) does.
  std::string file;
  std::vector<std::string> arguments;    // the first is the program's own name
  std::vector<std::string> environment;  // NAME=value
  std::vector<int> descriptors;          // that the program inherits, under the same numbers
};

// Returns only where the kernel refuses: then signals and descriptors are as they were.
Error execute(const Program& program);

}  // namespace numalign
