// CpuEvents: the kernel's notices of CPUs going offline or online (uevents, netlink(7)). Used on
// one thread.
#pragma once

#include <vector>

#include "core/result.h"
#include "platform/files/unique_fd.h"
#include "platform/syscall.h"

namespace numalign {

struct CpuEvent {};  // does not name the CPU: several events may have been lost

class CpuEvents {
 public:
  // Needs no rights. Fails if the kernel sends no notices: EPERM in a network namespace outside the
  // initial user namespace; EAFNOSUPPORT or others in a sandbox.
  static Result<CpuEvents> open();
  // The events since the last call; never waits.
  Result<std::vector<CpuEvent>> read();
  // The last call on this object.
  void close() { fd_.reset(); }
  // Becomes readable with a notice. Owned by this object.
  int fd() const { return fd_.get(); }

 private:
  explicit CpuEvents(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace numalign
