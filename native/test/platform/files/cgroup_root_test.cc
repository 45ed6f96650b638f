#include "platform/files/cgroup_root.h"

#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

namespace numalign {
namespace {

bool is_cgroup2_there() {
  struct statfs found;
  return statfs("/sys/fs/cgroup", &found) == 0 && found.f_type == CGROUP2_SUPER_MAGIC;
}

TEST(CgroupRoot, TellsWhatIsMounted) {
  CgroupRoot root;
  EXPECT_EQ(root.is_unified(), is_cgroup2_there());
  EXPECT_EQ(root.is_unified(), is_cgroup2_there());
}

// What the child found, as its exit code.
enum Found { kRight, kWrong, kNotAllowed };

Found found_in_own_namespace() {
  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return kNotAllowed;
  CgroupRoot root;
  const bool before = root.is_unified();
  if (before != is_cgroup2_there()) return kWrong;
  if (mount("none", "/sys/fs/cgroup", before ? "tmpfs" : "cgroup2", 0, nullptr) != 0) return kNotAllowed;
  if (root.is_unified() == before) return kWrong;
  if (umount2("/sys/fs/cgroup", MNT_DETACH) != 0) return kNotAllowed;
  return root.is_unified() == before ? kRight : kWrong;
}

TEST(CgroupRoot, TellsWhatIsMountedAndUnmountedLater) {
  const pid_t child = fork();
  if (child == 0) _exit(found_in_own_namespace());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNotAllowed) GTEST_SKIP() << "nothing can be mounted here";
  EXPECT_EQ(WEXITSTATUS(status), kRight);
}

}  // namespace
}  // namespace numalign
