// SPDX-License-Identifier: Apache-2.0
// A stand-in for libnccl.so.2, of the functions that load_nccl() finds: what they do is what tests
// write into fake_nccl.
#include "comm/nccl/testing/fake_nccl.h"

using recmill::nccl::Comm;
using recmill::nccl::Config;
using recmill::nccl::Result;
using recmill::nccl::Stream;
using recmill::nccl::UniqueId;

extern "C" {

recmill::testing::FakeNccl fake_nccl;

Result ncclGetVersion(int* version) {
  *version = fake_nccl.version;
  return 0;
}
const char* ncclGetErrorString(Result error) {
  return fake_nccl.api.error_string(error);
}
Result ncclGetUniqueId(UniqueId* id) {
  return fake_nccl.api.unique_id(id);
}
Result ncclCommInitRankConfig(Comm* comm, int ranks, UniqueId id, int rank, Config* config) {
  return fake_nccl.api.init(comm, ranks, id, rank, config);
}
Result ncclCommFinalize(Comm comm) {
  return fake_nccl.api.finalize(comm);
}
Result ncclCommDestroy(Comm comm) {
  return fake_nccl.api.destroy(comm);
}
Result ncclCommAbort(Comm comm) {
  return fake_nccl.api.abort(comm);
}
Result ncclCommGetAsyncError(Comm comm, Result* state) {
  return fake_nccl.api.async_error(comm, state);
}
Result ncclGroupStart() {
  return fake_nccl.api.group_start();
}
Result ncclGroupEnd() {
  return fake_nccl.api.group_end();
}
Result ncclSend(const void* data, size_t bytes, int type, int to, Comm comm, Stream stream) {
  return fake_nccl.api.send(data, bytes, type, to, comm, stream);
}
Result ncclRecv(void* data, size_t bytes, int type, int from, Comm comm, Stream stream) {
  return fake_nccl.api.receive(data, bytes, type, from, comm, stream);
}
Result ncclBroadcast(const void* from, void* to, size_t bytes, int type, int root, Comm comm,
                     Stream stream) {
  return fake_nccl.api.broadcast(from, to, bytes, type, root, comm, stream);
}

}  // extern "C"
