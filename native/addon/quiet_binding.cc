// Quiet: the CPUs that take over work from quiet CPUs, and the cache ways of grants.
#include "addon/convert.h"
#include "addon/environment.h"
#include "addon/topology_binding.h"
#include "core/cache_ways.h"
#include "core/housekeeping.h"

namespace numalign::addon {
namespace {

// The numbers before the requests, and of each request; lib/quiet/resctrl/cache-ways.ts has the
// same.
constexpr size_t kHeader = 6;
constexpr size_t kRequest = 2;
constexpr uint32_t kMostWays = 32;

// (topology, base, quiet)
Napi::Value housekeeping_binding(const Napi::CallbackInfo& info) {
  return from_id_set(info.Env(), housekeeping_cpus(to_topology(info[0]), to_id_set<CpuTag>(info[1]),
                                                   to_id_set<CpuTag>(info[2])));
}

// (question)
Napi::Value cache_ways_binding(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  if (!info[0].IsTypedArray() || info[0].As<Napi::TypedArray>().TypedArrayType() != napi_uint32_array) {
    throw Napi::TypeError::New(env, "a question about cache ways must be a Uint32Array");
  }
  auto words = info[0].As<Napi::Uint32Array>();
  size_t n = words.ElementLength();
  if (n < kHeader || (n - kHeader) % kRequest != 0 || words[1] < 1 || words[1] > kMostWays) {
    throw Napi::RangeError::New(env, "a question about cache ways has another length");
  }
  CacheWaysQuestion question{words[0], static_cast<int>(words[1]), words[2], words[3], words[4], words[5],
                             {}};
  for (size_t i = kHeader; i < n; i += kRequest) {
    if (words[i] > kMostWays) throw Napi::RangeError::New(env, "a request is for at most 32 ways");
    question.requests.push_back({static_cast<int>(words[i]), words[i + 1]});
  }
  CacheWays ways = cache_ways(question);
  auto answer = Napi::Uint32Array::New(env, 2 + ways.masks.size());
  answer[0] = ways.rest;
  answer[1] = static_cast<uint32_t>(ways.most);
  for (size_t i = 0; i < ways.masks.size(); i++) answer[2 + i] = ways.masks[i];
  return answer;
}

}  // namespace

void export_quiet(Napi::Env env, Napi::Object exports) {
  exports["housekeepingCpus"] = Napi::Function::New<housekeeping_binding>(env);
  exports["cacheWays"] = Napi::Function::New<cache_ways_binding>(env);
}

}  // namespace numalign::addon
