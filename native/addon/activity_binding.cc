// The activity of threads and CPUs. Numbers cross as rows of doubles, in the columns that
// lib/base/native.ts names; NaN means that a value could not be read.
#include <limits>

#include "addon/convert.h"
#include "addon/environment.h"
#include "platform/threads/affinity.h"
#include "platform/threads/cpu_activity.h"
#include "platform/threads/task_activity.h"
#include "platform/threads/thread_pins.h"
#include "platform/threads/thread_roles.h"

namespace numalign::addon {
namespace {

// Rows of one table, written value by value.
class Rows {
 public:
  template <class Number>
  requires std::is_arithmetic_v<Number>
  void add(Number value) { values_.push_back(static_cast<double>(value)); }
  void add(std::optional<uint64_t> value) {
    add(value ? static_cast<double>(*value) : std::numeric_limits<double>::quiet_NaN());
  }
  Napi::Value to_array(Napi::Env env) const {
    auto array = Napi::Float64Array::New(env, values_.size());
    std::copy(values_.begin(), values_.end(), array.Data());
    return array;
  }

 private:
  std::vector<double> values_;
};

template <class T, class Member>
std::optional<uint64_t> member(const std::optional<T>& value, Member member) {
  if (!value) return {};
  return (*value).*member;
}

std::vector<pid_t> to_pids(const Napi::Value& value) {
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != napi_int32_array) {
    throw Napi::TypeError::New(value.Env(), "the process ids must be an Int32Array");
  }
  auto array = value.As<Napi::Int32Array>();
  return {array.Data(), array.Data() + array.ElementLength()};
}

// In other processes, only the main thread is known.
ThreadRole role_of(const ThreadActivity& thread) {
  if (thread.pid == own_process_id()) return ThreadRoles::of_this_process().get(thread.tid);
  return thread.tid == thread.pid ? ThreadRole::kMain : ThreadRole::kOther;
}

void add(Rows& rows, const ThreadActivity& thread, ThreadRole role) {
  rows.add(thread.pid);
  rows.add(thread.tid);
  rows.add(thread.start_ns);
  rows.add(thread.processor);
  rows.add(static_cast<int>(role));
  rows.add(member(thread.schedstat, &TaskSchedstat::run_ns));
  rows.add(member(thread.schedstat, &TaskSchedstat::delay_ns));
  rows.add(member(thread.schedstat, &TaskSchedstat::timeslices));
  rows.add(thread.switches.voluntary);
  rows.add(thread.switches.involuntary);
  rows.add(thread.switches.migrations);
}

void add(Rows& rows, const CpuActivity& cpu) {
  rows.add(cpu.cpu);
  rows.add(cpu.interrupts);
  rows.add(cpu.numbered_interrupts);
  rows.add(cpu.softirqs);
  rows.add(member(cpu.times, &CpuTimes::busy_ns));
  rows.add(member(cpu.times, &CpuTimes::idle_ns));
  rows.add(member(cpu.times, &CpuTimes::steal_ns));
  rows.add(cpu.frequency_khz);
}

// (process ids, words of the CPUs, confined to them): { rows, masks, bootNs }
Napi::Value threads(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  const auto which = to_bool(info[2], "confined") ? ThreadsOn::kTheseOnly : ThreadsOn::kTheseToo;
  const std::vector<ThreadActivity> found =
      thread_activity(to_pids(info[0]), to_id_set<CpuTag>(info[1]), which);
  Rows rows;
  auto masks = Napi::Array::New(env, found.size());
  for (size_t i = 0; i < found.size(); i++) {
    add(rows, found[i], role_of(found[i]));
    masks[i] = from_id_set(env, found[i].cpus);
  }
  Napi::Object object = Napi::Object::New(env);
  object["rows"] = rows.to_array(env);
  object["masks"] = masks;
  object["bootNs"] = Napi::Number::New(env, static_cast<double>(boot_time_ns()));
  return object;
}

// (words of the CPUs, with interrupts): rows
Napi::Value cpus(const Napi::CallbackInfo& info) {
  Rows rows;
  for (const CpuActivity& cpu : cpu_activity(to_id_set<CpuTag>(info[0]), to_bool(info[1], "with interrupts"),
                                             to_bool(info[2], "with frequency"))) {
    add(rows, cpu);
  }
  return rows.to_array(info.Env());
}

// (process ids, words of the CPUs): nanoseconds since boot, the number of threads, then their rows and
// those of the CPUs. The threads are those confined to the CPUs; if there is none, all of this process
// that may run there.
Napi::Value begin(const Napi::CallbackInfo& info) {
  const CpuSet cpus = to_id_set<CpuTag>(info[1]);
  // A pin must not take the time to interrupt each CPU for its frequency.
  const std::vector<CpuActivity> by_cpu = cpu_activity(cpus, true, false);
  const std::map<pid_t, PinnedThread> just_pinned = ThreadPins::of_this_process().pinned();
  const pid_t own = own_process_id();
  std::vector<ThreadActivity> threads =
      thread_activity(to_pids(info[0]), cpus, ThreadsOn::kTheseOnly, just_pinned);
  if (threads.empty()) threads = thread_activity({&own, 1}, cpus, ThreadsOn::kTheseToo, just_pinned);
  Rows rows;
  rows.add(boot_time_ns());
  rows.add(threads.size());
  for (const ThreadActivity& thread : threads) add(rows, thread, ThreadRole::kOther);
  for (const CpuActivity& cpu : by_cpu) add(rows, cpu);
  return rows.to_array(info.Env());
}

// (words of the CPUs): { rows, commands, parents, seesAll }
Napi::Value scan(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  TaskScan found = scan_tasks(to_id_set<CpuTag>(info[0]));
  Rows rows;
  auto commands = Napi::Array::New(env, found.tasks.size());
  for (size_t i = 0; i < found.tasks.size(); i++) {
    const ScannedTask& task = found.tasks[i];
    rows.add(task.pid);
    rows.add(task.tid);
    rows.add(task.start_ns);
    rows.add(task.processor);
    rows.add(task.is_kernel_thread);
    rows.add(task.is_bound);
    rows.add(task.is_runnable);
    rows.add(task.is_confined);
    rows.add(task.run_ns);
    commands[i] = Napi::String::New(env, task.command);
  }
  Rows parents;
  for (auto [pid, parent] : found.parents) {
    parents.add(pid);
    parents.add(parent);
  }
  Napi::Object object = Napi::Object::New(env);
  object["rows"] = rows.to_array(env);
  object["commands"] = commands;
  object["parents"] = parents.to_array(env);
  object["seesAll"] = Napi::Boolean::New(env, found.sees_all);
  return object;
}

}  // namespace

void export_activity(Napi::Env env, Napi::Object exports) {
  exports["threadActivity"] = Napi::Function::New<threads>(env);
  exports["cpuActivity"] = Napi::Function::New<cpus>(env);
  exports["beginActivity"] = Napi::Function::New<begin>(env);
  exports["scanTasks"] = Napi::Function::New<scan>(env);
}

}  // namespace numalign::addon
