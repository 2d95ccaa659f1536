// SPDX-License-Identifier: Apache-2.0
#include "bench/cost_model/interface_counters.h"

#include <gtest/gtest.h>

#include <string>

namespace recmill::bench {
namespace {

const std::string kHeadings =
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop "
    "fifo colls carrier compressed\n";
const std::string kLoopback = "    lo: 500 5 0 0 0 0 0 0 500 5 0 0 0 0 0 0\n";

TEST(InterfaceCounters, sum_what_all_interfaces_but_the_loopback_have_sent) {
  const std::string text = kHeadings + kLoopback + "  eth0: 11 2 0 0 0 0 0 0 70 3 0 0 0 0 0 0\n" +
                           "eth1:5000000000 2 0 0 0 0 0 0 6000000000 3 0 0 0 0 0 0\n";
  EXPECT_EQ(sent_by_interfaces(text), 6000000070u);
}

TEST(InterfaceCounters, are_none_where_there_is_the_loopback_alone) {
  EXPECT_EQ(sent_by_interfaces(kHeadings + kLoopback), std::nullopt);
  EXPECT_EQ(sent_by_interfaces(""), std::nullopt);
}

}  // namespace
}  // namespace recmill::bench
