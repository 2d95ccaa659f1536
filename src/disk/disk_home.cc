// SPDX-License-Identifier: Apache-2.0
#include "disk/disk_home.h"

#include <cstring>
#include <utility>

#include "base/json/json.h"
#include "base/json/json_keys.h"
#include "table/home/shape_of_rows.h"

namespace recmill::disk {
namespace {

constexpr const char* kOwnerNote = "owner";
constexpr const char* kRecordNote = "record";
constexpr int kFormat = 1;

Json json_of(const DiskOwner& owner) {
  Json tables = Json::array();
  for (const TableSpec& spec : owner.tables) tables.push_back(table::shape_of_rows(spec));
  return {{"format", kFormat},    {"run", owner.run},   {"name", owner.name}, {"rank", owner.rank},
          {"ranks", owner.ranks}, {"seed", owner.seed}, {"tables", tables}};
}

std::vector<table::RowShare> shares_of(const DiskOwner& owner) {
  std::vector<table::RowShare> shares;
  for (const TableSpec& table : owner.tables)
    shares.emplace_back(table.rows, owner.rank, owner.ranks);
  return shares;
}

Result<std::optional<std::string>> read_note(RowDatabase& database, const std::string& key) {
  std::optional<std::string> note;
  RECMILL_RETURN_IF_ERROR(database.get(
      Space::notes, {&key, 1}, [&](size_t, std::string_view value) { note = std::string(value); }));
  return note;
}

}  // namespace

Result<std::shared_ptr<DiskHome>> DiskHome::open(std::unique_ptr<RowDatabase> database,
                                                 const std::string& path, const DiskOwner& owner) {
  RECMILL_ASSIGN_OR_RETURN(const auto note, read_note(*database, kOwnerNote));
  bool is_ours = false;
  if (note) {
    const Json there = Json::parse(*note, nullptr, /*allow_exceptions=*/false);
    std::string name;
    int64_t format = 0;
    KeyReader read{there, "owner", "", {}};
    if (there.is_object()) read("format", format);
    if (there.is_object() && format == kFormat) read("name", name);
    if (!read.status.ok() || format != kFormat)
      return Status::BadRequest(path +
                                ": its rows were written by another version of Recmill; "
                                "delete it, or name another folder");
    if (name != owner.name)
      return Status::BadRequest(path + ": has rows of the run '" + name +
                                "'; delete it, or name another folder");
    is_ours = there == json_of(owner);
  } else {
    for (const Space space : {Space::rows, Space::kept, Space::notes}) {
      RECMILL_ASSIGN_OR_RETURN(
          const auto some, database->scan(space, "", std::string(64, static_cast<char>(0xff)), 1));
      if (!some.empty())
        return Status::BadRequest(path + ": is a database of another program; name another folder");
    }
  }
  auto rows =
      std::make_shared<DiskRows>(std::move(database), owner.tables, owner.seed, shares_of(owner));
  std::shared_ptr<DiskHome> home(new DiskHome(std::move(rows), owner));
  if (is_ours) {
    RECMILL_ASSIGN_OR_RETURN(home->steps_, home->rows_->images_left());
  }
  return home;
}

Result<std::optional<DiskHome::Recorded>> DiskHome::recorded() const {
  if (steps_.empty()) return std::optional<Recorded>();
  RECMILL_ASSIGN_OR_RETURN(const auto note, read_note(rows_->database(), kRecordNote));
  if (!note || note->size() < sizeof(int64_t)) return std::optional<Recorded>();
  Recorded recorded;
  std::memcpy(&recorded.step, note->data(), sizeof(recorded.step));
  recorded.bytes = note->substr(sizeof(recorded.step));
  return std::optional<Recorded>(std::move(recorded));
}

Result<std::shared_ptr<table::RowSnapshot>> DiskHome::begin(std::optional<int64_t> step) {
  std::shared_ptr<table::RowSnapshot> image;
  if (step) {
    RECMILL_ASSIGN_OR_RETURN(image, rows_->go_back(*step));
  } else {
    RECMILL_RETURN_IF_ERROR(rows_->clear());
    const std::string owner = json_of(owner_).dump();
    const Change note{Space::notes, kOwnerNote, owner};
    RECMILL_RETURN_IF_ERROR(rows_->database().write({&note, 1}, /*syncs=*/true));
  }
  local_ = std::make_unique<table::LocalHome>(*rows_, 1, step.value_or(kNoFence));
  threaded_ = std::make_unique<table::ThreadedHome>(local_->writer(0));
  return image;
}

Status DiskHome::record(int64_t step, std::span<const std::byte> bytes) {
  std::string value(sizeof(step) + bytes.size(), '\0');
  std::memcpy(value.data(), &step, sizeof(step));
  if (!bytes.empty()) std::memcpy(value.data() + sizeof(step), bytes.data(), bytes.size());
  const Change note{Space::notes, kRecordNote, value};
  return rows_->database().write({&note, 1}, /*syncs=*/true);
}

}  // namespace recmill::disk
