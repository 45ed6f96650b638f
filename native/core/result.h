// Error codes and Result<T>: how the core reports failure without exceptions. Values only; safe to
// use from any thread.
#pragma once

#include <cassert>
#include <string>
#include <utility>
#include <variant>

namespace numalign {

enum class ErrorCode {
  kInvalidList,       // a text is not a list of ids like "0-3,8"
  kInvalidTopology,   // a machine description contradicts itself
  kInsufficientCpus,  // fewer CPUs are available than requested
  kSyscall,           // the kernel refused; see `errno_value` and `syscall`
  kHwloc,             // hwloc could not load a topology
};

struct Error {
  ErrorCode code;
  std::string message;
  int errno_value = 0;    // kSyscall only
  std::string syscall{};  // kSyscall only
};

// Either a value or an Error. REQUIRES: ok() before value(), !ok() before error().
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  const T& value() const& {
    assert(ok());
    return *std::get_if<0>(&state_);
  }
  // By value, so that `for (int x : f().value())` does not dangle.
  T value() && {
    assert(ok());
    return std::move(*std::get_if<0>(&state_));
  }
  const Error& error() const {
    assert(!ok());
    return *std::get_if<1>(&state_);
  }

 private:
  std::variant<T, Error> state_;
};

}  // namespace numalign
