/* A management library with two devices: one 40 per cent busy, one that does not answer. FAKE_NVML=refuse: does not start.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

struct utilization {
    unsigned gpu, memory;
};
static int devices[2];
static unsigned calls;

int nvmlInit_v2(void)
{
    const char *how = getenv("FAKE_NVML");
    return how && strcmp(how, "refuse") == 0 ? 9 : 0;
}
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = 2;
    return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **device)
{
    *device = &devices[i];
    return 0;
}
int nvmlDeviceGetUtilizationRates(void *device, struct utilization *out)
{
    if (device != &devices[0])
        return 3;
    out->gpu = calls++ % 2 ? 50 : 30;
    return 0;
}
