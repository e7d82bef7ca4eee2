/* SPDX-License-Identifier: MIT */
/* Stands in for libcuda: the one call that waits for a stream. */
#include "cufile.h"

int cuStreamSynchronize(CUstream stream)
{
    standin_wait(stream);
    return 0;
}
