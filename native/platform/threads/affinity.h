// CPU affinity of threads: the only file that calls sched_setaffinity(2) and sched_getaffinity(2).
// Thread-safety: every function may be called from any thread. A thread id of 0 means the calling thread.
// Masks of more than 1,024 CPUs work: the kernel's own size is found by growing the buffer.
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

pid_t current_thread_id();

// sched_getaffinity(2). ESRCH: no such thread.
Result<CpuSet> get_affinity(pid_t tid);

// The whole mask of a thread of this process: with the CPUs that are offline, which sched_getaffinity(2)
// leaves out. Cpus_allowed_list of /proc/self/task/TID/status. ESRCH: no such thread.
Result<CpuSet> get_whole_mask(pid_t tid);

// sched_setaffinity(2). The kernel clips `cpus` to the thread's cpuset without an error: read back. EINVAL:
// nothing is left after clipping; EPERM: the thread belongs to somebody else; ESRCH: no such thread.
Result<Done> set_affinity(pid_t tid, const CpuSet& cpus);

// Whether a thread of this process has this id now: ids are given again, and root could move anybody's
// threads.
bool is_own_thread(pid_t tid);

// The threads of a process: /proc/PID/task, opened once and read as often as needed. It stays that of this
// very process, whichever has the id later. Not thread-safe.
class ThreadList {
 public:
  // 0: of this process. ESRCH: no such process.
  static Result<ThreadList> open(pid_t pid);

  // The threads, ascending, as the folder lists them at this moment. While threads are born and end some may
  // be missing, and some have ended. ESRCH: the process has ended.
  Result<std::vector<pid_t>> threads();

 private:
  ThreadList(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  UniqueFd fd_;
  std::string path_;
  bool was_read_ = false;
};

// As ThreadList::threads().
Result<std::vector<pid_t>> threads_of(pid_t pid);

// Those of this process.
Result<std::vector<pid_t>> process_threads();

// The file in which the kernel lists the machine's CPUs that are online.
inline constexpr const char* kOnlineCpus = "/sys/devices/system/cpu/online";

// Those that are online at this moment. ENOENT, EACCES: hidden from a container.
Result<CpuSet> online_cpus();

// The CPUs that the kernel would let this process use: its cpuset, whatever its present masks are. REQUIRES:
// the calling thread ends now. It asks for all CPUs and reads back, and keeps them: to give it its own mask
// again could undo a pin that another thread makes meanwhile.
Result<CpuSet> cpuset_limit();

}  // namespace numalign
