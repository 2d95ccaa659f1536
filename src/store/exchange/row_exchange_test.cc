// SPDX-License-Identifier: Apache-2.0
#include "store/exchange/row_exchange.h"

#include <gtest/gtest.h>

#include "comm/testing/delayed_communicator.h"
#include "comm/threads.h"

namespace recmill::store {
namespace {

/// A few rows or many, or none, as if by chance.
RowExchange::Shape shape_of(int round, int from, int to) {
  const int64_t rows = (round * 7 + from * 5 + to * 3) % 4 == 0 ? 0 : (round * 131 + from) % 97;
  return {{rows, 1, to}, {from + 1, 3, 2}};
}
int64_t word_of(int round, int from, int to, int64_t i) {
  return ((round * 100 + from) * 100 + to) * 1000 + i;
}

void fill(RowMessage& message, int round, int from, int to) {
  for (size_t group = 0; group < message.groups(); ++group) {
    const auto rows = message.rows(group);
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i] = word_of(round, from, to, static_cast<int64_t>(i));
      message.values(group)[i] = static_cast<float>(rows[i] % 1024);
    }
  }
}

TEST(RowExchange, brings_every_message_whether_memory_is_shared_or_not) {
  for (const bool shared : {false, true}) {
    for (const int ranks : {1, 2, 3, 8}) {
      const Status status = run_ranks(ranks, [&](Communicator& inner) -> Status {
        DelayedCommunicator communicator(inner, 3);
        RowExchange mail(communicator, shared);
        const int own = communicator.rank();
        for (int round = 0; round < 40; ++round) {  // of which some need more room than before
          std::vector<RowExchange::Shape> shapes;
          for (int to = 0; to < ranks; ++to) shapes.push_back(shape_of(round, own, to));
          mail.begin(shapes);
          for (int to = 0; to < ranks; ++to) fill(mail.to(to), round, own, to);
          RECMILL_RETURN_IF_ERROR(mail.exchange());
          for (int from = 0; from < ranks; ++from) {
            const RowExchange::Shape shape = shape_of(round, from, own);
            RECMILL_ASSIGN_OR_RETURN(const RowMessage message, mail.from(from, shape.widths));
            for (size_t group = 0; group < message.groups(); ++group) {
              EXPECT_EQ(message.count(group), shape.counts[group]);
              for (int64_t i = 0; i < message.count(group); ++i) {
                EXPECT_EQ(message.rows(group)[i], word_of(round, from, own, i));
                EXPECT_EQ(message.values(group)[i],
                          static_cast<float>(message.rows(group)[i] % 1024));
              }
            }
          }
        }
        return {};
      });
      EXPECT_TRUE(status.ok()) << status.message();
    }
  }
}

TEST(RowExchange, counts_what_others_get_the_same_way_whether_memory_is_shared_or_not) {
  uint64_t bytes[2] = {};
  for (const bool shared : {false, true}) {
    const Status status = run_ranks(2, [&](Communicator& communicator) -> Status {
      RowExchange mail(communicator, shared);
      const RowExchange::Shape shape{{5}, {4}};
      for (int round = 0; round < 2; ++round) {  // the first one makes room
        const uint64_t before = communicator.traffic().sent + communicator.traffic().received;
        mail.begin(std::vector{shape, shape});
        RECMILL_RETURN_IF_ERROR(mail.exchange());
        if (communicator.rank() == 0)
          bytes[shared] = communicator.traffic().sent + communicator.traffic().received - before;
      }
      return {};
    });
    EXPECT_TRUE(status.ok()) << status.message();
  }
  EXPECT_EQ(bytes[0], static_cast<uint64_t>(2 * RowMessage::bytes_of(std::vector<int64_t>{5},
                                                                     std::vector<int64_t>{4})));
  EXPECT_EQ(bytes[1], bytes[0]);
}

}  // namespace
}  // namespace recmill::store
