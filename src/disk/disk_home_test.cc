// SPDX-License-Identifier: Apache-2.0
#include "disk/disk_home.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <string>

#include "base/temporary_folder.h"
#include "disk/rocksdb/rocksdb_library.h"
#include "disk/testing/memory_database.h"
#include "table/home/home_caller.h"

namespace recmill::disk {
namespace {

using ::testing::HasSubstr;

DiskOwner owner() {
  DiskOwner of;
  of.run = "run-1";
  of.name = "run";
  of.tables = {{.name = "a", .rows = 10, .dim = 2, .optimizer = {}}};
  of.tables[0].optimizer.kind = OptimizerKind::sgd;
  return of;
}

std::unique_ptr<RowDatabase> open(const std::string& path) {
  auto database = (*rocksdb_databases())->open(path, 1 << 20, /*keeps=*/true);
  EXPECT_TRUE(database.ok()) << database.status().message();
  return *std::move(database);
}

/// Puts a row that is all `value`.
void put(table::RowHome& home, int64_t row, int64_t step, float value) {
  table::HomeCaller caller(home);
  const std::vector<float> record(2, value);
  const table::PutRows list{0, {&row, 1}, std::as_bytes(std::span(record))};
  EXPECT_EQ(caller.wait(home.put({&list, 1}, step)).status.message(), "");
}
float get(table::RowHome& home, int64_t row) {
  table::HomeCaller caller(home);
  std::vector<float> record(2);
  const table::FetchedRows list{0, {&row, 1}, std::as_writable_bytes(std::span(record))};
  EXPECT_EQ(caller.wait(home.fetch({&list, 1}, -1)).status.message(), "");
  return record[1];
}

TEST(DiskHome, goes_on_from_what_was_recorded_in_another_process) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/rows";
  std::string copied;
  {
    const auto home = *DiskHome::open(open(path), path, owner());
    EXPECT_TRUE(home->steps().empty());
    ASSERT_TRUE(home->begin(std::nullopt).ok());
    put(*home, 3, 1, 7.0f);
    table::HomeCaller caller(*home);
    const auto image = caller.wait(home->cut(1, {})).image;
    ASSERT_NE(image, nullptr);
    ASSERT_TRUE(home->record(1, std::as_bytes(std::span("state", 5))).ok());
    put(*home, 3, 2, 8.0f);
    put(*home, 4, 3, 9.0f);
    EXPECT_EQ(get(*home, 3), 8.0f);
    // What a process that is killed had: its files as they are.
    copied = folder.path() + "/copy";
    std::filesystem::copy(path, copied, std::filesystem::copy_options::recursive);
  }
  const auto home = *DiskHome::open(open(copied), copied, owner());
  EXPECT_EQ(home->steps(), std::vector<int64_t>{1});
  const auto recorded = *home->recorded();
  ASSERT_TRUE(recorded.has_value());
  EXPECT_EQ(recorded->step, 1);
  EXPECT_EQ(recorded->bytes, "state");
  const auto image = home->begin(1);
  ASSERT_TRUE(image.ok()) << image.status().message();
  EXPECT_EQ(get(*home, 3), 7.0f);
  EXPECT_NE(get(*home, 4), 9.0f);
  put(*home, 3, 2, 8.0f);
  EXPECT_EQ(get(*home, 3), 8.0f);
}

TEST(DiskHome, refuses_a_database_of_another_run_or_program) {
  const auto disk = std::make_shared<testing::MemoryDisk>();
  const auto opened = [&](const DiskOwner& of) {
    return DiskHome::open(std::make_unique<testing::MemoryDatabase>(disk), "rows", of);
  };
  disk->spaces[0]["key"] = "value";
  EXPECT_THAT(opened(owner()).status().message(),
              HasSubstr("rows: is a database of another program"));
  disk->spaces[0].clear();
  ASSERT_TRUE((*opened(owner()))->begin(std::nullopt).ok());
  DiskOwner other = owner();
  other.name = "other";
  EXPECT_THAT(opened(other).status().message(), HasSubstr("has rows of the run 'run'"));
  // Of another start of the same name, or of other ranks: begins anew.
  other = owner();
  other.ranks = 2;
  EXPECT_TRUE((*opened(other))->steps().empty());
  disk->spaces[2]["owner"] = "{}";
  EXPECT_THAT(opened(owner()).status().message(), HasSubstr("another version of Recmill"));
}

}  // namespace
}  // namespace recmill::disk
