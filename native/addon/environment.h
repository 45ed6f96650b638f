// Environment: what the addon keeps for one JavaScript environment (the main thread's or a Worker's), freed
// with it. Used only on the thread of its environment.
#pragma once

#include <napi.h>
#include <sys/types.h>

#include <map>
#include <span>
#include <string>

#include "platform/files/cpu_list_file.h"

namespace numalign::addon {

// A list that the kernel shows, and its words as JavaScript has them.
struct CpuList {
  explicit CpuList(const std::string& path) : file(path) {}
  CpuListFile file;
  Napi::ObjectReference words;
};

struct Environment {
  explicit Environment(Napi::Env env);
  ~Environment();
  static Environment& of(Napi::Env env) { return *env.GetInstanceData<Environment>(); }

  pid_t tid;
  // Words and amounts on their way between JavaScript and the core: two arrays of JavaScript, which
  // lib/base/wire.ts fills before a call and reads after it. To look into an array that has just been made
  // there, and to make one here, costs more than most of the calls.
  std::span<uint32_t> words;
  std::span<double> amounts;
  Napi::ObjectReference wire;           // keeps both
  Napi::FunctionReference error_class;  // set by setErrorClass before anything can fail
  Napi::FunctionReference folder_class;
  Napi::FunctionReference lock_class;
  Napi::FunctionReference owner_class;
  // Lists of CPUs that the kernel shows, by their paths: open until the environment ends.
  std::map<std::string, CpuList> cpu_lists;
};

// Each file of bindings adds its functions to the export table.
void export_id_lists(Napi::Env env, Napi::Object exports);
void export_topology(Napi::Env env, Napi::Object exports);
void export_hints(Napi::Env env, Napi::Object exports);
void export_threads(Napi::Env env, Napi::Object exports);
void export_folder(Napi::Env env, Napi::Object exports);
void export_inotify(Napi::Env env, Napi::Object exports);
void export_memory(Napi::Env env, Napi::Object exports);
void export_members(Napi::Env env, Napi::Object exports);
void export_activity(Napi::Env env, Napi::Object exports);

}  // namespace numalign::addon
