/* SPDX-License-Identifier: MIT */
/* exec: what is marked close-on-exec ends, the rest stays with its position. */
#include "expect.h"

static void setup(void) { make_file("data", 100000); }

int main(int argc, char **argv)
{
    if (argc == 5) { /* the program that was started by the first one */
        begin(argc, argv, NULL);
        bind_fd("kept", "kept", atoi(argv[3]));
        bind_fd("gone", "gone", atoi(argv[4]));
        do_read("kept", 1000, 2000, 1000);
        struct stat st;
        WANT(CALL2(SYS_fstat, fd_("gone"), &st), -EBADF);
        do_open("new", "data", O_RDONLY, 0, ANY_FD);
        do_read("new", 10, 0, 10);
        do_close("new");
        do_close("kept");
        return 0;
    }
    begin(argc, argv, NULL);
    do_open("kept", "data", O_RDONLY, 0, ANY_FD);
    do_open("gone", "data", O_RDONLY | O_CLOEXEC, 0, ANY_FD);
    do_read("kept", 2000, 0, 2000);
    do_read("gone", 10, 0, 10);
    char kept[16], gone[16], self[PATH_MAX];
    snprintf(kept, sizeof kept, "%d", fd_("kept"));
    snprintf(gone, sizeof gone, "%d", fd_("gone"));
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0)
        give_up("no /proc");
    self[length] = 0;
    char *const missing[] = {"missing", NULL};
    say("exec file=missing result=%ld", WANT(CALL3(SYS_execve, full("missing"), missing, NULL), -ENOENT));
    char *const arguments[] = {self, argv[1], argv[2], kept, gone, NULL};
    char *const environment[] = {NULL};
    CALL3(SYS_execve, self, arguments, environment);
    give_up("exec failed");
}
