#include "addon/convert.h"

#include <algorithm>
#include <array>

#include "addon/environment.h"
#include "core/set_words.h"

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
  // Most are short: measuring one first takes as long as reading it.
  std::array<char, 2048> bytes;
  size_t length = 0;
  const bool is_read =
      napi_get_value_string_utf8(value.Env(), value, bytes.data(), bytes.size(), &length) == napi_ok;
  // A character that does not fit is cut off whole.
  constexpr size_t kLongestCharacter = 4;
  if (is_read && length + kLongestCharacter < bytes.size()) return {bytes.data(), length};
  return value.As<Napi::String>();
}

std::vector<std::string> to_names(const Napi::Value& value) {
  if (!value.IsArray()) throw wrong_shape(value.Env(), "the names", "a list");
  const auto list = value.As<Napi::Array>();
  std::vector<std::string> names;
  for (uint32_t i = 0; i < list.Length(); i++) names.push_back(to_string(list.Get(i), "a name"));
  return names;
}

int to_int(const Napi::Value& value, const char* what) {
  double number = 0;
  if (napi_get_value_double(value.Env(), value, &number) != napi_ok) {
    throw wrong_shape(value.Env(), what, "an integer");
  }
  if (!(number >= INT32_MIN && number <= INT32_MAX) || number != static_cast<int>(number)) {
    throw wrong_shape(value.Env(), what, "a 32-bit integer");
  }
  return static_cast<int>(number);
}

int64_t to_int64(const Napi::Value& value, const char* what) {
  int64_t number = 0;
  bool lossless = false;
  if (napi_get_value_bigint_int64(value.Env(), value, &number, &lossless) != napi_ok || !lossless) {
    throw wrong_shape(value.Env(), what, "a 64-bit bigint");
  }
  return number;
}

uint64_t to_size(const Napi::Value& value, const char* what) {
  constexpr double kMost = 9007199254740992;  // 2^53
  double number = -1;
  if (napi_get_value_double(value.Env(), value, &number) == napi_ok && number >= 0 && number <= kMost)
    return static_cast<uint64_t>(number);
  throw wrong_shape(value.Env(), what, "a size in bytes");
}

bool to_bool(const Napi::Value& value, const char* what) {
  bool flag = false;
  if (napi_get_value_bool(value.Env(), value, &flag) == napi_ok) return flag;
  throw wrong_shape(value.Env(), what, "a boolean");
}

Fields::Fields(const Napi::Value& question, const char* what) {
  if (!question.IsObject()) throw wrong_shape(question.Env(), what, "an object");
  object_ = question.As<Napi::Object>();
}

namespace {

template <class Tag>
IdSet<Tag> checked_set(const Napi::Value& value, const char* what) {
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != napi_uint32_array) {
    throw wrong_shape(value.Env(), what, "a Uint32Array");
  }
  auto words32 = value.As<Napi::Uint32Array>();
  auto set = set_of_words<Tag>({words32.Data(), words32.ElementLength()});
  if (!set) throw Napi::RangeError::New(value.Env(), "a set has ids above its maximum");
  return *std::move(set);
}

}  // namespace

template <class Tag>
IdSet<Tag> to_id_set(const Napi::Value& value) {
  return checked_set<Tag>(value, "a set");
}

template <class Tag>
IdSet<Tag> Fields::id_set(const char* name) const {
  return checked_set<Tag>(object_.Get(name), name);
}

template <class Tag>
Napi::Uint32Array from_id_set(Napi::Env env, const IdSet<Tag>& set) {
  const size_t n = word_count(set);
  auto words32 = Napi::Uint32Array::New(env, n);
  copy_words(set, words32.Data());
  return words32;
}

WireReader wire_of(Napi::Env env) {
  const Environment& data = Environment::of(env);
  return {data.words, data.amounts};
}

void check(Napi::Env env, const WireReader& wire) {
  if (wire.failure() != nullptr) throw Napi::RangeError::New(env, wire.failure());
}

Napi::Value to_wire(Napi::Env env, std::span<const uint32_t> words) {
  std::span<uint32_t> wire = Environment::of(env).words;
  if (words.size() <= wire.size()) {
    std::ranges::copy(words, wire.data());
    return Napi::Number::New(env, static_cast<double>(words.size()));
  }
  auto array = Napi::Uint32Array::New(env, words.size());
  std::ranges::copy(words, array.Data());
  return array;
}

template <class Tag>
Napi::Value to_wire(Napi::Env env, const IdSet<Tag>& set) {
  const size_t n = word_count(set);
  std::span<uint32_t> wire = Environment::of(env).words;
  if (n > wire.size()) return from_id_set(env, set);
  copy_words(set, wire.data());
  return Napi::Number::New(env, static_cast<double>(n));
}

template Napi::Value to_wire<CpuTag>(Napi::Env, const CpuSet&);
template CpuSet Fields::id_set<CpuTag>(const char*) const;
template CpuSet to_id_set<CpuTag>(const Napi::Value&);
template NodeSet to_id_set<NodeTag>(const Napi::Value&);
template Napi::Uint32Array from_id_set<CpuTag>(Napi::Env, const CpuSet&);
template Napi::Uint32Array from_id_set<NodeTag>(Napi::Env, const NodeSet&);

}  // namespace numalign::addon
