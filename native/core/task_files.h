// Parses /proc/<pid>/task/<tid>/{stat,schedstat,sched,status} of one thread (see proc_pid_stat(5)
// and others). Pure functions; any text is accepted without harm.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace numalign {

// A line of `stat`.
struct TaskStat {
  std::string_view command;  // without the parentheses; a part of the parsed text
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

// nullopt for any other text, or from a kernel that does not report the processor (before 2.2).
std::optional<TaskStat> parse_task_stat(std::string_view text);

// A line of `schedstat`.
struct TaskSchedstat {
  uint64_t run_ns = 0;
  uint64_t delay_ns = 0;  // waiting for a CPU while runnable
  uint64_t timeslices = 0;
};

std::optional<TaskSchedstat> parse_task_schedstat(std::string_view text);

// How often a thread left its CPU voluntarily and involuntarily, and how often it changed CPUs.
// nullopt if the text does not say.
struct TaskSwitches {
  std::optional<uint64_t> voluntary;
  std::optional<uint64_t> involuntary;
  std::optional<uint64_t> migrations;
};

// The file `sched`, which kernels without CONFIG_SCHED_DEBUG do not have.
TaskSwitches parse_task_sched(std::string_view text);
// The file `status`, which does not count migrations.
TaskSwitches parse_task_status(std::string_view text);

}  // namespace numalign
