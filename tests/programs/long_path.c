/* SPDX-License-Identifier: MIT */
/* A path of 4 095 bytes, the longest the kernel takes, and one that is longer. */
#include "expect.h"

static char g_path[PATH_MAX + 10]; /* below the root */

static void build(int make)
{
    size_t used = 0;
    const size_t most = PATH_MAX - 1 - strlen(g_root) - 1; /* bytes below the root */
    while (used < most) {
        size_t part = most - used > 201 ? 200 : most - used;
        if (most - used - part == 1) /* no room for a name after the slash */
            part--;
        memset(g_path + used, 'd', part);
        used += part;
        g_path[used] = 0;
        if (used == most)
            return;
        if (make && mkdir(full(g_path), 0755) != 0)
            give_up("mkdir: %s", strerror(errno));
        g_path[used++] = '/';
    }
}

static void setup(void)
{
    build(1);
    make_file(g_path, 100);
}

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    build(0);
    do_open("a", g_path, O_RDONLY, 0, ANY_FD);
    do_read("a", 1000, 0, 100);
    do_close("a");
    do_stat(g_path, 0);
    return 0;
}
