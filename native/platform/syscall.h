// Turns a failed system call into an Error. Reads errno: call it before anything else can change
// it.
#pragma once

#include <cerrno>
#include <cstring>
#include <string>

#include "core/result.h"

namespace numalign {

struct Done {};  // the value of a Result that has no value

inline Error syscall_error(const char* syscall, const std::string& what, int errno_value = errno) {
  return {ErrorCode::kSyscall, what + ": " + std::strerror(errno_value), errno_value, syscall};
}

}  // namespace numalign
