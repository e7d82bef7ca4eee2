// SPDX-License-Identifier: MIT
// Runs many small pieces of work on a few threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>

namespace reprise {

/// Calls work(worker, piece) once for every piece in [0, pieces), on `threads` threads. A worker takes the pieces of
/// its own share in order, so that neighbours (files of one directory) stay together, and then what others have left.
/// Where `tick` is given, the calling thread calls it about twenty times a second meanwhile. A piece that throws stops
/// the rest; the first exception is thrown again here. Setting `stop` from anywhere stops after the pieces in hand.
void run_parallel(unsigned threads, size_t pieces, std::atomic<bool>& stop, const std::function<void()>& tick,
                  const std::function<void(size_t worker, size_t piece)>& work);

}  // namespace reprise
