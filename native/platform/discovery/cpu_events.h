// CpuEvents: the kernel's notices that CPUs have gone offline or come online (uevents, netlink(7)). Used on
// one thread.
#pragma once

#include <vector>

#include "core/result.h"
#include "platform/files/unique_fd.h"
#include "platform/syscall.h"

namespace numalign {

struct CpuEvent {};  // it does not say of which CPU: several may have been lost

class CpuEvents {
 public:
  // Needs no rights. Refused where the kernel sends none: EPERM in a network namespace that does not belong
  // to the initial user namespace; EAFNOSUPPORT or others in a sandbox.
  static Result<CpuEvents> open();
  // What has come since the last call; never waits.
  Result<std::vector<CpuEvent>> read();
  // Nothing else is called from then on.
  void close() { fd_.reset(); }
  // Becomes readable with a notice. Owned by this object.
  int fd() const { return fd_.get(); }

 private:
  explicit CpuEvents(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace numalign
