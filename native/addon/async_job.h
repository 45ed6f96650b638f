// run_async: runs work on libuv's pool, and settles a promise with its Result.
#pragma once

#include <napi.h>

#include <functional>
#include <optional>

#include "addon/convert.h"
#include "platform/threads/affinity.h"
#include "platform/threads/thread_roles.h"

namespace numalign::addon {

template <class T>
class AsyncJob : public Napi::AsyncWorker {
 public:
  using Work = std::function<Result<T>()>;
  using Convert = std::function<Napi::Value(Napi::Env, T)>;

  AsyncJob(Napi::Env env, Work work, Convert convert)
      : AsyncWorker(env, "numalign"), deferred_(env), work_(std::move(work)), convert_(std::move(convert)) {}
  Napi::Promise promise() const { return deferred_.Promise(); }

  void Execute() override {
    ThreadRoles::of_this_process().set(current_thread_id(), ThreadRole::kPool);
    result_ = work_();
  }
  void OnOK() override {
    if (result_->ok()) {
      deferred_.Resolve(convert_(Env(), std::move(*result_).value()));
    } else {
      deferred_.Reject(error_value(Env(), result_->error()));
    }
  }
  void OnError(const Napi::Error& error) override { deferred_.Reject(error.Value()); }

 private:
  Napi::Promise::Deferred deferred_;
  Work work_;
  Convert convert_;
  std::optional<Result<T>> result_;
};

// `work` runs on a pool thread and must not touch JavaScript; `convert` runs on the environment's
// thread.
template <class T>
Napi::Promise run_async(Napi::Env env, typename AsyncJob<T>::Work work,
                        typename AsyncJob<T>::Convert convert) {
  auto* job = new AsyncJob<T>(env, std::move(work), std::move(convert));  // deletes itself when done
  Napi::Promise promise = job->promise();
  job->Queue();
  return promise;
}

}  // namespace numalign::addon
