// SPDX-License-Identifier: Apache-2.0
#include "run/checkpoint/checkpoint_saver.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "base/json/json.h"
#include "checkpoint/folder.h"
#include "run/checkpoint/checkpoint_entries.h"
#include "run/checkpoint/row_part.h"
#include "run/checkpoint/saved_state.h"
#include "run/placement/run_placement.h"
#include "step/metrics/sample_window.h"
#include "table/home/image_snapshot.h"
#include "table/table_snapshots.h"

namespace recmill::train {
namespace {

using checkpoint::PartContents;
using checkpoint::PartWriter;

constexpr int64_t kKeptBytes = int64_t{512} << 20;  // over all ranks

/// "part-10" comes behind "part-9".
void sort_parts(std::vector<PartContents>& parts) {
  std::ranges::sort(parts, {}, [](const PartContents& of) {
    return std::pair(of.part.file.size(), of.part.file);
  });
}

/// What a rank saves, as after one iteration, whatever training does meanwhile.
struct Taken {
  std::unique_ptr<store::RowSnapshot> rows;
  std::optional<SavedState> state;  // of rank 0 alone
};

Taken take(Rank& rank, const Communicator& communicator, const LoopState& state) {
  Taken taken;
  taken.rows = rank.store->snapshot(CheckpointSaver::kept_bytes(communicator.ranks()));
  if (communicator.rank() == 0) taken.state = take_state(rank, state);
  return taken;
}

/// Whoever else has rows of the image, if they are to write them.
table::PartWritingImage* writers_of(const table::RowSnapshot& rows, const std::string& folder) {
  const auto* const image = dynamic_cast<const table::ImageSnapshot*>(&rows);
  auto* const elsewhere = image == nullptr ? nullptr : image->part_writing_image();
  return elsewhere != nullptr && elsewhere->may_write_below(folder) ? elsewhere : nullptr;
}

/// This rank's part, and those that it has others write.
Result<std::vector<PartContents>> write_parts(const ResolvedRun& run, const Rank& rank,
                                              Files& files, const std::string& path, int number,
                                              Taken taken) {
  std::vector<PartContents> parts;
  RECMILL_ASSIGN_OR_RETURN(auto own, PartWriter::create(files, path, number));
  const auto seed = static_cast<uint64_t>(run.options.train.seed);
  const std::string folder = std::filesystem::absolute(path).lexically_normal();
  if (auto* const elsewhere = writers_of(*taken.rows, folder)) {
    RECMILL_RETURN_IF_ERROR(add_rules(run.spec.tables, seed, *own));
    RECMILL_ASSIGN_OR_RETURN(const auto texts, elsewhere->write_parts(folder, run.ranks));
    for (const std::string& text : texts) {
      RECMILL_ASSIGN_OR_RETURN(auto part, checkpoint::decode_part(text));
      parts.push_back(std::move(part));
    }
  } else {
    RECMILL_RETURN_IF_ERROR(add_rows(run.spec.tables, seed, *taken.rows, *own));
  }
  if (taken.state) RECMILL_RETURN_IF_ERROR(add_state(run, rank, *taken.state, *own));
  RECMILL_ASSIGN_OR_RETURN(auto part, own->finish());
  parts.push_back(std::move(part));
  return parts;
}

/// On their way to rank 0.
std::string encode_parts(const std::vector<PartContents>& parts) {
  Json texts = Json::array();
  for (const PartContents& part : parts) texts.push_back(checkpoint::encode(part));
  return texts.dump();
}

/// Of all ranks, by their numbers.
Result<std::vector<PartContents>> decode_parts(const std::vector<std::string>& of_ranks) {
  std::vector<PartContents> parts;
  for (const std::string& texts : of_ranks)
    for (const Json& text : Json::parse(texts)) {
      RECMILL_ASSIGN_OR_RETURN(auto part, checkpoint::decode_part(text.get<std::string>()));
      parts.push_back(std::move(part));
    }
  sort_parts(parts);
  return parts;
}

// Every rank learns whether all of them are well, so that none waits for one that is not.
Result<std::vector<std::string>> gather_texts(Communicator& communicator, const Status& status,
                                              const std::string& text) {
  const std::string sent = status.ok() ? "+" + text : "-" + status.message();
  RECMILL_ASSIGN_OR_RETURN(const Received received,
                           communicator.all_gather(std::as_bytes(std::span(sent))));
  std::vector<std::string> texts;
  for (int rank = 0; rank < communicator.ranks(); ++rank) {
    const auto bytes = received.from(rank);
    texts.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (texts.back()[0] == '-') return Status::Failed(texts.back().substr(1));
    texts.back().erase(0, 1);
  }
  return texts;
}

Result<bool> true_everywhere(Communicator& communicator, bool own) {
  if (communicator.ranks() == 1) return own;
  const std::byte flag{static_cast<unsigned char>(own)};
  RECMILL_ASSIGN_OR_RETURN(const Received received, communicator.all_gather(std::span(&flag, 1)));
  return std::ranges::all_of(received.bytes, [](std::byte b) { return b == std::byte{1}; });
}

template <typename T>
bool is_ready(const std::future<T>& future) {
  return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace

// The mark of the checkpoint before is kept until this one is whole, and keeps that one till then.
Status CheckpointPublisher::publish(checkpoint::Writer& writer, std::vector<PartContents> parts,
                                    const Json& properties, SavedAs as) const {
  RECMILL_RETURN_IF_ERROR(writer.finish(std::move(parts), properties));
  return as == SavedAs::best ? mark_best(writer.step()) : delete_old();
}

Status CheckpointPublisher::begin(std::optional<int64_t> best) const {
  return best ? checkpoint::mark_best(files_, folder_, *best)
              : checkpoint::unmark_best(files_, folder_);
}

Status CheckpointPublisher::mark_best(int64_t step) const {
  RECMILL_RETURN_IF_ERROR(checkpoint::mark_best(files_, folder_, step));
  return delete_old();
}

Status CheckpointPublisher::delete_old() const {
  return checkpoint::keep_last(files_, folder_, std::max<int64_t>(keep_, 1));
}

void CheckpointPublisher::leave(int rank, std::vector<PartContents> parts) {
  std::lock_guard lock(mutex_);
  parts_[rank] = std::move(parts);
}

void CheckpointPublisher::leave(std::unique_ptr<checkpoint::Writer> writer, Json properties,
                                SavedAs as) {
  std::lock_guard lock(mutex_);
  writer_ = std::move(writer);
  properties_ = std::move(properties);
  as_ = as;
}

Status CheckpointPublisher::publish_left() {
  std::lock_guard lock(mutex_);
  const auto writer = std::move(writer_);  // deletes what it did not finish
  std::vector<PartContents> parts;
  bool is_whole = writer != nullptr;
  for (auto& of_rank : parts_) {
    is_whole &= of_rank.has_value();
    if (of_rank) std::ranges::move(*of_rank, std::back_inserter(parts));
    of_rank.reset();
  }
  if (!is_whole) return {};
  sort_parts(parts);
  return publish(*writer, std::move(parts), *properties_, as_);
}

CheckpointSaver::CheckpointSaver(const ResolvedRun& run, Rank& rank, Communicator& communicator,
                                 CheckpointPublisher& publisher)
    : run_(run), rank_(rank), communicator_(communicator), publisher_(publisher) {}

int64_t CheckpointSaver::kept_bytes(int ranks) {
  return kKeptBytes / ranks;
}

void CheckpointSaver::need(const ResolvedRun& run, int rank, int64_t parameters, int64_t states,
                           MemoryLedger& ledger) {
  const TrainOptions& train = run.options.train;
  if (train.checkpoint.every > 0 || train.checkpoint.keep_best) {
    int64_t all = 0;
    const auto shares = shares_of(run, rank);
    for (size_t t = 0; t < shares.size(); ++t) {
      const TableSpec& spec = run.spec.tables[t];
      all += shares[t].rows.slots() *
             table::kept_bytes_of_row(spec, shares[t].own_columns(spec.dim).count);
    }
    ledger.items.push_back({"rows kept for a checkpoint", rank,
                            std::min(kept_bytes(run.ranks), all),
                            /*certain=*/false});
  }
  if (rank != 0) return;
  const int64_t sample =
      metrics::SampleWindow::sample_bytes(run.schema.has_sample_weight, run.schema.has_group);
  ledger.items.push_back({"layers and metrics of a checkpoint", rank,
                          parameters * (1 + states) * 4 + train.window * sample,
                          /*certain=*/false});
}

CheckpointSaver::~CheckpointSaver() {
  // What is being published is waited for by its future.
  if (stage_ != Stage::writing) return;
  if (auto parts = parts_.get(); parts.ok())
    publisher_.leave(communicator_.rank(), *std::move(parts));
  if (writer_ != nullptr) publisher_.leave(std::move(writer_), std::move(*properties_), as_);
}

Status CheckpointSaver::save(const LoopState& state, SavedAs as) {
  RECMILL_RETURN_IF_ERROR(wait());
  Status begun;
  if (communicator_.rank() == 0) {
    auto created = checkpoint::Writer::create(publisher_.files(), publisher_.folder(),
                                              state.position.iteration);
    begun = created.status();
    if (created.ok()) writer_ = *std::move(created);
  }
  RECMILL_ASSIGN_OR_RETURN(const auto paths,
                           gather_texts(communicator_, begun, writer_ ? writer_->path() : ""));
  RECMILL_RETURN_IF_ERROR(settle(rank_));
  properties_ = properties_of(run_, state);
  as_ = as;
  parts_ = std::async(std::launch::async,
                      [this, path = paths[0], taken = take(rank_, communicator_, state)]() mutable {
                        return write_parts(run_, rank_, publisher_.files(), path,
                                           communicator_.rank(), std::move(taken));
                      });
  stage_ = Stage::writing;
  return {};
}

Status CheckpointSaver::mark_best(int64_t step) {
  if (stage_ == Stage::writing) {
    as_ = SavedAs::best;  // it is marked when it is published
    return {};
  }
  RECMILL_RETURN_IF_ERROR(wait());
  const Status marked = communicator_.rank() == 0 ? publisher_.mark_best(step) : Status();
  return gather_texts(communicator_, marked, "").status();
}

bool CheckpointSaver::own_work_is_done() const {
  if (stage_ == Stage::writing) return is_ready(parts_);
  return !published_.valid() || is_ready(published_);
}

Status CheckpointSaver::advance() {
  if (stage_ == Stage::idle) return {};
  RECMILL_ASSIGN_OR_RETURN(const bool done, true_everywhere(communicator_, own_work_is_done()));
  return done ? finish_stage() : Status();
}

Status CheckpointSaver::wait() {
  while (stage_ != Stage::idle) RECMILL_RETURN_IF_ERROR(finish_stage());
  return {};
}

// A failure leaves the stage idle on every rank; then no rank writes any more.
Status CheckpointSaver::finish_stage() {
  const Stage stage = std::exchange(stage_, Stage::idle);
  const Status status = stage == Stage::writing ? finish_writing() : finish_publishing();
  if (stage_ == Stage::idle) writer_.reset();
  return status;
}

Status CheckpointSaver::finish_writing() {
  const auto parts = parts_.get();
  RECMILL_ASSIGN_OR_RETURN(const auto texts, gather_texts(communicator_, parts.status(),
                                                          parts.ok() ? encode_parts(*parts) : ""));
  stage_ = Stage::publishing;
  if (!writer_) return {};
  published_ = std::async(std::launch::async, [this, texts, as = as_]() -> Status {
    RECMILL_ASSIGN_OR_RETURN(auto parts, decode_parts(texts));
    return publisher_.publish(*writer_, std::move(parts), *properties_, as);
  });
  return {};
}

Status CheckpointSaver::finish_publishing() {
  const Status published = published_.valid() ? published_.get() : Status();
  return gather_texts(communicator_, published, "").status();
}

}  // namespace recmill::train
