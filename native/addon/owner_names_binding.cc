#include <string>
#include <utility>

#include "addon/convert.h"
#include "addon/environment.h"
#include "addon/lock_object.h"
#include "platform/files/owner_names.h"

namespace numalign::addon {
namespace {

class OwnerNamesObject : public Napi::ObjectWrap<OwnerNamesObject> {
 public:
  // (owners, notes, path of the state folder)
  explicit OwnerNamesObject(const Napi::CallbackInfo& info)
      : ObjectWrap(info), path_(to_string(info[2], "the path")) {
    for (int i : {0, 1}) (void)to_folder(info[i], "folder");
    owners_ = Napi::Persistent(info[0].As<Napi::Object>());
    notes_ = Napi::Persistent(info[1].As<Napi::Object>());
  }
  static Napi::Function define(Napi::Env env) {
    return DefineClass(env, "OwnerNames",
                       {
                           InstanceMethod<&OwnerNamesObject::are_kept>("areKept"),
                           InstanceMethod<&OwnerNamesObject::are_noted>("areNoted"),
                           InstanceMethod<&OwnerNamesObject::confirm>("confirm"),
                           InstanceMethod<&OwnerNamesObject::begin_change>("beginChange"),
                           InstanceMethod<&OwnerNamesObject::end_change>("endChange"),
                           InstanceMethod<&OwnerNamesObject::note_change>("noteChange"),
                           InstanceMethod<&OwnerNamesObject::begin_look>("beginLook"),
                           InstanceMethod<&OwnerNamesObject::end_look>("endLook"),
                       });
  }

 private:
  // A folder object may become another folder.
  OwnerFolders folders() const {
    return {*to_folder(owners_.Value(), "folder"), *to_folder(notes_.Value(), "folder"), path_};
  }
  Napi::Value are_kept(const Napi::CallbackInfo& info) {
    return Napi::Boolean::New(info.Env(), names_.are_kept(folders()));
  }
  Napi::Value are_noted(const Napi::CallbackInfo& info) {
    const std::optional<bool> answer = names_.are_noted(folders());
    return answer ? Napi::Boolean::New(info.Env(), *answer) : info.Env().Undefined();
  }
  // (sum)
  Napi::Value confirm(const Napi::CallbackInfo& info) {
    const uint64_t sum = to_size(info[0], "the sum");
    return Napi::Boolean::New(info.Env(), names_.confirm(static_cast<uint32_t>(sum)));
  }
  // (names)
  Napi::Value begin_change(const Napi::CallbackInfo& info) {
    return Napi::Boolean::New(info.Env(), names_.begin_change(folders(), to_names(info[0])));
  }
  Napi::Value end_change(const Napi::CallbackInfo& info) {
    return Napi::Boolean::New(info.Env(), names_.end_change(folders()));
  }
  void note_change(const Napi::CallbackInfo&) { names_.note_change(folders()); }
  Napi::Value begin_look(const Napi::CallbackInfo& info) {
    return Napi::Boolean::New(info.Env(), names_.begin_look(folders()));
  }
  void end_look(const Napi::CallbackInfo&) { names_.end_look(folders()); }

  const std::string path_;
  Napi::ObjectReference owners_;
  Napi::ObjectReference notes_;
  OwnerNames names_;
};

}  // namespace

void export_owner_names(Napi::Env env, Napi::Object exports) {
  exports["OwnerNames"] = OwnerNamesObject::define(env);
}

}  // namespace numalign::addon
