// Environment: the addon's data for one JavaScript environment (the main thread or a Worker), freed
// with it. Used only on the environment's thread.
#pragma once

#include <napi.h>
#include <sys/types.h>

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "platform/files/cgroup_root.h"
#include "platform/files/cpu_list_file.h"
#include "platform/threads/affinity.h"
#include "platform/threads/member_masks.h"
#include "platform/threads/thread_birth.h"

namespace numalign::addon {

// A kernel list of CPUs, and its words in JavaScript.
struct CpuList {
  explicit CpuList(const char* path, bool needs_cgroup2 = false) : file(path) {
    if (needs_cgroup2) root.emplace();
  }
  CpuListFile file;
  std::optional<CgroupRoot> root;  // if the file exists only with cgroup v2
  Napi::ObjectReference words;     // empty if there is none
};

// What the last plan for a member has found to do. `process`: its name on record.
struct MemberPlan {
  std::string process;
  ConfinementRequest request;
};

struct Environment {
  explicit Environment(Napi::Env env);
  ~Environment();
  static Environment& of(Napi::Env env) { return *env.GetInstanceData<Environment>(); }

  pid_t tid;
  // Words and amounts on their way between JavaScript and the core: two JavaScript arrays, which
  // lib/base/words.ts fills before a call and reads after it. Looking into a new array there, or
  // making one here, costs more than most calls.
  std::span<uint32_t> words;
  std::span<double> amounts;
  std::vector<uint32_t> answer;         // of the current merge or placement
  Napi::ObjectReference wire;           // keeps both arrays
  Napi::FunctionReference error_class;  // set by setErrorClass before anything can fail
  Napi::FunctionReference folder_class;
  Napi::FunctionReference journal_class;
  Napi::FunctionReference lock_class;
  Napi::FunctionReference owner_class;
  Napi::ObjectReference step_lock;  // of the last step on a state
  std::vector<ThreadBirth> births;  // open, nested
  std::optional<MemberPlan> member_plan;
  // Kernel lists of CPUs, open until the environment ends.
  CpuList online_cpus{kOnlineCpus};
  // isolcpus=, with isolated partitions on the newest kernels; all isolated partitions, even nested
  // ones, in the root of cgroup v2 on newer kernels only; nohz_full=.
  std::array<CpuList, 3> cpu_lists{CpuList("/sys/devices/system/cpu/isolated"),
                                   CpuList("/sys/fs/cgroup/cpuset.cpus.isolated", true),
                                   CpuList("/sys/devices/system/cpu/nohz_full")};
};

// Each file of bindings adds its functions to the export table.
void export_id_lists(Napi::Env env, Napi::Object exports);
void export_checksums(Napi::Env env, Napi::Object exports);
void export_code(Napi::Env env, Napi::Object exports);
void export_topology(Napi::Env env, Napi::Object exports);
void export_hints(Napi::Env env, Napi::Object exports);
void export_threads(Napi::Env env, Napi::Object exports);
void export_folder(Napi::Env env, Napi::Object exports);
void export_owner_names(Napi::Env env, Napi::Object exports);
void export_journal(Napi::Env env, Napi::Object exports);
void export_notices(Napi::Env env, Napi::Object exports);
void export_memory(Napi::Env env, Napi::Object exports);
void export_members(Napi::Env env, Napi::Object exports);
void export_activity(Napi::Env env, Napi::Object exports);
void export_quiet(Napi::Env env, Napi::Object exports);
void export_repacking(Napi::Env env, Napi::Object exports);
void export_process(Napi::Env env, Napi::Object exports);

}  // namespace numalign::addon
