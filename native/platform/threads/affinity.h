// CPU affinity of threads: the only file that calls sched_setaffinity(2) and sched_getaffinity(2).
// Thread-safety: every function may be called from any thread. A thread id of 0 means the calling
// thread. Masks of more than 1,024 CPUs work: the buffer grows to the kernel's size.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "core/id_set.h"
#include "core/result.h"
#include "platform/files/unique_fd.h"
#include "platform/syscall.h"

namespace numalign {

// As getpid(2) and gettid(2), without a system call each time.
pid_t own_process_id();
pid_t current_thread_id();

// sched_getaffinity(2). ESRCH: no such thread.
Result<CpuSet> get_affinity(pid_t tid);

// The whole mask of a thread of this process, with the offline CPUs that sched_getaffinity(2)
// leaves out. From Cpus_allowed_list of /proc/self/task/TID/status. ESRCH: no such thread.
Result<CpuSet> get_whole_mask(pid_t tid);

// sched_setaffinity(2). The kernel silently clips `cpus` to the thread's cpuset, so read back.
// EINVAL: nothing is left after clipping; EPERM: another user's thread; ESRCH: no such thread.
Result<Done> set_affinity(pid_t tid, const CpuSet& cpus);

// True if a thread of the process has this id now: ids are reused, and root could move anyone's
// threads.
bool is_thread_of(pid_t pid, pid_t tid);

// The same for this process.
bool is_own_thread(pid_t tid);

// The threads of a process: /proc/PID/task, opened once for any number of reads. It stays with this
// very process, even if another gets its id. Not thread-safe.
class ThreadList {
 public:
  // 0: this process. ESRCH: no such process.
  static Result<ThreadList> open(pid_t pid);

  // The threads, ascending, as listed now. While threads start and end, some may be missing, and
  // some may have ended. ESRCH: the process has ended.
  Result<std::vector<pid_t>> threads();

 private:
  ThreadList(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  UniqueFd fd_;
  std::string path_;
  bool was_read_ = false;
};

// Like ThreadList::threads().
Result<std::vector<pid_t>> threads_of(pid_t pid);

// The threads of this process.
Result<std::vector<pid_t>> process_threads();

// The kernel's list of online CPUs.
inline constexpr const char* kOnlineCpus = "/sys/devices/system/cpu/online";

// The CPUs online now. ENOENT, EACCES: hidden from a container.
Result<CpuSet> online_cpus();

// The CPUs that the kernel lets this process use: its cpuset, whatever its present masks. REQUIRES:
// the calling thread ends now. It asks for all CPUs, reads back, and keeps them: restoring its own
// mask could undo a pin that another thread makes meanwhile.
Result<CpuSet> cpuset_limit();

}  // namespace numalign
