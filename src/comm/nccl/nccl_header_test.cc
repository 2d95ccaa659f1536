// SPDX-License-Identifier: Apache-2.0
// nccl_api.h beside the library's own header: built and linked where that is.
#include <gtest/gtest.h>
#include <nccl.h>

#include <bit>
#include <cstddef>
#include <type_traits>

#include "comm/nccl/nccl_api.h"

namespace recmill {
namespace {

/// Whether values of the types are handed over alike.
template <class A, class B>
constexpr bool kAlike =
    sizeof(A) == sizeof(B) && alignof(A) == alignof(B) &&
    std::is_pointer_v<A> == std::is_pointer_v<B>&& std::is_class_v<A> == std::is_class_v<B>;

template <class Ours, class Theirs>
struct Same : std::false_type {};
template <class R, class... A, class Q, class... B>
requires(sizeof...(A) == sizeof...(B)) struct Same<R (*)(A...), Q (*)(B...)>
    : std::bool_constant<(kAlike<R, Q> && ... && kAlike<A, B>)> {
};

/// A table of the functions that the library is linked with; it does not compile where one differs.
template <class Function>
void fill(auto& ours, Function* theirs) {
  static_assert(Same<std::remove_reference_t<decltype(ours)>, Function*>::value);
  ours = std::bit_cast<std::remove_reference_t<decltype(ours)>>(theirs);
}
nccl::Api linked() {
  nccl::Api api;
  fill(api.version, &ncclGetVersion);
  fill(api.error_string, &ncclGetErrorString);
  fill(api.unique_id, &ncclGetUniqueId);
  fill(api.init, &ncclCommInitRankConfig);
  fill(api.finalize, &ncclCommFinalize);
  fill(api.destroy, &ncclCommDestroy);
  fill(api.abort, &ncclCommAbort);
  fill(api.async_error, &ncclCommGetAsyncError);
  fill(api.group_start, &ncclGroupStart);
  fill(api.group_end, &ncclGroupEnd);
  fill(api.send, &ncclSend);
  fill(api.receive, &ncclRecv);
  fill(api.broadcast, &ncclBroadcast);
  return api;
}

static_assert(nccl::kInvalidArgument == ncclInvalidArgument);
static_assert(nccl::kInvalidUsage == ncclInvalidUsage);
static_assert(nccl::kRemoteError == ncclRemoteError);
static_assert(nccl::kInProgress == ncclInProgress);
static_assert(nccl::kBytes == ncclInt8);
static_assert(sizeof(nccl::UniqueId) == sizeof(ncclUniqueId));
static_assert(sizeof(nccl::Config) <= sizeof(ncclConfig_t));
static_assert(offsetof(nccl::Config, size) == offsetof(ncclConfig_t, size));
static_assert(offsetof(nccl::Config, magic) == offsetof(ncclConfig_t, magic));
static_assert(offsetof(nccl::Config, version) == offsetof(ncclConfig_t, version));
static_assert(offsetof(nccl::Config, blocking) == offsetof(ncclConfig_t, blocking));
static_assert(offsetof(nccl::Config, unset) == offsetof(ncclConfig_t, cgaClusterSize));

TEST(NcclHeader, IsWhatIsDeclaredHere) {
  const nccl::Api api = linked();
  int version = 0;
  ASSERT_EQ(api.version(&version), 0);
  EXPECT_GE(version, NCCL_VERSION(2, 14, 0));
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  const nccl::Config ours;
  EXPECT_EQ(ours.magic, theirs.magic);
  EXPECT_EQ(ours.unset, theirs.cgaClusterSize);
  EXPECT_EQ(ours.version, NCCL_VERSION(2, 14, 0));
  EXPECT_STREQ(api.error_string(nccl::kInProgress), ncclGetErrorString(ncclInProgress));
}

}  // namespace
}  // namespace recmill
