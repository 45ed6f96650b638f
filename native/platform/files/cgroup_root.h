// CgroupRoot: whether cgroup v2 is mounted where it usually is, so that its files can be there.
// Thread-safety: one thread at a time.
#pragma once

#include "platform/files/unique_fd.h"

namespace numalign {

class CgroupRoot {
 public:
  // At /sys/fs/cgroup, as this process sees it at this moment. Looks there only where something was mounted
  // or unmounted since the last call, which takes a tenth of a look for a file that is not there.
  bool is_unified();

 private:
  // Whether the table of mounts may be another than at the last call.
  bool has_changed();

  UniqueFd mounts_;
  bool is_unified_ = false;
};

}  // namespace numalign
