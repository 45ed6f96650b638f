// Shared members: processes that numalign keeps off CPUs by their masks.
#include <utility>
#include <vector>

#include "addon/convert.h"
#include "addon/environment.h"
#include "platform/threads/member_choices.h"
#include "platform/threads/member_masks.h"
#include "platform/threads/thread_pins.h"

namespace numalign::addon {
namespace {

template <class T, class Convert>
std::vector<T> to_list(const Napi::Value& value, const char* what, Convert convert) {
  if (!value.IsArray()) throw Napi::TypeError::New(value.Env(), std::string(what) + " must be an array");
  const Napi::Array array = value.As<Napi::Array>();
  std::vector<T> list;
  list.reserve(array.Length());
  for (uint32_t i = 0; i < array.Length(); i++) list.push_back(convert(array.Get(i)));
  return list;
}

MemberThread to_thread(const Napi::Value& value) {
  if (!value.IsObject()) throw Napi::TypeError::New(value.Env(), "a thread must be an object");
  const Napi::Object thread = value.As<Napi::Object>();
  const Napi::Value place = thread.Get("place");
  return {to_int(thread.Get("tid"), "tid"), to_id_set<CpuTag>(thread.Get("chosen")),
          to_id_set<CpuTag>(thread.Get("applied")), to_id_set<CpuTag>(thread.Get("asked")),
          place.IsUndefined() ? CpuSet{} : to_id_set<CpuTag>(place)};
}

// The sets of one answer, each made once: most threads have the same, and an array costs more than
// a search.
class SharedSets {
 public:
  explicit SharedSets(Napi::Env env) : env_(env) {}

  Napi::Value of(const CpuSet& set) {
    for (const auto& [known, value] : made_) {
      if (known == set) return value;
    }
    return made_.emplace_back(set, from_id_set(env_, set)).second;
  }

  Napi::Object thread(const MemberThread& from) {
    Napi::Object thread = Napi::Object::New(env_);
    thread["tid"] = Napi::Number::New(env_, from.tid);
    thread["chosen"] = of(from.chosen);
    thread["applied"] = of(from.applied);
    thread["asked"] = of(from.asked);
    return thread;
  }

 private:
  Napi::Env env_;
  std::vector<std::pair<CpuSet, Napi::Value>> made_;
};

Napi::Array from_threads(Napi::Env env, const std::vector<MemberThread>& list) {
  SharedSets sets(env);
  auto threads = Napi::Array::New(env, list.size());
  for (uint32_t i = 0; i < threads.Length(); i++) {
    threads[i] = sets.thread(list[i]);
  }
  return threads;
}

std::vector<CpuSet> to_cpu_sets(const Napi::Value& value) {
  return to_list<CpuSet>(value, "grants", [](const Napi::Value& each) { return to_id_set<CpuTag>(each); });
}

std::vector<pid_t> to_tids(const Napi::Value& value) {
  return to_list<pid_t>(value, "unpinned", [](const Napi::Value& each) { return to_int(each, "a thread"); });
}

// From a ConfineMemberCall in lib/base/native-threads.ts.
ConfinementRequest to_confinement(const Napi::Value& question) {
  const Fields fields(question, "a confinement");
  return {
      .pid = fields.integer("pid"),
      .known = to_list<MemberThread>(fields["known"], "known", to_thread),
      .taken = fields.id_set<CpuTag>("taken"),
      .pool = fields.id_set<CpuTag>("pool"),
      .limit = fields.id_set<CpuTag>("limit"),
      .grants = to_cpu_sets(fields["grants"]),
      .only_narrow = fields.flag("onlyNarrow"),
      .dry_run = fields.flag("dryRun"),
      .unpinned = to_tids(fields["unpinned"]),
  };
}

// (ConfineMemberCall) -> { threads, stuck, moved, isRefused, places, putBack }; undefined if there
// is no such process
Napi::Value confine_member_binding(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  Result<Confinement> result = confine_member(to_confinement(info[0]));
  if (!result.ok() && result.error().errno_value == ESRCH) return env.Undefined();
  Confinement confinement = unwrap(env, std::move(result));

  auto stuck = Napi::Array::New(env, confinement.stuck.size());
  for (uint32_t i = 0; i < stuck.Length(); i++) {
    Napi::Object thread = Napi::Object::New(env);
    thread["tid"] = Napi::Number::New(env, confinement.stuck[i].tid);
    thread["errno"] = Napi::Number::New(env, confinement.stuck[i].errno_value);
    thread["cpus"] = from_id_set(env, confinement.stuck[i].cpus);
    stuck[i] = thread;
  }
  Napi::Object answer = Napi::Object::New(env);
  answer["threads"] = from_threads(env, confinement.threads);
  answer["stuck"] = stuck;
  answer["moved"] = Napi::Number::New(env, confinement.moved);
  answer["isRefused"] = Napi::Boolean::New(env, confinement.is_refused);
  auto places = Napi::Array::New(env, confinement.places.size());
  for (uint32_t i = 0; i < places.Length(); i++) places[i] = from_id_set(env, confinement.places[i]);
  answer["places"] = places;
  if (!confinement.changes.empty()) {
    const pid_t pid = Fields(info[0], "a confinement").integer("pid");
    answer["putBack"] = Napi::Function::New(
        env, [pid, changes = std::move(confinement.changes)](const Napi::CallbackInfo& call) {
          return Napi::Boolean::New(call.Env(), put_back(pid, changes));
        });
  }
  return answer;
}

// (MemberChoicesCall) -> threads with `place` and `isFree`; none if there is no such process
Napi::Value member_choices_binding(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  const Fields fields(info[0], "a question about choices");
  Result<std::vector<MemberChoice>> result = member_choices({
      .pid = fields.integer("pid"),
      .known = to_list<MemberThread>(fields["known"], "known", to_thread),
      .unpinned = to_tids(fields["unpinned"]),
      .grants = to_cpu_sets(fields["grants"]),
      .limit = fields.id_set<CpuTag>("limit"),
      .all = fields.id_set<CpuTag>("all"),
  });
  if (!result.ok() && result.error().errno_value == ESRCH) return Napi::Array::New(env);
  const std::vector<MemberChoice> choices = unwrap(env, std::move(result));
  SharedSets sets(env);
  auto threads = Napi::Array::New(env, choices.size());
  for (uint32_t i = 0; i < threads.Length(); i++) {
    Napi::Object thread = sets.thread(choices[i].thread);
    thread["place"] = sets.of(choices[i].thread.place);
    thread["isFree"] = Napi::Boolean::New(env, choices[i].is_free);
    threads[i] = thread;
  }
  return threads;
}

// (pid)
Napi::Value may_move_binding(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(), may_move(to_int(info[0], "the process")));
}

void remember_masks(const Napi::CallbackInfo& info) {
  unwrap(info.Env(), ThreadPins::of_this_process().remember_masks());
}

void restore_masks(const Napi::CallbackInfo&) { ThreadPins::of_this_process().restore_masks(); }

// (words of their cpuset, none if unknown; words of all CPUs; what is known of them as shared
// members)
void learn_choices(const Napi::CallbackInfo& info) {
  const auto known = to_list<MemberThread>(info[2], "what is known", to_thread);
  unwrap(info.Env(), ThreadPins::of_this_process().learn_choices(to_id_set<CpuTag>(info[0]),
                                                                 to_id_set<CpuTag>(info[1]), known));
}

// () -> the known choices of this process's threads, in the form of confineMember
Napi::Value choices(const Napi::CallbackInfo& info) {
  return from_threads(info.Env(), ThreadPins::of_this_process().choices());
}

}  // namespace

void export_members(Napi::Env env, Napi::Object exports) {
  exports["confineMember"] = Napi::Function::New(env, confine_member_binding);
  exports["askedMasks"] = Napi::Function::New(env, member_choices_binding);
  exports["mayMove"] = Napi::Function::New(env, may_move_binding);
  exports["choices"] = Napi::Function::New(env, choices);
  exports["learnAskedMasks"] = Napi::Function::New(env, learn_choices);
  exports["rememberMasks"] = Napi::Function::New(env, remember_masks);
  exports["restoreMasks"] = Napi::Function::New(env, restore_masks);
}

}  // namespace numalign::addon
