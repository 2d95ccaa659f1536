// SPDX-License-Identifier: Apache-2.0
#include "schema/cluster_file.h"

#include <gtest/gtest.h>

#include "base/json/json.h"
#include "base/temporary_folder.h"

namespace recmill {
namespace {

ClusterSpec two_devices() {
  ClusterSpec cluster;
  for (const char* name : {"rank 0", "rank 1"}) {
    DeviceSpec device;
    device.name = name;
    device.memory_bytes = 1 << 30;
    cluster.devices.push_back(device);
  }
  cluster.links = {{0, 1e-10}, {2e-5, 4e-8}, {3e-5, 5e-8}, {0, 0}};
  return cluster;
}

TEST(ClusterFile, comes_back_as_it_was_written) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/cluster.json";
  ASSERT_TRUE(write_cluster(posix_files(), path, two_devices()).ok());
  const auto cluster = read_cluster(posix_files(), path);
  ASSERT_TRUE(cluster.ok()) << cluster.status().message();
  EXPECT_EQ(cluster->links, two_devices().links);
  EXPECT_EQ(cluster->devices[1].name, "rank 1");
  EXPECT_EQ(cluster->devices[1].memory_bytes, 1 << 30);
}

TEST(ClusterFile, zeros_and_holes_are_named) {
  const auto error = [](const Json& json) {
    const auto cluster = cluster_from_json(json, "c.json");
    EXPECT_FALSE(cluster.ok());
    return cluster.ok() ? "" : cluster.status().message();
  };
  Json zero = to_json(two_devices());
  zero["byte_seconds"][1][0] = 0;
  EXPECT_EQ(error(zero),
            "c.json: byte_seconds: the link of device 1 from device 0 takes 0.000000 seconds");
  Json hole = to_json(two_devices());
  hole["byte_seconds"][0][1] = nullptr;
  EXPECT_EQ(error(hole), "c.json: byte_seconds: the link of device 0 from device 1 is missing");
  Json line = to_json(two_devices());
  line["message_seconds"].erase(1);
  EXPECT_EQ(error(line), "c.json: message_seconds: must have a line for each of 2 devices");
  Json memory = to_json(two_devices());
  memory["devices"][0]["memory_bytes"] = 0;
  EXPECT_EQ(error(memory), "c.json: device 'rank 0' has no memory");
}

}  // namespace
}  // namespace recmill
