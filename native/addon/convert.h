// Conversions between JavaScript and the core's values, and the only place that throws. Checks
// shapes; lib/input/config.ts and lib/input/request.ts check meaning. Runs on the environment's
// thread.
#pragma once

#include <napi.h>

#include <string>
#include <vector>

#include "core/result.h"
#include "core/wire.h"
#include "platform/syscall.h"

namespace numalign::addon {

// Throws a JavaScript NumalignError (see lib/base/errors.ts) with a literal code.
[[noreturn]] void throw_error(Napi::Env env, const std::string& code, const std::string& message,
                              const Napi::Object& details);
[[noreturn]] void throw_error(Napi::Env env, const Error& error);
// The same error as a value, for promises.
Napi::Value error_value(Napi::Env env, const Error& error);

template <class T>
T unwrap(Napi::Env env, Result<T> result) {
  if (!result.ok()) throw_error(env, result.error());
  return std::move(result).value();
}

// Arguments. Each throws a TypeError that names `what` if the value has another shape.
std::string to_string(const Napi::Value& value, const char* what);
int to_int(const Napi::Value& value, const char* what);
int64_t to_int64(const Napi::Value& value, const char* what);  // from a bigint
uint64_t to_size(const Napi::Value& value, const char* what);  // from a number from 0 to 2^53
bool to_bool(const Napi::Value& value, const char* what);
std::vector<std::string> to_names(const Napi::Value& value);

// The parts of a question, by name. Throws a TypeError if `question` is not an object.
class Fields {
 public:
  Fields(const Napi::Value& question, const char* what);
  Napi::Value operator[](const char* name) const { return object_.Get(name); }
  std::string string(const char* name) const { return to_string(object_.Get(name), name); }
  int integer(const char* name) const { return to_int(object_.Get(name), name); }
  bool flag(const char* name) const { return to_bool(object_.Get(name), name); }
  template <class Tag>
  IdSet<Tag> id_set(const char* name) const;

 private:
  Napi::Object object_;
};

// A set crosses the boundary as the 32-bit words of a Uint32Array, lowest ids first.
template <class Tag>
IdSet<Tag> to_id_set(const Napi::Value& value);
template <class Tag>
Napi::Uint32Array from_id_set(Napi::Env env, const IdSet<Tag>& set);

// What is on the wire (see Environment), and throws a RangeError that says why it was no such
// question. Check before the question is used.
WireReader wire_of(Napi::Env env);
void check(Napi::Env env, const WireReader& wire);

// Puts words on the wire and returns their number; a separate Uint32Array if they are too many.
Napi::Value to_wire(Napi::Env env, std::span<const uint32_t> words);
template <class Tag>
Napi::Value to_wire(Napi::Env env, const IdSet<Tag>& set);

}  // namespace numalign::addon
