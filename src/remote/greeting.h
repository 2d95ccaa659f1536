// SPDX-License-Identifier: Apache-2.0
// What ranks and servers say of themselves when a connection begins.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "remote/message.h"
#include "schema/table_spec.h"

namespace recmill::remote {

/// Of a rank. What `hello` has in its header is not here.
struct Greeting {
  std::string run;
  int64_t term = 1;
  int ranks = 1;
  bool fresh = true;  // rows begin anew
  int64_t again = 0;  // instance of the server that this rank was connected to; 0: none
  int server = 0;     // the number of the one that is greeted
  int servers = 1;
  double deadline = 60.0;  // seconds
  uint64_t seed = 0;
  std::vector<TableSpec> tables = {};
};

Bytes write_greeting(const Greeting& greeting);
Result<Greeting> read_greeting(const Bytes& body);
/// The first difference of two runs' tables, in words; "" when both have the same rows.
std::string difference_of_tables(const Greeting& ours, const Greeting& theirs);

/// Of a guest: the protocol alone. Fails where it is another one.
Bytes write_guest_greeting();
Status check_protocol(const Bytes& body);

/// Of a server.
struct ServerGreeting {
  int64_t instance = 0;
  std::string checkpoints = "";  // the folder below which it writes parts of them; empty: nowhere
};
Bytes write_server_greeting(const ServerGreeting& greeting);
Result<ServerGreeting> read_server_greeting(const Bytes& body);

}  // namespace recmill::remote
