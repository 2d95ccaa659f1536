// SPDX-License-Identifier: Apache-2.0
// Of the C interface of NCCL (libnccl.so.2, from 2.14 on) what is called: types, numbers and names
// are its own.
#pragma once

#include <climits>
#include <cstddef>

namespace recmill::nccl {

using Result = int;  // ncclResult_t; 0: it went well
constexpr Result kInvalidArgument = 4, kInvalidUsage = 5, kRemoteError = 6, kInProgress = 7;

using Comm = void*;        // ncclComm_t
using Stream = void*;      // cudaStream_t
constexpr int kBytes = 0;  // ncclDataType_t: ncclInt8

struct UniqueId {
  char bytes[128] = {};
};

/// ncclConfig_t as of version 2.14, which later versions take: what it does not have is as they
/// choose.
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 0;     // a call may return kInProgress; async_error() says when it has ended
  int unset = INT_MIN;  // what the size covers besides
};

/// Each is called as the library's function of the name beside it.
struct Api {
  Result (*version)(int*);                                              // ncclGetVersion
  const char* (*error_string)(Result);                                  // ncclGetErrorString
  Result (*unique_id)(UniqueId*);                                       // ncclGetUniqueId
  Result (*init)(Comm*, int ranks, UniqueId, int rank, Config*);        // ncclCommInitRankConfig
  Result (*finalize)(Comm);                                             // ncclCommFinalize
  Result (*destroy)(Comm);                                              // ncclCommDestroy
  Result (*abort)(Comm);                                                // ncclCommAbort
  Result (*async_error)(Comm, Result*);                                 // ncclCommGetAsyncError
  Result (*group_start)();                                              // ncclGroupStart
  Result (*group_end)();                                                // ncclGroupEnd
  Result (*send)(const void*, size_t, int type, int to, Comm, Stream);  // ncclSend
  Result (*receive)(void*, size_t, int type, int from, Comm, Stream);   // ncclRecv
  Result (*broadcast)(const void* from, void* to, size_t, int type, int root, Comm,
                      Stream);  // ncclBroadcast
};

}  // namespace recmill::nccl
