// SPDX-License-Identifier: MIT
// Jobs whose requests a polling thread of the kernel takes (IORING_SETUP_SQPOLL), and which look for the results in
// memory: neither needs a call. The recording has one long computing of the job's thread, and all that it did meanwhile
// in the kernel's thread.
#pragma once

#include "replay/plan/plan.h"

namespace reprise {

/// Where such a job was seen to look (RequestRing::looked_ns), its computing is a wait for the last request that it
/// made meanwhile and the last result, and then what was left of it; and the kernel's thread waits for the job to come
/// to that computing. Reads the log of its processes again. Sets RequestRing::looker. After all other edges.
void join_polled_jobs(Plan& plan);

}  // namespace reprise
