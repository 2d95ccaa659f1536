// SPDX-License-Identifier: Apache-2.0
#include "comm/nccl/nccl_library.h"

#include <dlfcn.h>

#include <type_traits>

namespace recmill {
namespace {

constexpr int kLeastVersion = 21400;  // from which on communicators need not block

/// "2.8.4": until then a version was a thousand times its first number.
std::string version_text(int version) {
  const int unit = version < 10000 ? 1000 : 10000;
  return std::to_string(version / unit) + "." + std::to_string(version % unit / 100) + "." +
         std::to_string(version % 100);
}

}  // namespace

Result<nccl::Api> load_nccl(const std::string& library) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return Status::Failed("no NCCL: " + std::string(dlerror()));
  nccl::Api api;
  std::string missing;
  const auto find = [&](auto& function, const char* symbol) {
    void* found = dlsym(handle, symbol);
    if (found == nullptr && missing.empty()) missing = symbol;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
  };
  find(api.version, "ncclGetVersion");
  int version = 0;
  if (api.version != nullptr && api.version(&version) == 0 && version < kLeastVersion)
    return Status::Failed(library + " is NCCL " + version_text(version) + ": " +
                          version_text(kLeastVersion) + " is the least");
  find(api.error_string, "ncclGetErrorString");
  find(api.unique_id, "ncclGetUniqueId");
  find(api.init, "ncclCommInitRankConfig");
  find(api.finalize, "ncclCommFinalize");
  find(api.destroy, "ncclCommDestroy");
  find(api.abort, "ncclCommAbort");
  find(api.async_error, "ncclCommGetAsyncError");
  find(api.group_start, "ncclGroupStart");
  find(api.group_end, "ncclGroupEnd");
  find(api.send, "ncclSend");
  find(api.receive, "ncclRecv");
  find(api.broadcast, "ncclBroadcast");
  if (!missing.empty()) return Status::Failed("NCCL, " + library + ", has no " + missing);
  return api;
}

}  // namespace recmill
