#include "platform/files/cgroup_root.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/vfs.h>

namespace numalign {

bool CgroupRoot::has_changed() {
  if (!mounts_.valid()) {
    mounts_.reset(open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC));
    return true;
  }
  // proc_pid_mounts(5): an event for each change since the last poll.
  struct pollfd table = {mounts_.get(), POLLPRI, 0};
  return poll(&table, 1, 0) != 0;
}

bool CgroupRoot::is_unified() {
  if (has_changed()) {
    struct statfs found;
    is_unified_ = statfs("/sys/fs/cgroup", &found) == 0 && found.f_type == CGROUP2_SUPER_MAGIC;
  }
  return is_unified_;
}

}  // namespace numalign
