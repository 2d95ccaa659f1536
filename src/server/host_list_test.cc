// SPDX-License-Identifier: Apache-2.0
#include "server/host_list.h"

#include <gtest/gtest.h>

namespace recmill::server {
namespace {

TEST(HostList, reads_names_slots_and_comments) {
  const auto hosts = parse_hosts("# the rack\n\nh0 slots=2\n  h1   # one rank\nh2 slots=8\n", "f");
  ASSERT_TRUE(hosts.ok()) << hosts.status().message();
  ASSERT_EQ(hosts->size(), 3u);
  EXPECT_EQ((*hosts)[0].slots, 2);
  EXPECT_EQ((*hosts)[1].name, "h1");
  EXPECT_EQ((*hosts)[1].slots, 1);
  EXPECT_EQ(room(*hosts), 11);
  EXPECT_EQ(place_ranks(*hosts, 4), (std::vector<int>{2, 1, 1}));
  EXPECT_EQ(place_ranks(*hosts, 1), (std::vector<int>{1, 0, 0}));
}

TEST(HostList, names_the_line_that_is_wrong) {
  const auto message = [](const std::string& text) {
    const auto hosts = parse_hosts(text, "hosts.txt");
    EXPECT_EQ(hosts.status().code(), Status::Code::bad_request);
    return hosts.status().message();
  };
  EXPECT_EQ(message("a\nb cpus=3\n"), "hosts.txt:2: 'cpus=3' is not slots=N");
  EXPECT_EQ(message("a slots=0\n"), "hosts.txt:1: 'slots=0': slots are 1 to 65536");
  EXPECT_EQ(message("a slots=2x\n"), "hosts.txt:1: 'slots=2x': slots are 1 to 65536");
  EXPECT_EQ(message("a\n\na slots=2\n"), "hosts.txt:3: host 'a' is named twice");
  EXPECT_EQ(message("# none\n"), "hosts.txt: names no host");
}

TEST(HostList, a_host_is_left_out_by_the_name_that_it_has_for_itself) {
  const std::vector<Host> hosts{{.name = "a"}, {.name = "b.net"}, {.name = "ab"}};
  EXPECT_EQ(without_host(hosts, "a.net").size(), 2u);
  EXPECT_EQ(without_host(hosts, "b")[1].name, "ab");
  EXPECT_EQ(without_host(hosts, "c").size(), 3u);
}

}  // namespace
}  // namespace recmill::server
