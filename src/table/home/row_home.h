// SPDX-License-Identifier: Apache-2.0
// The seam to where rows are stored while others hold, update and put them back: in this process,
// on servers, on a disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "table/row_block.h"

namespace recmill::table {

/// Rows of one table, in any order, and room for their records (RowRecord), one behind the other.
/// Begins at a multiple of 4 bytes. A row may be named several times.
struct FetchedRows {
  int table = 0;
  std::span<const int64_t> rows;
  std::span<std::byte> records;
};

/// Rows of one table and their new records. Of a row that is named several times the last one
/// counts.
struct PutRows {
  int table = 0;
  std::span<const int64_t> rows;
  std::span<const std::byte> records;
};

/// A home of rows as one of its writers sees it: a rank, most often. Rows travel as stored, with
/// their state.
///
/// *Steps* are numbers of one's choice that ascend: places in a stream of batches, say. Each writer
/// puts once a step, and an empty put where it has no rows. Its *mark* is the last step that it has
/// put. A fetch names a *fence*, a step: it waits until the marks of all writers have reached it.
/// So what is read is as after the fence, or later: a row that others go on putting may be of any
/// of their later steps, but is whole.
///
/// Two writers put the same row only one after the other: the second one has fetched it, behind
/// the step at which the first one put it, and puts it at a later step.
///
/// Calls never wait, and come from one thread at a time. Each gives a ticket; poll() hands out its
/// answer, once. What a call's spans point to is the home's until then. Answers come in any order:
/// a fetch that waits for its fence holds up nothing behind it, so that whoever waits for it goes
/// on putting. A writer's puts and cuts are carried out in the order in which it calls them.
///
/// Errors are in answers. A row that the home does not have is one that names table and row; then
/// nothing is put, and the mark stays. What is lost for good (a server, a disk) ends all calls with
/// an error.
class RowHome {
 public:
  using Ticket = int64_t;  // of a writer: 0, 1, ...
  struct Answer {
    Ticket ticket = 0;
    Status status;
    std::shared_ptr<RowSnapshot> image = nullptr;  // of a cut
  };
  static constexpr int64_t kNoFence = -1;  // where steps begin at 0: nothing is waited for

  virtual ~RowHome() = default;

  /// Reads rows, as after `fence`.
  virtual Ticket fetch(std::span<const FetchedRows> rows, int64_t fence) = 0;

  /// Replaces rows, and moves this writer's mark to `step`. A step that the mark has reached is a
  /// repeat: it is answered and changes nothing.
  virtual Ticket put(std::span<const PutRows> rows, int64_t step) = 0;

  /// An image of all rows as after `step`, whatever is put later. Every writer calls it, the same
  /// cuts in the same order, behind its puts of steps up to `step` and before those of later ones.
  /// `changed` are rows that this writer alone may put, as they are after the step, and has not put
  /// since they changed: the image has them so, and from the answer on the home, unless they were
  /// put at a later step meanwhile. Once all have called it, each gets the image, which they may
  /// share: one of them reads it once, on any thread, or nobody does. It costs a copy of each row
  /// that is put until it has been read or all have let it go.
  virtual Ticket cut(int64_t step, std::span<const PutRows> changed) = 0;

  /// Appends the answers that are there.
  virtual void poll(std::vector<Answer>& answers) = 0;

  /// From now on `wake` is called, on any thread, each time that poll() may have something new. It
  /// returns at once and calls nothing of the home. Before the first call; null: nobody waits.
  virtual void set_wake(std::function<void()> wake) = 0;
};

}  // namespace recmill::table
