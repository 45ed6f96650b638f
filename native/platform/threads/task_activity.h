// The activity of threads, and the machine's tasks on given CPUs: reads /proc. What cannot be read
// is nullopt, never zero. Thread-safety: every function may be called from any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/id_set.h"
#include "core/task_files.h"
#include "platform/threads/thread_pins.h"

namespace numalign {

// Nanoseconds since boot (CLOCK_BOOTTIME), the clock of thread start times.
uint64_t boot_time_ns();

// One thread.
struct ThreadActivity {
  pid_t pid;
  pid_t tid;
  uint64_t start_ns;  // since boot, to 10 ms
  int processor;      // the CPU that it runs on or ran on last
  CpuSet cpus;        // that it may run on
  std::optional<TaskSchedstat> schedstat;
  TaskSwitches switches;
};

// Which threads: those that may run only on given CPUs, or all that may run there.
enum class ThreadsOn { kTheseOnly, kTheseToo };

// Such threads of these processes. Leaves out threads whose CPUs are all offline, and processes and
// threads that end meanwhile. `just_pinned` is not read again: the `processor` of these threads is -1.
std::vector<ThreadActivity> thread_activity(std::span<const pid_t> pids, const CpuSet& cpus, ThreadsOn which,
                                            const std::map<pid_t, PinnedThread>& just_pinned = {});

// A task of the machine.
struct ScannedTask {
  pid_t pid;
  pid_t tid;
  pid_t parent;  // of its process
  uint64_t start_ns;
  int processor;
  bool is_kernel_thread;
  bool is_bound;     // a kernel thread that cannot be moved
  bool is_runnable;  // it runs or waits for a CPU
  bool is_confined;  // it may run only on the given CPUs
  uint64_t run_ns;   // exact only if it is on the given CPUs
  std::string command;
};

struct TaskScan {
  // Tasks confined to the given CPUs, and tasks that may run there and are there now, or were last.
  std::vector<ScannedTask> tasks;
  // The parent of each process above one of the tasks.
  std::vector<std::pair<pid_t, pid_t>> parents;
  // True if kernel threads are visible: then everything else is too. Not in a separate pid
  // namespace, or if /proc hides others' processes.
  bool sees_all = false;
};

// Checks every process that /proc shows. Costs two small system calls for a thread that may not run
// on `cpus`, and one or two file reads for a thread that may.
TaskScan scan_tasks(const CpuSet& cpus);

}  // namespace numalign
