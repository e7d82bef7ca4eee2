// SPDX-License-Identifier: MIT
#include "formats/oplog/time_order.h"

#include <algorithm>
#include <map>
#include <queue>
#include <utility>
#include <vector>

namespace reprise {
namespace {

// Where one task stands: its blocks in the range, and the current one decoded once its time has come.
struct Cursor {
    TaskId task = 0;
    std::vector<BlockInfo> blocks;
    size_t next_block = 0;
    bool decoded = false;
    OpBlock block;
    size_t row = 0;
};

struct Due {
    int64_t begin;
    TaskId task;
    size_t cursor;
    bool operator>(const Due& other) const { return std::pair(begin, task) > std::pair(other.begin, other.task); }
};

class Merge {
public:
    Merge(const LogReader& log, TimeRange range, std::span<const TaskId> tasks) : log_(log), range_(range) {
        std::map<TaskId, Cursor> by_task;
        for (const BlockInfo& block : log.blocks()) {
            if (block.ops == 0 || block.begin >= range.to || block.end < range.from) {
                continue;
            }
            if (!tasks.empty() && std::find(tasks.begin(), tasks.end(), block.task) == tasks.end()) {
                continue;
            }
            Cursor& cursor = by_task[block.task];
            cursor.task = block.task;
            cursor.blocks.push_back(block);
        }
        for (auto& [task, cursor] : by_task) {
            cursors_.push_back(std::move(cursor));
        }
        for (size_t i = 0; i < cursors_.size(); ++i) {
            due_.push({cursors_[i].blocks[0].begin, cursors_[i].task, i});
        }
    }

    void run(const std::function<void(TaskId, const Op&, uint64_t)>& visit) {
        while (!due_.empty()) {
            const size_t index = due_.top().cursor;
            due_.pop();
            advance(index, visit);
        }
    }

private:
    // Visits ops of one task until another task's op comes first or its block ends.
    void advance(size_t index, const std::function<void(TaskId, const Op&, uint64_t)>& visit) {
        Cursor& cursor = cursors_[index];
        if (!cursor.decoded) {
            open(cursor);
        }
        while (cursor.row < cursor.block.count()) {
            const int64_t begin = cursor.block.begin[cursor.row];
            if (begin >= range_.to) {
                break;
            }
            if (!due_.empty() && std::pair(due_.top().begin, due_.top().task) < std::pair(begin, cursor.task)) {
                due_.push({begin, cursor.task, index});
                return;
            }
            if (begin >= range_.from) {
                visit(cursor.task, cursor.block.row(cursor.row), cursor.block.first + cursor.row);
            }
            ++cursor.row;
        }
        log_.forget(cursor.blocks[cursor.next_block]);
        free_.push_back(std::move(cursor.block));
        cursor.decoded = false;
        if (++cursor.next_block < cursor.blocks.size()) {
            due_.push({cursor.blocks[cursor.next_block].begin, cursor.task, index});
        } else {
            cursor.blocks = {};
        }
    }

    void open(Cursor& cursor) {
        if (free_.empty()) {
            cursor.block = OpBlock();
        } else {
            cursor.block = std::move(free_.back());
            free_.pop_back();
        }
        log_.decode(cursor.blocks[cursor.next_block], cursor.block);
        cursor.decoded = true;
        cursor.row = 0;
    }

    const LogReader& log_;
    const TimeRange range_;
    std::vector<Cursor> cursors_;
    std::vector<OpBlock> free_;
    std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
};

}  // namespace

void for_each_between(const LogReader& log, TimeRange range, std::span<const TaskId> tasks,
                      const std::function<void(TaskId, const Op&, uint64_t)>& visit) {
    Merge(log, range, tasks).run(visit);
}

}  // namespace reprise
