// Checksums of texts and bytes.
#include "addon/convert.h"
#include "addon/environment.h"
#include "core/crc32.h"

namespace numalign::addon {
namespace {

std::string_view to_bytes(const Napi::Value& value) {
  if (!value.IsBuffer()) throw Napi::TypeError::New(value.Env(), "the bytes must be a Buffer");
  const auto bytes = value.As<Napi::Buffer<char>>();
  return {bytes.Data(), bytes.Length()};
}

// (text or bytes, the checksum of what stands before them, or undefined)
Napi::Value crc32_binding(const Napi::CallbackInfo& info) {
  const auto before =
      static_cast<uint32_t>(info[1].IsUndefined() ? 0 : to_size(info[1], "the checksum before"));
  const uint32_t sum =
      info[0].IsString() ? crc32(to_string(info[0], "the text"), before) : crc32(to_bytes(info[0]), before);
  return Napi::Number::New(info.Env(), sum);
}

}  // namespace

void export_checksums(Napi::Env env, Napi::Object exports) {
  exports["crc32"] = Napi::Function::New<crc32_binding>(env);
}

}  // namespace numalign::addon
