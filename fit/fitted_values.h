// SPDX-License-Identifier: MIT
// Which distribution of generate/distribution.h measured values look like, and how much so.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "generate/distribution.h"

namespace reprise {

struct FittedValues {
    Distribution distribution;   // `text` as a job file has it
    uint64_t values = 0;         // behind it
    double ks = 0;               // Kolmogorov-Smirnov distance between them and it, 0 to 1
    double mean_error = 0;       // half of the 95 % interval, as a share of the mean
    double deviation_error = 0;  // likewise, of the deviation (uniform: of the width)
    bool kind_sure = true;       // another kind would fit clearly worse
    bool fits = true;  // KS is below what it exceeds once in a thousand times; else mean and deviation are right
};

/// `least`: draws below it became it (Distribution::least). Values whose deviation is below 0.2 % of their mean are
/// constant. None: constant 0.
FittedValues fit_values(std::vector<double> values, double least, Distribution::Unit unit);

/// A size or time as job files have it, with up to five significant digits where it is not `exact`: "150k", "2.5ms".
std::string job_quantity(double value, Distribution::Unit unit, bool exact);

/// "normal(5ms,1ms)"
std::string distribution_text(const Distribution& distribution, Distribution::Unit unit, bool exact);

}  // namespace reprise
