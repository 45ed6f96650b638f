#include "addon/convert.h"

#include <algorithm>

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
IdSet<Tag> id_set_of(Napi::Env env, std::span<const uint32_t> words32) {
  constexpr size_t kMaxWords = IdSet<Tag>::kMaxId / 32 + 1;
  size_t n = words32.size();
  if (n > kMaxWords) throw Napi::RangeError::New(env, "a set has ids above its maximum");
  SmallWords words((n + 1) / 2);
  for (size_t i = 0; i < n; i++) words[i / 2] |= static_cast<uint64_t>(words32[i]) << (i % 2 * 32);
  return IdSet<Tag>::from_words(std::move(words));
}

template <class Tag>
size_t words_in(const IdSet<Tag>& set) {
  std::span<const uint64_t> words = set.words();
  return words.size() * 2 - (!words.empty() && words.back() >> 32 == 0 ? 1 : 0);
}

template <class Tag>
void copy_words(const IdSet<Tag>& set, uint32_t* to, size_t n) {
  for (size_t i = 0; i < n; i++) to[i] = static_cast<uint32_t>(set.words()[i / 2] >> (i % 2 * 32));
}

template <class Word>
std::span<const Word> taken_from(std::span<const Word>& left, const Napi::Value& count) {
  int n = to_int(count, "a number of words");
  if (n < 0 || static_cast<size_t>(n) > left.size()) {
    throw Napi::RangeError::New(count.Env(), "the wire has fewer words");
  }
  std::span<const Word> taken = left.first(static_cast<size_t>(n));
  left = left.subspan(static_cast<size_t>(n));
  return taken;
}

}  // namespace

namespace {

template <class Tag>
IdSet<Tag> checked_set(const Napi::Value& value, const char* what) {
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != napi_uint32_array) {
    throw wrong_shape(value.Env(), what, "a Uint32Array");
  }
  auto words32 = value.As<Napi::Uint32Array>();
  return id_set_of<Tag>(value.Env(), {words32.Data(), words32.ElementLength()});
}

}  // namespace

template <class Tag>
IdSet<Tag> to_id_set(const Napi::Value& value) {
  return checked_set<Tag>(value, "a set");
}

CpuSet to_cpu_set(Napi::Env env, std::span<const uint32_t> words) { return id_set_of<CpuTag>(env, words); }

template <class Tag>
IdSet<Tag> Fields::id_set(const char* name) const {
  return checked_set<Tag>(object_.Get(name), name);
}

template <class Tag>
Napi::Uint32Array from_id_set(Napi::Env env, const IdSet<Tag>& set) {
  size_t n = words_in(set);
  auto words32 = Napi::Uint32Array::New(env, n);
  copy_words(set, words32.Data(), n);
  return words32;
}

WireReader::WireReader(Napi::Env env)
    : env_(env), words_(Environment::of(env).words), amounts_(Environment::of(env).amounts) {}

std::span<const uint32_t> WireReader::words(const Napi::Value& count) { return taken_from(words_, count); }

std::span<const double> WireReader::amounts(const Napi::Value& count) { return taken_from(amounts_, count); }

template <class Tag>
IdSet<Tag> WireReader::id_set(const Napi::Value& count) {
  return id_set_of<Tag>(env_, words(count));
}

template <class Tag>
uint32_t append_words(std::vector<uint32_t>& words, const IdSet<Tag>& set) {
  size_t n = words_in(set);
  words.resize(words.size() + n);
  copy_words(set, words.data() + words.size() - n, n);
  return static_cast<uint32_t>(n);
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
  size_t n = words_in(set);
  std::span<uint32_t> wire = Environment::of(env).words;
  if (n > wire.size()) return from_id_set(env, set);
  copy_words(set, wire.data(), n);
  return Napi::Number::New(env, static_cast<double>(n));
}

template uint32_t append_words<CpuTag>(std::vector<uint32_t>&, const CpuSet&);
template CpuSet WireReader::id_set<CpuTag>(const Napi::Value&);
template Napi::Value to_wire<CpuTag>(Napi::Env, const CpuSet&);
template CpuSet Fields::id_set<CpuTag>(const char*) const;
template CpuSet to_id_set<CpuTag>(const Napi::Value&);
template NodeSet to_id_set<NodeTag>(const Napi::Value&);
template Napi::Uint32Array from_id_set<CpuTag>(Napi::Env, const CpuSet&);
template Napi::Uint32Array from_id_set<NodeTag>(Napi::Env, const NodeSet&);

}  // namespace numalign::addon
