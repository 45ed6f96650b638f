// Reaper: a program that hears of the end of this one. It reads a pipe to its end, which comes when
// no process has the other end any more: neither this process, or the program that it becomes, nor
// what that has started.
// Thread-safety: any thread.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"
#include "platform/files/unique_fd.h"

namespace numalign {

// Starts a program that has the pipe as descriptor 3, beside what this process leaves open to all that
// it starts, in a session of its own, and waits until it has ended: it leaves another process waiting.
// `environment` has NAME=value. Returns the other end, which is closed by execve(2).
Result<UniqueFd> start_reaper(const std::string& file, const std::vector<std::string>& arguments,
                              const std::vector<std::string>& environment);

}  // namespace numalign
