// What /proc/<pid>/task/<tid>/{stat,schedstat,sched,status} say of one thread (proc_pid_stat(5) and so on),
// as values. Pure functions; any text is accepted without harm.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace numalign {

// A line of `stat`.
struct TaskStat {
  std::string_view command;  // as it is, without the parentheses: a part of the text that was parsed
  char state = '?';
  int parent = 0;
  uint32_t flags = 0;
  uint64_t user_ticks = 0;
  uint64_t system_ticks = 0;
  uint64_t start_ticks = 0;  // since boot
  int processor = -1;        // the CPU that it runs on or ran on last

  bool is_kernel_thread() const { return (flags & 0x00200000) != 0; }  // PF_KTHREAD
  bool is_bound() const { return (flags & 0x04000000) != 0; }          // PF_NO_SETAFFINITY
};

// Nothing for a text that is no such line, or one of a kernel that does not tell the processor (before 2.2).
std::optional<TaskStat> parse_task_stat(std::string_view text);

// A line of `schedstat`.
struct TaskSchedstat {
  uint64_t run_ns = 0;
  uint64_t delay_ns = 0;  // waiting for a CPU while runnable
  uint64_t timeslices = 0;
};

std::optional<TaskSchedstat> parse_task_schedstat(std::string_view text);

// How often it left the CPU, of its own accord and not, and how often it came to another one. Whatever the
// text does not tell is nothing.
struct TaskSwitches {
  std::optional<uint64_t> voluntary;
  std::optional<uint64_t> involuntary;
  std::optional<uint64_t> migrations;
};

// The file `sched`, which kernels without CONFIG_SCHED_DEBUG do not have.
TaskSwitches parse_task_sched(std::string_view text);
// The file `status`, which tells no migrations.
TaskSwitches parse_task_status(std::string_view text);

}  // namespace numalign
