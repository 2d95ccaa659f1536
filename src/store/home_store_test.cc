// SPDX-License-Identifier: Apache-2.0
#include "store/testing/home_store.h"

#include <gtest/gtest.h>

#include "store/store_contract.h"
#include "store/tables/table_rows.h"
#include "store/testing/forwarding_store.h"
#include "table/home/embedded_home.h"
#include "table/home/testing/late_home.h"

namespace recmill::store {
namespace {

/// A home in the process, and its one writer.
struct Embedded {
  Embedded(std::vector<table::EmbeddingTable> rows, ThreadPool& pool, uint64_t)
      : tables(std::move(rows)), home(tables, 1, pool) {}
  table::RowHome& writer() { return home.writer(0); }
  std::vector<table::EmbeddingTable> tables;
  table::EmbeddedHome home;
};

/// The same, late.
struct Late {
  Late(std::vector<table::EmbeddingTable> rows, ThreadPool& pool, uint64_t seed)
      : embedded(std::move(rows), pool, seed), late(embedded.writer(), seed) {}
  table::RowHome& writer() { return late; }
  Embedded embedded;
  table::testing::LateHome late;
};

/// A store and its home, which goes last.
template <class Home>
class StoreAndHome final : private Home, public testing::ForwardingStore {
 public:
  StoreAndHome(const ModelSpec& model, uint64_t seed, std::vector<table::EmbeddingTable> rows,
               ThreadPool& pool)
      : Home(std::move(rows), pool, seed),
        ForwardingStore(std::make_unique<testing::HomeStore>(model, seed, Home::writer())) {}
};

template <class Home>
struct HomeFixture {
  static constexpr bool kManyRanks = false;
  static Result<std::unique_ptr<EmbeddingStore>> make(const ModelSpec& model, uint64_t seed,
                                                      Communicator&, ThreadPool& pool) {
    RECMILL_ASSIGN_OR_RETURN(auto tables, create_tables(model, seed, 0, 1, pool));
    return std::unique_ptr<EmbeddingStore>(
        std::make_unique<StoreAndHome<Home>>(model, seed, std::move(tables), pool));
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(OverEmbeddedHome, StoreContract, HomeFixture<Embedded>);
INSTANTIATE_TYPED_TEST_SUITE_P(OverLateHome, StoreContract, HomeFixture<Late>);

}  // namespace
}  // namespace recmill::store
