// What threads have done, and which tasks of the machine are on given CPUs: reads /proc. What cannot be read
// is nothing, never zero. Thread-safety: every function may be called from any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/id_set.h"
#include "core/task_files.h"

namespace numalign {

// Nanoseconds since boot (CLOCK_BOOTTIME), the clock by which a thread's start is told.
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

// Which threads: those that may run on given CPUs and nowhere else, or all that may run there too.
enum class ThreadsOn { kTheseOnly, kTheseToo };

// Such threads of these processes. Nothing is told of a thread all of whose CPUs are offline. A process or
// thread that ends meanwhile is left out.
std::vector<ThreadActivity> thread_activity(std::span<const pid_t> pids, const CpuSet& cpus, ThreadsOn which);

// A task of the machine.
struct ScannedTask {
  pid_t pid;
  pid_t tid;
  pid_t parent;  // of its process
  uint64_t start_ns;
  int processor;
  bool is_kernel_thread;
  bool is_bound;     // a kernel thread that nobody can move
  bool is_runnable;  // it runs or waits for a CPU
  bool is_confined;  // it may run on the given CPUs only
  uint64_t run_ns;   // exact only where it is on the given CPUs
  std::string command;
};

struct TaskScan {
  // Those that are confined to the given CPUs, and those that may run there and are there now, or were last.
  std::vector<ScannedTask> tasks;
  // Of each process above one of them: its own parent.
  std::vector<std::pair<pid_t, pid_t>> parents;
  // Whether kernel threads are to be seen: then so is everything else. Not so in a pid namespace of its own,
  // or where /proc hides the processes of others.
  bool sees_all = false;
};

// Looks at every process that /proc shows. Costs two small system calls for one that may not run on `cpus`,
// and reading one or two files for each thread that may.
TaskScan scan_tasks(const CpuSet& cpus);

}  // namespace numalign
