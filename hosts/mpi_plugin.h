// SPDX-License-Identifier: MIT
// The one name that the plug-ins of the MPIs export.
#pragma once

#include "hosts/transport.h"

/// Starts MPI in this process; the caller's thread is the one for all calls.
extern "C" __attribute__((visibility("default"))) reprise::Transport* reprise_mpi_transport();
