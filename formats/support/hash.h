// SPDX-License-Identifier: MIT
// A 64-bit hash of numbers and texts in a row (XXH64): to tell things apart, not against forgers.
#pragma once

#include <xxhash.h>

#include <cstdint>
#include <memory>
#include <string_view>

namespace reprise {

class Hash {
public:
    void number(uint64_t value) { XXH64_update(state_.get(), &value, sizeof value); }
    /// Its length as well, so that "ab", "c" and "a", "bc" differ.
    void text(std::string_view bytes) {
        number(bytes.size());
        XXH64_update(state_.get(), bytes.data(), bytes.size());
    }
    uint64_t value() const { return XXH64_digest(state_.get()); }

private:
    struct Free {
        void operator()(XXH64_state_t* state) const { XXH64_freeState(state); }
    };
    static XXH64_state_t* fresh() {
        XXH64_state_t* const state = XXH64_createState();
        XXH64_reset(state, 0);
        return state;
    }
    std::unique_ptr<XXH64_state_t, Free> state_{fresh()};
};

}  // namespace reprise
