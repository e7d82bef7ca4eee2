/* SPDX-License-Identifier: MIT */
/* Marks by the C header, between calls. */
#include "expect.h"

#include "markers/reprise_marker.h"

static void setup(void) { make_file("data", 1000); }

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    reprise_begin("epoch", 3);
    say("marker text=\"epoch\" arg=3 flags=1 result=0");
    do_open("a", "data", O_RDONLY, 0, ANY_FD);
    for (long i = 0; i < 3; i++) {
        reprise_begin("step", i);
        say("marker text=\"step\" arg=%ld flags=1 result=0", i);
        do_read("a", 100, i * 100, 100);
        reprise_end("step", i);
        say("marker text=\"step\" arg=%ld flags=2 result=0", i);
    }
    do_close("a");
    reprise_mark("odd_name", -7);
    say("marker text=\"odd_name\" arg=-7 flags=0 result=0");
    reprise_end("epoch", 3);
    say("marker text=\"epoch\" arg=3 flags=2 result=0");
    return 0;
}
