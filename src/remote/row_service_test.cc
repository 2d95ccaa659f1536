// SPDX-License-Identifier: Apache-2.0
// Clients and servers are a home of rows, whatever the network between them does.
#include <gtest/gtest.h>

#include "remote/testing/remote_fixture.h"
#include "table/home/row_home_contract.h"

namespace recmill::table {
namespace {

using OneServer = remote::testing::RemoteFixture<1, false>;
using ThreeServers = remote::testing::RemoteFixture<3, false>;
using BrokenConnections = remote::testing::RemoteFixture<2, true>;
INSTANTIATE_TYPED_TEST_SUITE_P(OneServer, RowHomeContract, OneServer);
INSTANTIATE_TYPED_TEST_SUITE_P(ThreeServers, RowHomeContract, ThreeServers);
INSTANTIATE_TYPED_TEST_SUITE_P(BrokenConnections, RowHomeContract, BrokenConnections);

}  // namespace
}  // namespace recmill::table
