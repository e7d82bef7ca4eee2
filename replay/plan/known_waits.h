// SPDX-License-Identifier: MIT
// What a task has waited for: of other tasks, the ops that are known to be done.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

#include "formats/oplog/op.h"

namespace reprise {

/// A task knows what its spawner knew then. One that starts thousands, and waits for each, knows of all of them: its
/// children share that in layers, of which each is more than twice as large as the one on it.
class KnownWaits {
public:
    static constexpr size_t kMostCopied = 64;  // tasks

    /// Ops of the task that are known to be done, from its first one on; 0: none.
    uint64_t of(TaskId task) const {
        if (const auto found = own_.find(task); found != own_.end()) {
            return found->second;
        }
        for (const Layer* layer = base_.get(); layer != nullptr; layer = layer->below.get()) {
            if (const auto found = layer->known.find(task); found != layer->known.end()) {
                return found->second;
            }
        }
        return 0;
    }
    /// Not less than is known.
    void set(TaskId task, uint64_t ops) { own_[task] = ops; }
    void raise(TaskId task, uint64_t ops) { set(task, std::max(of(task), ops)); }

    /// All of it, where that is few tasks; nullptr: they are many.
    const std::unordered_map<TaskId, uint64_t>* few() const {
        return base_ == nullptr && own_.size() <= kMostCopied ? &own_ : nullptr;
    }

    /// For a task that is started now.
    KnownWaits inherited() {
        if (few() == nullptr && !own_.empty()) {
            freeze();
        }
        return *this;
    }

private:
    using Map = std::unordered_map<TaskId, uint64_t>;
    struct Layer {
        Map known;
        std::shared_ptr<const Layer> below;
    };

    void freeze() {
        auto layer = std::make_shared<Layer>(Layer{std::exchange(own_, {}), base_});
        while (layer->below != nullptr && layer->known.size() >= layer->below->known.size() / 2) {
            Map merged = layer->below->known;
            for (const auto& [task, ops] : layer->known) {
                merged[task] = ops;  // later, and so not less
            }
            layer = std::make_shared<Layer>(Layer{std::move(merged), layer->below->below});
        }
        base_ = std::move(layer);
    }

    Map own_;
    std::shared_ptr<const Layer> base_;
};

}  // namespace reprise
