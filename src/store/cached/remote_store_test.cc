// SPDX-License-Identifier: Apache-2.0
// Caches whose rows are at servers of this process, over Arrow Flight.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "remote/flight/flight_library.h"
#include "remote/remote_home.h"
#include "remote/row_service.h"
#include "store/cached/testing/cached_fixture.h"
#include "store/cached/testing/sharded_cached_fixture.h"
#include "store/store_contract.h"

namespace recmill::store {
namespace {

/// Servers, and a rank's home there, which ends before them.
struct Rows : std::enable_shared_from_this<Rows> {
  std::vector<std::unique_ptr<remote::RowService>> services;
  std::vector<std::unique_ptr<remote::MessageServer>> servers;
};

Result<std::shared_ptr<Rows>> start(int servers) {
  RECMILL_ASSIGN_OR_RETURN(remote::Transport * transport, remote::flight_transport());
  auto rows = std::make_shared<Rows>();
  for (int s = 0; s < servers; ++s) {
    rows->services.push_back(std::make_unique<remote::RowService>(s + 1));
    RECMILL_ASSIGN_OR_RETURN(auto server,
                             transport->listen("127.0.0.1:0", {}, *rows->services.back()));
    rows->servers.push_back(std::move(server));
  }
  return rows;
}

Result<std::shared_ptr<table::RowHome>> connect(const ModelSpec& model, uint64_t seed,
                                                const std::shared_ptr<Rows>& rows, int rank,
                                                int ranks) {
  RECMILL_ASSIGN_OR_RETURN(remote::Transport * transport, remote::flight_transport());
  remote::RowClientOptions options;
  options.greeting.run = "run";
  options.greeting.ranks = ranks;
  options.greeting.servers = static_cast<int>(rows->servers.size());
  options.greeting.seed = seed;
  options.greeting.tables = model.tables;
  options.rank = options.image_share = rank;
  options.image_shares = ranks;
  for (const auto& server : rows->servers)
    options.addresses.push_back("127.0.0.1:" + std::to_string(server->port()));
  struct Owner {
    Owner(const remote::RowClientOptions& of, remote::Transport& over, std::shared_ptr<Rows> at)
        : rows(std::move(at)), home(of, over, {}) {}
    std::shared_ptr<Rows> rows;
    remote::RemoteHome home;
  };
  auto owner = std::make_shared<Owner>(options, *transport, rows);
  RECMILL_RETURN_IF_ERROR(owner->home.wait_until_begun());
  return std::shared_ptr<table::RowHome>{owner, &owner->home};
}

template <int kServers, int64_t kLookahead, int64_t kPrefetch>
struct RemoteFixture : testing::CachedFixture<kLookahead, kPrefetch, false> {
  static Result<std::unique_ptr<EmbeddingStore>> make(const ModelSpec& model, uint64_t seed,
                                                      Communicator&, ThreadPool& pool) {
    RECMILL_ASSIGN_OR_RETURN(const auto rows, start(kServers));
    RECMILL_ASSIGN_OR_RETURN(auto home, connect(model, seed, rows, 0, 1));
    return std::unique_ptr<EmbeddingStore>(std::make_unique<CachedStore>(
        model, seed, std::move(home), pool, HostSlotStore::maker(seed, pool, {})));
  }
};

/// Ranks of one job share servers: rank 0 starts them and tells the others where.
template <int kServers, CacheDesign kDesign, int64_t kLookahead, int64_t kPrefetch>
struct ShardedRemoteFixture : testing::ShardedCachedFixture<kDesign, kLookahead, kPrefetch, false> {
  static Result<std::unique_ptr<EmbeddingStore>> make(const ModelSpec& model, uint64_t seed,
                                                      Communicator& communicator,
                                                      ThreadPool& pool) {
    const int rank = communicator.rank(), ranks = communicator.ranks();
    std::shared_ptr<Rows> rows;
    std::shared_ptr<table::RowHome> home;
    if (rank == 0) {
      RECMILL_ASSIGN_OR_RETURN(rows, start(kServers));
      RECMILL_ASSIGN_OR_RETURN(home, connect(model, seed, rows, 0, ranks));
    }
    Rows* at = rows.get();
    RECMILL_ASSIGN_OR_RETURN(const Received received,
                             communicator.all_gather(std::as_bytes(std::span(&at, 1))));
    std::memcpy(&at, received.from(0).data(), sizeof(at));
    rows = at->shared_from_this();
    RECMILL_RETURN_IF_ERROR(communicator.barrier());
    if (rank > 0) {
      RECMILL_ASSIGN_OR_RETURN(home, connect(model, seed, rows, rank, ranks));
    }
    CacheHomeRows of(std::move(home));
    of.is_shared = true;
    RECMILL_ASSIGN_OR_RETURN(auto store,
                             ShardedCachedStore::create(model, seed, of, communicator, pool, {}));
    return std::unique_ptr<EmbeddingStore>(std::move(store));
  }
};

using OneServer = RemoteFixture<1, 7, 1>;
using ThreeServers = RemoteFixture<3, 200, 4>;
using Forward = ShardedRemoteFixture<2, CacheDesign::forward, 7, 1>;
using Lrpp = ShardedRemoteFixture<1, CacheDesign::lrpp, 2, 2>;
INSTANTIATE_TYPED_TEST_SUITE_P(OneServer, StoreContract, OneServer);
INSTANTIATE_TYPED_TEST_SUITE_P(ThreeServers, StoreContract, ThreeServers);
INSTANTIATE_TYPED_TEST_SUITE_P(Forward, StoreContract, Forward);
INSTANTIATE_TYPED_TEST_SUITE_P(Lrpp, StoreContract, Lrpp);

}  // namespace
}  // namespace recmill::store
