// Modules and their compiled code, for lib/compiled-code.ts: before anything else of the package is loaded,
// so that no error has a code.
#include <optional>
#include <string>
#include <utility>

#include "addon/convert.h"
#include "addon/environment.h"
#include "core/compiled_code.h"
#include "platform/files/code_files.h"

// Of Node since 20.4. node_api.h has it only for later versions of Node-API.
extern "C" __attribute__((weak)) napi_status node_api_create_external_string_latin1(
    napi_env env, char* text, size_t length, napi_finalize finalize, void* hint, napi_value* result,
    bool* is_copied);

namespace numalign::addon {
namespace {

Napi::Buffer<char> to_buffer(const Napi::Value& value, const char* what) {
  if (!value.IsBuffer()) throw Napi::TypeError::New(value.Env(), std::string(what) + " must be a Buffer");
  return value.As<Napi::Buffer<char>>();
}

// A text outside V8's heap, whose garbage collector would copy it: most of it is never looked at.
Napi::Value from_source(Napi::Env env, SourceText source) {
  if (!node_api_create_external_string_latin1) return Napi::String::New(env, source.text.get(), source.size);
  const auto free_text = [](napi_env, void* text, void*) { delete[] static_cast<char*>(text); };
  napi_value text = nullptr;
  bool is_copied = false;
  // Frees the text at once if it copies it.
  const napi_status status = node_api_create_external_string_latin1(env, source.text.release(), source.size,
                                                                    free_text, nullptr, &text, &is_copied);
  NAPI_THROW_IF_FAILED(env, status, Napi::Value());
  return Napi::Value(env, text);
}

// (descriptor, text before, text after): the whole text and its sum; undefined if there is no such text
Napi::Value read_source_binding(const Napi::CallbackInfo& info) {
  const std::string before = to_string(info[1], "the text before"), after = to_string(info[2], "that after");
  std::optional<SourceText> source = read_source(to_int(info[0], "the descriptor"), before, after);
  if (!source) return info.Env().Undefined();
  Napi::Object found = Napi::Object::New(info.Env());
  found["sum"] = Napi::Number::New(info.Env(), source->sum);
  found["text"] = from_source(info.Env(), std::move(*source));
  return found;
}

// (path)
Napi::Value is_trusted_folder_binding(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(), is_trusted_folder(to_string(info[0], "the path")));
}

// (name, path of the source, its sum, room): the size of the code, or undefined
Napi::Value read_code_binding(const Napi::CallbackInfo& info) {
  Napi::Buffer<char> room = to_buffer(info[3], "the room");
  const std::optional<size_t> size =
      read_code(to_string(info[0], "the name"), to_string(info[1], "the path"),
                static_cast<uint32_t>(to_size(info[2], "the sum")), {room.Data(), room.Length()});
  return size ? Napi::Number::New(info.Env(), static_cast<double>(*size)) : info.Env().Undefined();
}

// (path, folder of compiled code, room for that, text before, text after): the whole text and the size of the
// code; undefined if either is not there
Napi::Value read_module_binding(const Napi::CallbackInfo& info) {
  Napi::Buffer<char> room = to_buffer(info[2], "the room");
  std::optional<CompiledModule> module = read_module(
      to_string(info[0], "the path"), to_string(info[1], "the folder"), to_string(info[3], "the text before"),
      to_string(info[4], "that after"), {room.Data(), room.Length()});
  if (!module) return info.Env().Undefined();
  Napi::Object found = Napi::Object::New(info.Env());
  found["size"] = Napi::Number::New(info.Env(), static_cast<double>(module->code_size));
  found["text"] = from_source(info.Env(), std::move(module->source));
  return found;
}

// (code, path of the source, its sum): the bytes of a file
Napi::Value with_head_binding(const Napi::CallbackInfo& info) {
  Napi::Buffer<char> code = to_buffer(info[0], "the code");
  const std::string bytes = with_head({code.Data(), code.Length()}, to_string(info[1], "the path"),
                                      static_cast<uint32_t>(to_size(info[2], "the sum")));
  return Napi::Buffer<char>::Copy(info.Env(), bytes.data(), bytes.size());
}

}  // namespace

void export_code(Napi::Env env, Napi::Object exports) {
  exports["readSource"] = Napi::Function::New<read_source_binding>(env);
  exports["isTrustedFolder"] = Napi::Function::New<is_trusted_folder_binding>(env);
  exports["readCode"] = Napi::Function::New<read_code_binding>(env);
  exports["readModule"] = Napi::Function::New<read_module_binding>(env);
  exports["withHead"] = Napi::Function::New<with_head_binding>(env);
}

}  // namespace numalign::addon
