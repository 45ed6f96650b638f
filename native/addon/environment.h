// Environment: what the addon keeps for one JavaScript environment (the main thread's or a Worker's), freed
// with it. Used only on the thread of its environment.
#pragma once

#include <napi.h>
#include <sys/types.h>

namespace numalign::addon {

struct Environment {
  explicit Environment(Napi::Env env);
  ~Environment();
  static Environment& of(Napi::Env env) { return *env.GetInstanceData<Environment>(); }

  pid_t tid;
  Napi::FunctionReference error_class;  // set by setErrorClass before anything can fail
  Napi::FunctionReference folder_class;
  Napi::FunctionReference lock_class;
  Napi::FunctionReference owner_class;
};

// Each file of bindings adds its functions to the export table.
void export_id_lists(Napi::Env env, Napi::Object exports);
void export_topology(Napi::Env env, Napi::Object exports);
void export_hints(Napi::Env env, Napi::Object exports);
void export_threads(Napi::Env env, Napi::Object exports);
void export_folder(Napi::Env env, Napi::Object exports);
void export_memory(Napi::Env env, Napi::Object exports);
void export_members(Napi::Env env, Napi::Object exports);
void export_activity(Napi::Env env, Napi::Object exports);

}  // namespace numalign::addon
