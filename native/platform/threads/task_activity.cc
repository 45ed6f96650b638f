#include "platform/threads/task_activity.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <unordered_map>

#include "platform/folder_entries.h"
#include "platform/threads/affinity.h"
#include "platform/threads/clock_ticks.h"
#include "platform/threads/proc_folder.h"

namespace numalign {
namespace {

constexpr uint64_t kNsPerSecond = 1'000'000'000;

UniqueFd open_folder(int above, const char* path) {
  return UniqueFd(openat(above, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

// Calls `visit` with each entry of a folder whose name is a number.
template <class Visit>
void for_each_id(const UniqueFd& folder, Visit&& visit) {
  const auto visit_id = [&](const char* name) {
    if (name[0] >= '1' && name[0] <= '9') visit(std::atoi(name));
  };
  while (folder.valid() && read_entries(folder.get(), visit_id) > 0) continue;
}

// The place of the files about one thread. Shorter paths are found faster.
struct TaskFolder {
  pid_t tid;
  int above;  // contains a folder of this name

  std::string path_of(const char* file) const { return std::to_string(tid) + "/" + file; }
};

// Calls `visit` with the folder of each thread of a process.
template <class Visit>
void for_each_thread(const ProcFolder& proc, pid_t pid, Visit&& visit) {
  const std::string path = std::to_string(pid) + "/task";
  // The folder has two links more than threads. A single thread has the process's id and files.
  struct stat found;
  if (fstatat(proc.fd(), path.c_str(), &found, 0) != 0) return;
  if (found.st_nlink == 3) return visit(TaskFolder{pid, proc.fd()});
  UniqueFd folder = open_folder(proc.fd(), path.c_str());
  for_each_id(folder, [&](pid_t tid) { visit(TaskFolder{tid, folder.get()}); });
}

template <class T, class Parse>
std::optional<T> read_task(ProcFolder& proc, const TaskFolder& task, const char* file, Parse&& parse) {
  auto text = proc.read_piece(task.above, task.path_of(file).c_str());
  if (!text) return {};
  return parse(*text);
}

std::optional<TaskStat> read_stat(ProcFolder& proc, const TaskFolder& task) {
  return read_task<TaskStat>(proc, task, "stat", parse_task_stat);
}

std::optional<TaskSchedstat> read_schedstat(ProcFolder& proc, const TaskFolder& task) {
  return read_task<TaskSchedstat>(proc, task, "schedstat", parse_task_schedstat);
}

// `sched` has more, and costs less than `status`; not every kernel has it.
TaskSwitches read_switches(ProcFolder& proc, const TaskFolder& task) {
  auto switches = read_task<TaskSwitches>(proc, task, "sched", parse_task_sched).value_or(TaskSwitches{});
  if (switches.voluntary && switches.involuntary) return switches;
  auto others = read_task<TaskSwitches>(proc, task, "status", parse_task_status).value_or(TaskSwitches{});
  others.migrations = switches.migrations;
  return others;
}

bool is_there(const TaskFolder& task) {
  return faccessat(task.above, task.path_of("stat").c_str(), F_OK, 0) == 0;
}

// The parents of tasks' processes, up to the first process, each looked up once.
std::vector<std::pair<pid_t, pid_t>> parents_of(ProcFolder& proc, const std::vector<ScannedTask>& tasks) {
  std::unordered_map<pid_t, pid_t> known;
  for (const ScannedTask& task : tasks) known.try_emplace(task.pid, task.parent);
  for (const ScannedTask& task : tasks) {
    for (pid_t pid = task.parent; pid > 0 && !known.contains(pid);) {
      auto stat = read_stat(proc, {pid, proc.fd()});
      pid_t parent = stat ? stat->parent : 0;
      known[pid] = parent;
      pid = parent;
    }
  }
  return {known.begin(), known.end()};
}

}  // namespace

uint64_t boot_time_ns() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * kNsPerSecond + static_cast<uint64_t>(now.tv_nsec);
}

std::vector<ThreadActivity> thread_activity(std::span<const pid_t> pids, const CpuSet& cpus, ThreadsOn which,
                                            const std::map<pid_t, PinnedThread>& just_pinned) {
  ProcFolder proc("/proc");
  std::vector<ThreadActivity> threads;
  for (pid_t pid : pids) {
    for_each_thread(proc, pid, [&](const TaskFolder& task) {
      const auto pinned = just_pinned.find(task.tid);
      const bool is_known = pinned != just_pinned.end();
      Result<CpuSet> mask = is_known ? Result<CpuSet>(pinned->second.cpus) : get_affinity(task.tid);
      if (!mask.ok() || !mask.value().intersects(cpus)) return;
      if (which == ThreadsOn::kTheseOnly && !mask.value().is_subset_of(cpus)) return;
      auto stat = is_known ? TaskStat{.start_ticks = pinned->second.start} : read_stat(proc, task);
      if (!stat) return;
      ThreadActivity thread{.pid = pid,
                            .tid = task.tid,
                            .start_ns = ticks_to_ns(stat->start_ticks),
                            .processor = stat->processor,
                            .cpus = std::move(mask).value(),
                            .schedstat = read_schedstat(proc, task),
                            .switches = read_switches(proc, task)};
      // A thread that has ended in between was read in part.
      if ((!thread.schedstat || !thread.switches.voluntary) && !is_there(task)) return;
      threads.push_back(std::move(thread));
    });
  }
  return threads;
}

TaskScan scan_tasks(const CpuSet& cpus) {
  ProcFolder proc("/proc");
  TaskScan scan;
  for_each_id(open_folder(proc.fd(), "."), [&](pid_t pid) {
    for_each_thread(proc, pid, [&](const TaskFolder& task) {
      // The cheapest question first: usually it is the only one.
      Result<CpuSet> mask = get_affinity(task.tid);
      if (!mask.ok() || !mask.value().intersects(cpus)) return;
      auto stat = read_stat(proc, task);
      if (!stat) return;
      const bool is_here = cpus.contains(stat->processor);
      const bool is_confined = mask.value().is_subset_of(cpus);
      if (!is_here && !is_confined) return;
      ScannedTask scanned{.pid = pid,
                          .tid = task.tid,
                          .parent = stat->parent,
                          .start_ns = ticks_to_ns(stat->start_ticks),
                          .processor = stat->processor,
                          .is_kernel_thread = stat->is_kernel_thread(),
                          .is_bound = stat->is_bound(),
                          .is_runnable = stat->state == 'R',
                          .is_confined = is_confined,
                          .run_ns = ticks_to_ns(stat->user_ticks + stat->system_ticks),
                          .command = std::string(stat->command)};
      // This is more exact. From here on, the buffer holds another file.
      if (auto schedstat = is_here ? read_schedstat(proc, task) : std::nullopt) {
        scanned.run_ns = schedstat->run_ns;
      }
      scan.tasks.push_back(std::move(scanned));
    });
  });
  scan.parents = parents_of(proc, scan.tasks);
  // kthreadd, the parent of the others.
  auto second = read_stat(proc, {2, proc.fd()});
  scan.sees_all = second && second->is_kernel_thread();
  return scan;
}

}  // namespace numalign
