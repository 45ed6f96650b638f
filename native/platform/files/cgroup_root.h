// CgroupRoot: tells if cgroup v2 is mounted at its usual place, so that its files can be there.
// Thread-safety: one thread at a time.
#pragma once

#include "platform/files/unique_fd.h"

namespace numalign {

class CgroupRoot {
 public:
  // True if cgroup v2 is at /sys/fs/cgroup, as this process sees it now. Looks only if something
  // was mounted or unmounted since the last call; checking that takes a tenth of looking for a
  // missing file.
  bool is_unified();

 private:
  // True if the table of mounts may have changed since the last call.
  bool has_changed();

  UniqueFd mounts_;
  bool is_unified_ = false;
};

}  // namespace numalign
