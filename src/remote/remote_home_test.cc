// SPDX-License-Identifier: Apache-2.0
// Client and server with their threads, over streams within the process.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "remote/row_service.h"
#include "remote/testing/memory_transport.h"
#include "remote/testing/options_of_tables.h"
#include "remote/testing/patient_home.h"
#include "table/home/row_home_contract.h"

namespace recmill::remote {
namespace {

/// `kBreaks`: all streams are cut off again and again.
template <int kServers, bool kBreaks>
class ThreadsFixture {
 public:
  static constexpr bool kManyThreads = true;
  ThreadsFixture(std::vector<table::EmbeddingTable>& tables, int writers, ThreadPool&, uint64_t) {
    RowClientOptions options = testing::options_of(tables, writers, kServers);
    for (int s = 0; s < kServers; ++s) {
      services_.emplace_back(s + 1);
      options.addresses.push_back("server" + std::to_string(s));
      servers_.push_back(*transport_.listen(options.addresses.back(), {}, services_.back()));
    }
    for (options.rank = 0; options.rank < writers; ++options.rank)
      homes_.emplace_back(options, transport_, std::chrono::microseconds(kBreaks ? 500 : 100));
    if (kBreaks)
      breaker_ = std::thread([this] {
        while (!stop_) {
          std::this_thread::sleep_for(std::chrono::milliseconds(100));
          transport_.cut_off();
        }
      });
  }
  ~ThreadsFixture() {
    stop_ = true;
    if (breaker_.joinable()) breaker_.join();
    homes_.clear();
  }
  table::RowHome& writer(int number) { return homes_[static_cast<size_t>(number)].home(); }

 private:
  testing::MemoryTransport transport_;
  std::deque<RowService> services_;
  std::vector<std::unique_ptr<MessageServer>> servers_;
  std::deque<testing::PatientHome> homes_;
  std::atomic<bool> stop_{false};
  std::thread breaker_;
};

}  // namespace
}  // namespace recmill::remote

namespace recmill::table {
namespace {
using TwoServers = remote::ThreadsFixture<2, false>;
using CutOff = remote::ThreadsFixture<2, true>;
INSTANTIATE_TYPED_TEST_SUITE_P(TwoServers, RowHomeContract, TwoServers);
INSTANTIATE_TYPED_TEST_SUITE_P(CutOff, RowHomeContract, CutOff);
}  // namespace
}  // namespace recmill::table
