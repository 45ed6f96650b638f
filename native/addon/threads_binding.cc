// Affinity and threads.
#include <sched.h>
#include <unistd.h>

#include "addon/async_job.h"
#include "addon/convert.h"
#include "addon/environment.h"
#include "core/cpu_use.h"
#include "platform/threads/affinity.h"
#include "platform/threads/pool_barrier.h"
#include "platform/threads/scheduling.h"
#include "platform/threads/thread_birth.h"
#include "platform/threads/thread_pins.h"
#include "platform/threads/thread_roles.h"

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
    case ThreadRole::kV8:
      return "v8";
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
    if (!moves[i].earlier.empty()) move["earlier"] = from_id_set(env, moves[i].earlier);
    array[i] = move;
  }
  return array;
}

Napi::Object from_outcome(Napi::Env env, const PinOutcome& outcome) {
  Napi::Object object = Napi::Object::New(env);
  object["moved"] = from_moves(env, outcome.moved);
  object["unmovable"] = from_moves(env, outcome.unmovable);
  return object;
}

[[noreturn]] void throw_already_pinned(Napi::Env env, const AlreadyPinned& pinned) {
  Napi::Object details = Napi::Object::New(env);
  details["tid"] = Napi::Number::New(env, pinned.tid);
  details["grant"] = Napi::String::New(env, pinned.grant);
  throw_error(env, "ERR_ALREADY_PINNED",
              "thread " + std::to_string(pinned.tid) + " is pinned for grant " + pinned.grant +
                  "; release that grant first, or pin with { replace: true }",
              details);
}

// The number of moved threads, then tid and former mask of each, which has the target now; the number
// of unmovable ones, then tid, errno, former and present mask of each.
std::vector<uint32_t> words_of(const PinOutcome& outcome) {
  constexpr size_t kUsual = 64;
  std::vector<uint32_t> words;
  words.reserve(kUsual);
  WireWriter writer(words);
  writer.word(static_cast<uint32_t>(outcome.moved.size()));
  for (const ThreadMove& move : outcome.moved) {
    writer.word(static_cast<uint32_t>(move.tid));
    writer.cpus(move.before);
  }
  writer.word(static_cast<uint32_t>(outcome.unmovable.size()));
  for (const ThreadMove& move : outcome.unmovable) {
    writer.word(static_cast<uint32_t>(move.tid));
    writer.word(static_cast<uint32_t>(move.errno_value));
    writer.cpus(move.before);
    writer.cpus(move.now);
  }
  return words;
}

// Two arguments: a grant, and a part of it.
PinTarget to_target(const Napi::CallbackInfo& info, size_t at) {
  return {to_string(info[at], "the grant"), to_string(info[at + 1], "the part")};
}

// (tid, or -1 for the whole process; for a grant: grant; part; owner; replace), and the CPUs on the wire
Napi::Value pin(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  const pid_t tid = to_int(info[0], "the thread id");
  WireReader wire = wire_of(env);
  const CpuSet cpus = wire.cpus();
  check(env, wire);
  ThreadPins& pins = ThreadPins::of_this_process();
  auto result = unwrap(env, info.Length() == 1
                                ? pins.pin(tid, cpus, {}, "", false)
                                : pins.pin(tid, cpus, to_target(info, 1), to_string(info[3], "the owner"),
                                           to_bool(info[4], "replace")));
  if (const auto* pinned = std::get_if<AlreadyPinned>(&result)) throw_already_pinned(env, *pinned);
  return to_wire(env, words_of(std::get<PinOutcome>(result)));
}

// (tid, or -1 for the whole process; grant)
void check_not_pinned(const Napi::CallbackInfo& info) {
  auto pinned = unwrap(info.Env(), ThreadPins::of_this_process().other_pin(to_int(info[0], "the thread id"),
                                                                           to_string(info[1], "the grant")));
  if (pinned) throw_already_pinned(info.Env(), *pinned);
}

// The places of a PlaceCall in lib/base/native-threads.ts.
Placement to_placement(const Fields& fields) {
  const Napi::Value cpus = fields["cpus"], each = fields["oneEach"], granted = fields["granted"],
                    parts = fields["parts"];
  if (!cpus.IsArray() || !each.IsArray() || !granted.IsArray() || !parts.IsArray()) {
    throw Napi::TypeError::New(cpus.Env(), "cpus, oneEach, granted and parts must be arrays by role");
  }
  auto sets = cpus.As<Napi::Array>();
  auto one_each = each.As<Napi::Array>();
  auto all = granted.As<Napi::Array>();
  auto names = parts.As<Napi::Array>();
  Placement placement;
  for (uint32_t i = 0; i < kThreadRoles; i++) {
    if (sets.Get(i).IsUndefined()) continue;
    placement[i] = {to_id_set<CpuTag>(sets.Get(i)), to_bool(one_each.Get(i), "whether each has one CPU"),
                    to_id_set<CpuTag>(all.Get(i)), to_string(names.Get(i), "the part")};
    if (placement[i]->cpus.empty()) throw Napi::TypeError::New(cpus.Env(), "a role must have a CPU");
  }
  return placement;
}

// (PlaceCall): outcomes by role
Napi::Value place(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  const Fields fields(info[0], "a placement");
  auto result =
      unwrap(env, ThreadPins::of_this_process().place(to_placement(fields), fields.string("grant"),
                                                      fields.string("owner"), fields.flag("replace")));
  if (const auto* pinned = std::get_if<AlreadyPinned>(&result)) throw_already_pinned(env, *pinned);
  auto array = Napi::Array::New(env, kThreadRoles);
  for (uint32_t i = 0; i < kThreadRoles; i++) {
    array[i] = from_outcome(env, std::get<PlacementOutcome>(result)[i]);
  }
  return array;
}

// (words): until close_birth(), threads that this one starts are born on these CPUs. Returns the
// number of open births.
Napi::Value open_birth(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  std::vector<ThreadBirth>& births = Environment::of(env).births;
  CpuSet after = unwrap(env, ThreadPins::of_this_process().asked_mask());
  births.push_back(unwrap(env, ThreadBirth::on(to_id_set<CpuTag>(info[0]), std::move(after))));
  return Napi::Number::New(env, static_cast<double>(births.size()));
}

// (result of open_birth()): the one thread that was started meanwhile, 0 if unknown. First ends
// births that were opened after it.
Napi::Value close_birth(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  std::vector<ThreadBirth>& births = Environment::of(env).births;
  const int birth = to_int(info[0], "the birth");
  if (birth < 1 || static_cast<size_t>(birth) > births.size())
    throw Napi::RangeError::New(env, "this birth is not open");
  while (births.size() > static_cast<size_t>(birth)) births.pop_back();
  const pid_t tid = births.back().newborn().value_or(0);
  births.pop_back();
  return Napi::Number::New(env, tid);
}

// (tid of a Worker, or 0; words of the grant or its part; grant; part; owner)
void adopt(const Napi::CallbackInfo& info) {
  const pid_t tid = to_int(info[0], "the thread id");
  if (tid != 0) ThreadRoles::of_this_process().set(tid, ThreadRole::kWorker);
  ThreadPins::of_this_process().adopt(tid, to_id_set<CpuTag>(info[1]), to_target(info, 2),
                                      to_string(info[4], "the owner"));
}

// (tid of a Worker that has ended)
void forget_thread(const Napi::CallbackInfo& info) {
  ThreadRoles::of_this_process().forget(to_int(info[0], "the thread id"));
}

// (words): the CPU that the fewest threads have to themselves now
Napi::Value least_used_cpu(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  const CpuSet cpus = to_id_set<CpuTag>(info[0]);
  if (cpus.empty()) throw Napi::TypeError::New(env, "there must be a CPU");
  CpuUse use;
  for (pid_t tid : unwrap(env, process_threads())) {
    Result<CpuSet> now = get_affinity(tid);
    if (now.ok()) use.add(now.value(), runs_javascript(ThreadRoles::of_this_process().get(tid)));
  }
  return Napi::Number::New(env, use.least_used(cpus));
}

// (number of threads, milliseconds): promises of { tids, complete }, one per task; the last to
// settle knows all threads.
Napi::Value probe_pool(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  const auto threads = static_cast<uint32_t>(to_int(info[0], "the number of threads"));
  auto barrier = PoolBarrier::open_for(threads, std::chrono::milliseconds(to_int(info[1], "the timeout")));
  auto promises = Napi::Array::New(env, threads);
  for (uint32_t i = 0; i < threads; i++) {
    promises[i] = run_async<PoolThreads>(
        env, [barrier] { return Result<PoolThreads>(barrier->arrive()); },
        [](Napi::Env job_env, const PoolThreads& found) {
          auto tids = Napi::Array::New(job_env, found.tids.size());
          for (uint32_t n = 0; pid_t tid : found.tids) tids[n++] = Napi::Number::New(job_env, tid);
          Napi::Object result = Napi::Object::New(job_env);
          result["tids"] = tids;
          result["complete"] = Napi::Boolean::New(job_env, found.complete);
          return result;
        });
  }
  return promises;
}

Napi::Object from_scheduling(Napi::Env env, const Scheduling& scheduling) {
  Napi::Object object = Napi::Object::New(env);
  object["policy"] = Napi::Number::New(env, scheduling.policy);
  object["priority"] = Napi::Number::New(env, scheduling.priority);
  object["nice"] = Napi::Number::New(env, scheduling.nice);
  object["resetOnFork"] = Napi::Boolean::New(env, scheduling.reset_on_fork);
  return object;
}

// (tid; 0: the calling thread)
Napi::Value scheduling(const Napi::CallbackInfo& info) {
  return from_scheduling(info.Env(), unwrap(info.Env(), get_scheduling(to_int(info[0], "the thread id"))));
}

// (ScheduleCall of lib/base/native-threads.ts): the resulting class, or { starved, cpus }
Napi::Value schedule(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  const Fields fields(info[0], "a scheduling class");
  const int priority = fields.integer("priority");
  const int nice = fields.integer("nice");
  const Scheduling wanted{.policy = priority > 0 ? SCHED_FIFO : SCHED_OTHER,
                          .priority = priority,
                          .nice = priority > 0 ? 0 : nice,
                          .reset_on_fork = priority > 0 || nice < 0};
  auto result = unwrap(
      env, ThreadPins::of_this_process().schedule(fields.integer("tid"), wanted, fields.string("grant")));
  if (const auto* starved = std::get_if<Starved>(&result)) {
    Napi::Object refusal = Napi::Object::New(env);
    refusal["starved"] = Napi::Number::New(env, starved->tid);
    refusal["cpus"] = from_id_set(env, starved->cpus);
    return refusal;
  }
  return from_scheduling(env, std::get<Scheduling>(result));
}

Napi::Value from_undone(Napi::Env env, Undone undone) {
  if (!undone.come_back) return env.Undefined();
  Napi::Object outcome = from_outcome(env, undone.outcome);
  outcome["comeBack"] = Napi::Function::New(
      env, [come_back = std::move(undone.come_back)](const Napi::CallbackInfo&) { come_back(); });
  return outcome;
}

// (grant, words of the shared pool): an outcome with `comeBack`; undefined if no thread was on it
Napi::Value undo_pin(const Napi::CallbackInfo& info) {
  return from_undone(info.Env(),
                     unwrap(info.Env(), ThreadPins::of_this_process().undo(to_string(info[0], "the grant"),
                                                                           to_id_set<CpuTag>(info[1]))));
}

// (grant, part, words of its CPUs from now on)
Napi::Value follow_grant(const Napi::CallbackInfo& info) {
  return from_outcome(info.Env(), unwrap(info.Env(), ThreadPins::of_this_process().follow(
                                                         to_target(info, 0), to_id_set<CpuTag>(info[2]))));
}

// (grant, part): ids of the threads that should run on it
Napi::Value grant_threads(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  const std::vector<pid_t> tids = unwrap(env, ThreadPins::of_this_process().threads_for(to_target(info, 0)));
  auto array = Napi::Array::New(env, tids.size());
  for (uint32_t i = 0; i < tids.size(); i++) array[i] = Napi::Number::New(env, tids[i]);
  return array;
}

// (grant, part, words of its CPUs): moves of threads on other CPUs; `now` is where they should be
Napi::Value stray_threads(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  return from_moves(
      env, unwrap(env, ThreadPins::of_this_process().strays(to_target(info, 0), to_id_set<CpuTag>(info[2]))));
}

std::vector<pid_t> to_threads(Napi::Value value) {
  if (!value.IsArray()) throw Napi::TypeError::New(value.Env(), "the threads must be an array");
  const auto list = value.As<Napi::Array>();
  std::vector<pid_t> tids;
  for (uint32_t i = 0; i < list.Length(); i++) tids.push_back(to_int(list.Get(i), "a thread"));
  return tids;
}

// (grant, part, words of its CPUs, ids of threads)
Napi::Value recall_threads(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  return from_outcome(
      env, unwrap(env, ThreadPins::of_this_process().recall(to_target(info, 0), to_id_set<CpuTag>(info[2]),
                                                            to_threads(info[3]))));
}

// (grant, words of its CPUs, ids of threads, words of the shared pool): an outcome with `comeBack`
Napi::Value share_threads(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  return from_undone(env, unwrap(env, ThreadPins::of_this_process().share(
                                          to_string(info[0], "the grant"), to_id_set<CpuTag>(info[1]),
                                          to_threads(info[2]), to_id_set<CpuTag>(info[3]))));
}

// (grant, part, words of the CPUs to wait on)
Napi::Value park_grant(const Napi::CallbackInfo& info) {
  return from_outcome(info.Env(), unwrap(info.Env(), ThreadPins::of_this_process().park(
                                                         to_target(info, 0), to_id_set<CpuTag>(info[2]))));
}

Napi::Value affinity(const Napi::CallbackInfo& info) {
  return from_id_set(info.Env(), unwrap(info.Env(), get_affinity(to_int(info[0], "the thread id"))));
}

Napi::Value chosen_mask(const Napi::CallbackInfo& info) {
  return from_id_set(info.Env(), unwrap(info.Env(), ThreadPins::of_this_process().chosen_mask()));
}

Napi::Value asked_mask(const Napi::CallbackInfo& info) {
  return from_id_set(info.Env(), unwrap(info.Env(), ThreadPins::of_this_process().asked_mask()));
}

// (words of a mask): true if the kernel accepted it
Napi::Value ask(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(
      info.Env(), unwrap(info.Env(), ThreadPins::of_this_process().ask(to_id_set<CpuTag>(info[0]))));
}

// (words of a choice; words of all CPUs)
void ask_later(const Napi::CallbackInfo& info) {
  unwrap(info.Env(),
         ThreadPins::of_this_process().ask_later(to_id_set<CpuTag>(info[0]), to_id_set<CpuTag>(info[1])));
}

// (grant)
void ask_choices(const Napi::CallbackInfo& info) {
  ThreadPins::of_this_process().ask_choices(to_string(info[0], "the grant"));
}

// (words of their cpuset; true to change nothing): the number of threads
Napi::Value settle_choices(const Napi::CallbackInfo& info) {
  const bool dry_run = to_bool(info[1], "the dry run");
  return Napi::Number::New(info.Env(), unwrap(info.Env(), ThreadPins::of_this_process().settle_choices(
                                                              to_id_set<CpuTag>(info[0]), dry_run)));
}

// Reads a list of CPUs. Its words are the same array while the file does not change.
Result<Done> refresh(Napi::Env env, CpuList& list) {
  const bool is_possible = !list.root || list.root->is_unified();
  Result<bool> changed = is_possible ? list.file.has_changed() : Result<bool>(false);
  if (is_possible && changed.ok()) {
    if (!changed.value() && !list.words.IsEmpty()) return Done{};
    list.words = Napi::Persistent(from_id_set(env, list.file.cpus()).As<Napi::Object>());
    return Done{};
  }
  list.words.Reset();
  return changed.ok() ? Result<Done>(Done{}) : changed.error();
}

Napi::Value words_of(Napi::Env env, const CpuList& list) {
  return list.words.IsEmpty() ? env.Undefined() : Napi::Value(list.words.Value());
}

// (index in CPU_LISTS of lib/base/native-tables.ts): words; undefined if the file does not exist or
// has no list
Napi::Value read_cpu_list_binding(const Napi::CallbackInfo& info) {
  auto& lists = Environment::of(info.Env()).cpu_lists;
  const int which = to_int(info[0], "which list");
  if (which < 0 || static_cast<size_t>(which) >= lists.size())
    throw Napi::RangeError::New(info.Env(), "unknown list of CPUs");
  (void)refresh(info.Env(), lists[which]);
  return words_of(info.Env(), lists[which]);
}

Napi::Value online_cpus_binding(const Napi::CallbackInfo& info) {
  CpuList& list = Environment::of(info.Env()).online_cpus;
  unwrap(info.Env(), refresh(info.Env(), list));
  return words_of(info.Env(), list);
}

Napi::Value thread_id(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), Environment::of(info.Env()).tid);
}

// Every thread of the process: { tid, role, cpus }. Leaves out threads that end meanwhile.
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
  exports["pin"] = Napi::Function::New<pin>(env);
  exports["place"] = Napi::Function::New<place>(env);
  exports["openBirth"] = Napi::Function::New<open_birth>(env);
  exports["closeBirth"] = Napi::Function::New<close_birth>(env);
  exports["adopt"] = Napi::Function::New<adopt>(env);
  exports["forgetThread"] = Napi::Function::New<forget_thread>(env);
  exports["leastUsedCpu"] = Napi::Function::New<least_used_cpu>(env);
  exports["probePool"] = Napi::Function::New<probe_pool>(env);
  exports["scheduling"] = Napi::Function::New<scheduling>(env);
  exports["schedule"] = Napi::Function::New<schedule>(env);
  exports["undoPin"] = Napi::Function::New<undo_pin>(env);
  exports["shareThreads"] = Napi::Function::New<share_threads>(env);
  exports["followGrant"] = Napi::Function::New<follow_grant>(env);
  exports["grantThreads"] = Napi::Function::New<grant_threads>(env);
  exports["strayThreads"] = Napi::Function::New<stray_threads>(env);
  exports["recallThreads"] = Napi::Function::New<recall_threads>(env);
  exports["checkNotPinned"] = Napi::Function::New<check_not_pinned>(env);
  exports["parkGrant"] = Napi::Function::New<park_grant>(env);
  exports["ask"] = Napi::Function::New<ask>(env);
  exports["askLater"] = Napi::Function::New<ask_later>(env);
  exports["askForMasks"] = Napi::Function::New<ask_choices>(env);
  exports["settleAskedMasks"] = Napi::Function::New<settle_choices>(env);
  exports["chosenMask"] = Napi::Function::New<chosen_mask>(env);
  exports["askedMask"] = Napi::Function::New<asked_mask>(env);
  exports["affinity"] = Napi::Function::New<affinity>(env);
  exports["readCpuList"] = Napi::Function::New<read_cpu_list_binding>(env);
  exports["onlineCpus"] = Napi::Function::New<online_cpus_binding>(env);
  exports["threadId"] = Napi::Function::New<thread_id>(env);
  exports["threads"] = Napi::Function::New<threads>(env);
}

}  // namespace numalign::addon
