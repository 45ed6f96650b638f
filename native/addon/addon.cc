// The export table. The names are typed in lib/base/native.ts.
#include <napi.h>
#include <unistd.h>

#include "addon/convert.h"
#include "addon/environment.h"
#include "core/id_list.h"
#include "platform/threads/affinity.h"
#include "platform/threads/thread_roles.h"

namespace numalign::addon {

Environment::Environment(Napi::Env) : tid(current_thread_id()) {
  ThreadRoles::of_this_process().set(tid, tid == getpid() ? ThreadRole::kMain : ThreadRole::kWorker);
}

Environment::~Environment() { ThreadRoles::of_this_process().forget(tid); }

namespace {

void set_error_class(const Napi::CallbackInfo& info) {
  if (!info[0].IsFunction()) throw Napi::TypeError::New(info.Env(), "the error class must be a function");
  Environment::of(info.Env()).error_class = Napi::Persistent(info[0].As<Napi::Function>());
}

// (words, amounts)
void set_wire(const Napi::CallbackInfo& info) {
  auto words = info[0].As<Napi::Uint32Array>();
  auto amounts = info[1].As<Napi::Float64Array>();
  Environment& data = Environment::of(info.Env());
  data.words = {words.Data(), words.ElementLength()};
  data.amounts = {amounts.Data(), amounts.ElementLength()};
  Napi::Object kept = Napi::Object::New(info.Env());
  kept["words"] = words;
  kept["amounts"] = amounts;
  data.wire = Napi::Persistent(kept);
}

template <class Tag>
Napi::Value parse_list(const Napi::CallbackInfo& info) {
  std::string text = to_string(info[0], "a list of ids");
  return from_id_set(info.Env(), unwrap(info.Env(), parse_id_list<Tag>(text)));
}

template <class Tag>
Napi::Value format_list(const Napi::CallbackInfo& info) {
  return Napi::String::New(info.Env(), format_id_list(to_id_set<Tag>(info[0])));
}

Napi::Object init(Napi::Env env, Napi::Object exports) {
  env.SetInstanceData(new Environment(env));
  exports["setErrorClass"] = Napi::Function::New<set_error_class>(env);
  exports["setWire"] = Napi::Function::New<set_wire>(env);
  export_id_lists(env, exports);
  export_checksums(env, exports);
  export_code(env, exports);
  export_topology(env, exports);
  export_hints(env, exports);
  export_threads(env, exports);
  export_folder(env, exports);
  export_owner_names(env, exports);
  export_journal(env, exports);
  export_notices(env, exports);
  export_memory(env, exports);
  export_members(env, exports);
  export_activity(env, exports);
  export_quiet(env, exports);
  export_repacking(env, exports);
  export_process(env, exports);
  return exports;
}

}  // namespace

void export_id_lists(Napi::Env env, Napi::Object exports) {
  exports["parseCpuList"] = Napi::Function::New<parse_list<CpuTag>>(env);
  exports["parseNodeList"] = Napi::Function::New<parse_list<NodeTag>>(env);
  exports["formatCpuList"] = Napi::Function::New<format_list<CpuTag>>(env);
  exports["formatNodeList"] = Napi::Function::New<format_list<NodeTag>>(env);
}

NODE_API_MODULE(numalign, init)

}  // namespace numalign::addon
