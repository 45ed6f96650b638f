// Replaces the process by another program, starts its reaper, and makes uids. See platform/process.
#include "addon/convert.h"
#include "addon/environment.h"
#include "platform/process/execution.h"
#include "platform/process/proc_self.h"
#include "platform/process/random_uuid.h"
#include "platform/process/reaper.h"

namespace numalign::addon {
namespace {

template <class T, class Convert>
std::vector<T> to_list(const Napi::Value& value, const char* what, Convert convert) {
  if (!value.IsArray()) throw Napi::TypeError::New(value.Env(), std::string(what) + " must be an array");
  auto array = value.As<Napi::Array>();
  std::vector<T> list;
  list.reserve(array.Length());
  for (uint32_t i = 0; i < array.Length(); i++) list.push_back(convert(array.Get(i), what));
  return list;
}

// (ProgramCall): returns only with an error
void execute_binding(const Napi::CallbackInfo& info) {
  const Fields fields(info[0], "a program");
  Program program{fields.string("file"), to_list<std::string>(fields["args"], "args", to_string),
                  to_list<std::string>(fields["environment"], "environment", to_string),
                  to_list<int>(fields["descriptors"], "descriptors", to_int)};
  throw_error(info.Env(), execute(program));
}

// (file, arguments, environment): the descriptor of the other end
Napi::Value start_reaper_binding(const Napi::CallbackInfo& info) {
  const auto file = to_string(info[0], "file");
  const auto arguments = to_list<std::string>(info[1], "arguments", to_string);
  const auto environment = to_list<std::string>(info[2], "environment", to_string);
  UniqueFd fd = unwrap(info.Env(), start_reaper(file, arguments, environment));
  return Napi::Number::New(info.Env(), fd.release());
}

Napi::Value random_uuid_binding(const Napi::CallbackInfo& info) {
  return Napi::String::New(info.Env(), unwrap(info.Env(), random_uuid()));
}

Napi::Value is_proc_ours_binding(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(), is_proc_ours());
}

}  // namespace

void export_process(Napi::Env env, Napi::Object exports) {
  exports["execute"] = Napi::Function::New<execute_binding>(env);
  exports["isProcOurs"] = Napi::Function::New<is_proc_ours_binding>(env);
  exports["startReaper"] = Napi::Function::New<start_reaper_binding>(env);
  exports["randomUuid"] = Napi::Function::New<random_uuid_binding>(env);
}

}  // namespace numalign::addon
