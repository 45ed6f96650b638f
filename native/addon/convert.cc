#include "addon/convert.h"

#include "addon/environment.h"

namespace numalign::addon {
namespace {

const char* code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidList:
      return "ERR_INVALID_LIST";
    case ErrorCode::kInvalidTopology:
    case ErrorCode::kHwloc:
      return "ERR_INVALID_TOPOLOGY";
    case ErrorCode::kInsufficientCpus:
      return "ERR_INSUFFICIENT_CPUS";
    case ErrorCode::kSyscall:
      return "ERR_SYSCALL";
  }
  return "ERR_SYSCALL";  // not reached: the switch is complete
}

Napi::Object make_error(Napi::Env env, const std::string& code, const std::string& message,
                        const Napi::Object& details) {
  Environment& data = Environment::of(env);
  return data.error_class.New({Napi::String::New(env, code), Napi::String::New(env, message), details});
}

Napi::TypeError wrong_shape(Napi::Env env, const char* what, const char* expected) {
  return Napi::TypeError::New(env, std::string(what) + " must be " + expected);
}

}  // namespace

void throw_error(Napi::Env env, const std::string& code, const std::string& message,
                 const Napi::Object& details) {
  throw Napi::Error(env, make_error(env, code, message, details));
}

Napi::Value error_value(Napi::Env env, const Error& error) {
  Napi::Object details = Napi::Object::New(env);
  if (error.code == ErrorCode::kSyscall) {
    details["errno"] = Napi::Number::New(env, error.errno_value);
    details["syscall"] = Napi::String::New(env, error.syscall);
  }
  return make_error(env, code_name(error.code), error.message, details);
}

void throw_error(Napi::Env env, const Error& error) { throw Napi::Error(env, error_value(env, error)); }

std::string to_string(const Napi::Value& value, const char* what) {
  if (!value.IsString()) throw wrong_shape(value.Env(), what, "a string");
  return value.As<Napi::String>();
}

int to_int(const Napi::Value& value, const char* what) {
  if (!value.IsNumber()) throw wrong_shape(value.Env(), what, "an integer");
  double number = value.As<Napi::Number>();
  if (!(number >= INT32_MIN && number <= INT32_MAX) || number != static_cast<int>(number)) {
    throw wrong_shape(value.Env(), what, "a 32-bit integer");
  }
  return static_cast<int>(number);
}

bool to_bool(const Napi::Value& value, const char* what) {
  if (!value.IsBoolean()) throw wrong_shape(value.Env(), what, "a boolean");
  return value.As<Napi::Boolean>();
}

template <class Tag>
IdSet<Tag> to_id_set(const Napi::Value& value) {
  constexpr size_t kMaxWords = IdSet<Tag>::kMaxId / 32 + 1;
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != napi_uint32_array) {
    throw wrong_shape(value.Env(), "a set", "a Uint32Array");
  }
  auto words32 = value.As<Napi::Uint32Array>();
  size_t n = words32.ElementLength();
  if (n > kMaxWords) throw Napi::RangeError::New(value.Env(), "a set has ids above its maximum");
  const uint32_t* data = words32.Data();
  std::vector<uint64_t> words((n + 1) / 2);
  for (size_t i = 0; i < n; i++) words[i / 2] |= uint64_t{data[i]} << (i % 2 * 32);
  return IdSet<Tag>::from_words(words);
}

template <class Tag>
Napi::Uint32Array from_id_set(Napi::Env env, const IdSet<Tag>& set) {
  std::span<const uint64_t> words = set.words();
  size_t n = words.size() * 2;
  if (n > 0 && words.back() >> 32 == 0) n--;
  auto words32 = Napi::Uint32Array::New(env, n);
  uint32_t* data = words32.Data();
  for (size_t i = 0; i < n; i++) data[i] = static_cast<uint32_t>(words[i / 2] >> (i % 2 * 32));
  return words32;
}

template CpuSet to_id_set<CpuTag>(const Napi::Value&);
template NodeSet to_id_set<NodeTag>(const Napi::Value&);
template Napi::Uint32Array from_id_set<CpuTag>(Napi::Env, const CpuSet&);
template Napi::Uint32Array from_id_set<NodeTag>(Napi::Env, const NodeSet&);

}  // namespace numalign::addon
