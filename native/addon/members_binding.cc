// Shared members: processes that numalign keeps off CPUs by their masks.
#include <optional>
#include <utility>
#include <vector>

#include "addon/convert.h"
#include "addon/environment.h"
#include "core/member_record.h"
#include "platform/threads/affinity.h"
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
  return {to_int(thread.Get("tid"), "tid"), to_id_set<CpuTag>(thread.Get("chosen")),
          to_id_set<CpuTag>(thread.Get("applied")), to_id_set<CpuTag>(thread.Get("asked"))};
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

// What is known of the threads of a process.
struct Known {
  std::string process;
  std::vector<MemberThread> threads;
  std::vector<pid_t> unpinned;
};

// From a KnownThreadsCall in lib/base/native-threads.ts.
Known to_known(const Fields& fields) {
  const bool is_asked = fields.flag("isAsked");
  Known known{.process = fields.string("process"), .threads = {}, .unpinned = {}};
  known.threads = parse_member_record(known.process, fields.string("known"),
                                      is_asked ? Places::kWithAsked : Places::kNone);
  if (is_asked) {
    for (const MemberThread& thread : known.threads) known.unpinned.push_back(thread.tid);
  }
  const auto unpinned = to_list<MemberThread>(fields["unpinned"], "unpinned", [](const Napi::Value& value) {
    const Fields thread(value, "an unpinned thread");
    const CpuSet earlier = thread.id_set<CpuTag>("earlier");
    return MemberThread{thread.integer("tid"), earlier, earlier, earlier};
  });
  for (const MemberThread& thread : unpinned) {
    std::erase_if(known.threads, [&](const MemberThread& each) { return each.tid == thread.tid; });
    known.unpinned.push_back(thread.tid);
  }
  known.threads.insert(known.threads.end(), unpinned.begin(), unpinned.end());
  return known;
}

// From a ConfineMemberCall.
ConfinementRequest to_confinement(const Fields& fields, Known known) {
  return {
      .pid = fields.integer("pid"),
      .known = std::move(known.threads),
      .taken = fields.id_set<CpuTag>("taken"),
      .pool = fields.id_set<CpuTag>("pool"),
      .limit = fields.id_set<CpuTag>("limit"),
      .grants = to_cpu_sets(fields["grants"]),
      .only_narrow = fields.flag("onlyNarrow"),
      .dry_run = true,
      .unpinned = std::move(known.unpinned),
      .listed = {},
  };
}

Napi::Array from_stuck(Napi::Env env, const std::vector<StuckThread>& list) {
  auto stuck = Napi::Array::New(env, list.size());
  for (uint32_t i = 0; i < stuck.Length(); i++) {
    Napi::Object thread = Napi::Object::New(env);
    thread["tid"] = Napi::Number::New(env, list[i].tid);
    thread["errno"] = Napi::Number::New(env, list[i].errno_value);
    thread["cpus"] = from_id_set(env, list[i].cpus);
    stuck[i] = thread;
  }
  return stuck;
}

Napi::Array from_cpu_sets(Napi::Env env, const std::vector<CpuSet>& sets) {
  auto list = Napi::Array::New(env, sets.size());
  for (uint32_t i = 0; i < list.Length(); i++) list[i] = from_id_set(env, sets[i]);
  return list;
}

// A function that undoes changes, and returns the record of what was known before.
Napi::Function undoing(Napi::Env env, std::vector<MaskChange> changes, MemberPlan plan) {
  return Napi::Function::New(
      env,
      [changes = std::move(changes), plan = std::move(plan)](const Napi::CallbackInfo& call) -> Napi::Value {
        if (!put_back(plan.request.pid, changes)) return call.Env().Undefined();
        return Napi::String::New(call.Env(), format_member_record(plan.process, plan.request.known));
      });
}

// Undefined if there is no such process.
std::optional<Confinement> confine(Napi::Env env, const ConfinementRequest& request) {
  Result<Confinement> result = confine_member(request);
  if (!result.ok() && result.error().errno_value == ESRCH) return std::nullopt;
  return unwrap(env, std::move(result));
}

Napi::Object from_confinement(Napi::Env env, const std::string& process, const Confinement& confinement) {
  Napi::Object answer = Napi::Object::New(env);
  answer["record"] = Napi::String::New(env, format_member_record(process, confinement.threads));
  answer["stuck"] = from_stuck(env, confinement.stuck);
  answer["moved"] = Napi::Number::New(env, confinement.moved);
  return answer;
}

// (ConfineMemberCall) -> { record, stuck, moved, isRefused, places }; undefined if there is no such
// process
Napi::Value plan_member_binding(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  const Fields fields(info[0], "a confinement");
  Known known = to_known(fields);
  MemberPlan plan{.process = std::move(known.process), .request = to_confinement(fields, std::move(known))};
  const CpuSet granted = fields.id_set<CpuTag>("granted");
  std::optional<MemberPlan>& kept = Environment::of(env).member_plan;
  kept.reset();
  std::optional<Confinement> found = confine(env, plan.request);
  if (!found) return env.Undefined();
  if (found->moved > 0 || !found->stuck.empty()) {
    const std::vector<MemberThread>& now = plan.request.known;
    found->threads.insert(found->threads.end(), now.begin(), now.end());
    plan.request.dry_run = false;
    plan.request.listed = std::move(found->listed);
    kept = std::move(plan);
  }
  std::erase_if(found->places, [&](const CpuSet& place) { return !place.is_subset_of(granted); });
  Napi::Object answer = from_confinement(env, kept ? kept->process : plan.process, *found);
  answer["isRefused"] = Napi::Boolean::New(env, found->is_refused);
  answer["places"] = from_cpu_sets(env, found->places);
  return answer;
}

// (pid, with putBack) -> { record, stuck, moved, putBack }; undefined if the process has ended, or the last
// plan is of another process or has nothing to do
Napi::Value move_member_binding(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  const pid_t pid = to_int(info[0], "the process");
  const bool keeps_undo = to_bool(info[1], "whether it can be undone");
  std::optional<MemberPlan> plan = std::exchange(Environment::of(env).member_plan, std::nullopt);
  if (!plan || plan->request.pid != pid) return env.Undefined();
  std::optional<Confinement> done = confine(env, plan->request);
  if (!done) return env.Undefined();
  Napi::Object answer = from_confinement(env, plan->process, *done);
  answer["putBack"] = keeps_undo && !done->changes.empty()
                          ? undoing(env, std::move(done->changes), std::move(*plan))
                          : env.Undefined();
  return answer;
}

// (AskedMasksCall) -> { threads, areFree }; no threads if there is no such process
Napi::Value member_choices_binding(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  const Fields fields(info[0], "a question about choices");
  Known known = to_known(fields);
  const pid_t pid = fields.integer("pid");
  // Of its own threads this process knows what cpusets have removed, even if their masks are unchanged.
  if (pid == own_process_id()) {
    for (MemberThread& thread : ThreadPins::of_this_process().choices())
      known.threads.push_back(std::move(thread));
  }
  Result<std::vector<MemberChoice>> result = member_choices({
      .pid = pid,
      .known = std::move(known.threads),
      .unpinned = std::move(known.unpinned),
      .grants = to_cpu_sets(fields["grants"]),
      .limit = fields.id_set<CpuTag>("limit"),
      .all = fields.id_set<CpuTag>("all"),
  });
  std::vector<MemberThread> threads;
  bool are_free = true;
  if (result.ok() || result.error().errno_value != ESRCH) {
    for (MemberChoice& choice : unwrap(env, std::move(result))) {
      are_free &= choice.is_free;
      threads.push_back(std::move(choice.thread));
    }
  }
  Napi::Object answer = Napi::Object::New(env);
  answer["threads"] =
      Napi::String::New(env, format_member_record(known.process, threads, Places::kWithAsked));
  answer["areFree"] = Napi::Boolean::New(env, are_free);
  return answer;
}

// (name of a process, threads) -> their record
Napi::Value member_record_binding(const Napi::CallbackInfo& info) {
  const auto threads = to_list<MemberThread>(info[1], "threads", to_thread);
  return Napi::String::New(info.Env(),
                           format_member_record(to_string(info[0], "the name of a process"), threads));
}

// (name of a process, its record) -> the threads
Napi::Value member_threads_binding(const Napi::CallbackInfo& info) {
  const std::string process = to_string(info[0], "the name of a process");
  return from_threads(info.Env(), parse_member_record(process, to_string(info[1], "its record")));
}

// (pid)
Napi::Value may_move_binding(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(), may_move(to_int(info[0], "the process")));
}

void remember_masks(const Napi::CallbackInfo& info) {
  unwrap(info.Env(), ThreadPins::of_this_process().remember_masks());
}

void restore_masks(const Napi::CallbackInfo&) { ThreadPins::of_this_process().restore_masks(); }

// (words of their cpuset, none if unknown; words of all CPUs; the name of this process and its record
// as a shared member)
void learn_choices(const Napi::CallbackInfo& info) {
  auto known =
      parse_member_record(to_string(info[2], "the name of this process"), to_string(info[3], "its record"));
  std::erase_if(known, [](const MemberThread& thread) { return thread.applied.empty(); });
  unwrap(info.Env(), ThreadPins::of_this_process().learn_choices(to_id_set<CpuTag>(info[0]),
                                                                 to_id_set<CpuTag>(info[1]), known));
}

// () -> the known choices of this process's threads
Napi::Value choices(const Napi::CallbackInfo& info) {
  return from_threads(info.Env(), ThreadPins::of_this_process().choices());
}

}  // namespace

void export_members(Napi::Env env, Napi::Object exports) {
  exports["planMember"] = Napi::Function::New<plan_member_binding>(env);
  exports["moveMember"] = Napi::Function::New<move_member_binding>(env);
  exports["askedMasks"] = Napi::Function::New<member_choices_binding>(env);
  exports["memberRecord"] = Napi::Function::New<member_record_binding>(env);
  exports["memberThreads"] = Napi::Function::New<member_threads_binding>(env);
  exports["mayMove"] = Napi::Function::New<may_move_binding>(env);
  exports["choices"] = Napi::Function::New<choices>(env);
  exports["learnAskedMasks"] = Napi::Function::New<learn_choices>(env);
  exports["rememberMasks"] = Napi::Function::New<remember_masks>(env);
  exports["restoreMasks"] = Napi::Function::New<restore_masks>(env);
}

}  // namespace numalign::addon
