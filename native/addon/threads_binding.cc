// Affinity and threads.
#include <unistd.h>

#include "addon/convert.h"
#include "addon/environment.h"
#include "platform/affinity.h"
#include "platform/thread_pins.h"
#include "platform/thread_roles.h"

namespace numalign::addon {
namespace {

const char* role_name(ThreadRole role) {
  switch (role) {
    case ThreadRole::kMain:
      return "main";
    case ThreadRole::kWorker:
      return "worker";
    case ThreadRole::kPool:
      return "pool";
    case ThreadRole::kOther:
      return "other";
  }
  return "other";
}

Napi::Array from_moves(Napi::Env env, const std::vector<ThreadMove>& moves) {
  auto array = Napi::Array::New(env, moves.size());
  for (size_t i = 0; i < moves.size(); i++) {
    Napi::Object move = Napi::Object::New(env);
    move["tid"] = Napi::Number::New(env, moves[i].tid);
    move["before"] = from_id_set(env, moves[i].before);
    move["now"] = from_id_set(env, moves[i].now);
    move["errno"] = Napi::Number::New(env, moves[i].errno_value);
    array[i] = move;
  }
  return array;
}

Napi::Value from_outcome(Napi::Env env, const PinOutcome& outcome) {
  Napi::Object object = Napi::Object::New(env);
  object["moved"] = from_moves(env, outcome.moved);
  object["unmovable"] = from_moves(env, outcome.unmovable);
  return object;
}

// (tid, or -1 for the whole process; words; grant; owner; replace)
Napi::Value pin(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  auto result = unwrap(
      env, ThreadPins::of_this_process().pin(to_int(info[0], "the thread id"), to_id_set<CpuTag>(info[1]),
                                             to_string(info[2], "the grant"), to_string(info[3], "the owner"),
                                             to_bool(info[4], "replace")));
  if (const auto* pinned = std::get_if<AlreadyPinned>(&result)) {
    Napi::Object details = Napi::Object::New(env);
    details["tid"] = Napi::Number::New(env, pinned->tid);
    details["grant"] = Napi::String::New(env, pinned->grant);
    throw_error(env, "ERR_ALREADY_PINNED",
                "thread " + std::to_string(pinned->tid) + " is pinned for grant " + pinned->grant +
                    "; release that grant first, or pin with { replace: true }",
                details);
  }
  return from_outcome(env, std::get<PinOutcome>(result));
}

// (grant, words of the shared pool)
Napi::Value undo_pin(const Napi::CallbackInfo& info) {
  return from_outcome(info.Env(),
                      unwrap(info.Env(), ThreadPins::of_this_process().undo(to_string(info[0], "the grant"),
                                                                            to_id_set<CpuTag>(info[1]))));
}

// (grant, words of its CPUs as they are from now on)
Napi::Value follow_grant(const Napi::CallbackInfo& info) {
  return from_outcome(info.Env(),
                      unwrap(info.Env(), ThreadPins::of_this_process().follow(to_string(info[0], "the grant"),
                                                                              to_id_set<CpuTag>(info[1]))));
}

// (grant, words of the shared pool)
Napi::Value park_grant(const Napi::CallbackInfo& info) {
  return from_outcome(info.Env(),
                      unwrap(info.Env(), ThreadPins::of_this_process().park(to_string(info[0], "the grant"),
                                                                            to_id_set<CpuTag>(info[1]))));
}

Napi::Value affinity(const Napi::CallbackInfo& info) {
  return from_id_set(info.Env(), unwrap(info.Env(), get_affinity(to_int(info[0], "the thread id"))));
}

Napi::Value online_cpus_binding(const Napi::CallbackInfo& info) {
  return from_id_set(info.Env(), unwrap(info.Env(), online_cpus()));
}

Napi::Value thread_id(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), Environment::of(info.Env()).tid);
}

// Every thread of the process: { tid, role, cpus }. One that ends meanwhile is left out.
Napi::Value threads(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  auto array = Napi::Array::New(env);
  for (pid_t tid : unwrap(env, process_threads())) {
    Result<CpuSet> cpus = get_affinity(tid);
    if (!cpus.ok()) continue;
    Napi::Object thread = Napi::Object::New(env);
    thread["tid"] = Napi::Number::New(env, tid);
    thread["role"] = Napi::String::New(env, role_name(ThreadRoles::of_this_process().get(tid)));
    thread["cpus"] = from_id_set(env, cpus.value());
    array[array.Length()] = thread;
  }
  return array;
}

}  // namespace

void export_threads(Napi::Env env, Napi::Object exports) {
  exports["pin"] = Napi::Function::New(env, pin);
  exports["undoPin"] = Napi::Function::New(env, undo_pin);
  exports["followGrant"] = Napi::Function::New(env, follow_grant);
  exports["parkGrant"] = Napi::Function::New(env, park_grant);
  exports["affinity"] = Napi::Function::New(env, affinity);
  exports["onlineCpus"] = Napi::Function::New(env, online_cpus_binding);
  exports["threadId"] = Napi::Function::New(env, thread_id);
  exports["threads"] = Napi::Function::New(env, threads);
}

}  // namespace numalign::addon
