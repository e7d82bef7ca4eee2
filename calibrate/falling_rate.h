// SPDX-License-Identifier: MIT
// A measure of the storage that contradicts itself.
#pragma once

#include <string>

#include "calibrate/storage_model.h"

namespace reprise {

/// "9,486 reads of 4.00 KiB a second with 16 in flight, and 3,954 with 64": no storage serves so much less for being
/// asked for more; the machine was busy. Empty where no rate halves. Of reads: a device's own cache takes the first
/// writes, and later ones, of more in flight, wait for what is behind it.
std::string falling_rate(const StorageModel& model);

}  // namespace reprise
