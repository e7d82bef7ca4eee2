/* SPDX-License-Identifier: MIT */
/* What is there before a recorder attaches: open files, mappings, a thread and a child, each of which says what it has
 * and goes on when the file "hold" below the root has gone. Only recorded by attaching (capture_attach.sh). */
#include "expect.h"

#include <dirent.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

static void setup(void)
{
    make_file("data", 100000);
    make_file("hold", 0);
}

static ino_t g_peer[2]; /* of the sockets: each one's own number */

static void say_descriptor(int fd)
{
    char name[64], link[PATH_MAX] = "", text[512] = "";
    struct stat st;
    long position = 0;
    unsigned flags = 0;
    sprintf(name, "/proc/self/fd/%d", fd);
    if (fstat(fd, &st) != 0 || readlink(name, link, sizeof link - 1) < 0)
        give_up("no descriptor %d", fd);
    sprintf(name, "/proc/self/fdinfo/%d", fd);
    FILE *const in = fopen(name, "r");
    if (in == NULL || fread(text, 1, sizeof text - 1, in) == 0 ||
        sscanf(text, "pos: %ld flags: %o", &position, &flags) != 2)
        give_up("what is descriptor %d?", fd);
    fclose(in);
    const unsigned closes = flags & O_CLOEXEC ? 2 : 0;
    unsigned info = closes;
    info |= strstr(link, "[eventfd]") ? 4 : strstr(link, "[eventpoll]") ? 8 : strncmp(link, "/memfd:", 7) == 0 ? 32 : 0;
    unsigned long peer = 0;
    if (S_ISSOCK(st.st_mode))
        peer = (unsigned long)g_peer[st.st_ino == g_peer[0]];
    char rest[64] = "";
    if (fd > 2) /* those of the shell may be anything */
        sprintf(rest, "/%u/%lu", info, peer);
    link[strcspn(link, " ")] = 0;
    say("seed_fd fd0=%d/%lu/%ld/%ld/%u/%u%s string0=%s", fd, (unsigned long)st.st_ino, (long)st.st_size, position,
        flags & ~(unsigned)O_CLOEXEC, st.st_mode, rest, link);
}

static void say_what_is_there(void)
{
    for (int fd = 0; fd < 64; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            say_descriptor(fd);
    FILE *const maps = fopen("/proc/self/maps", "r");
    char line[PATH_MAX + 100], path[PATH_MAX], rights[8];
    unsigned long from, to, offset, inode;
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        const int found = sscanf(line, "%lx-%lx %7s %lx %*s %lu %s", &from, &to, rights, &offset, &inode, path);
        if (found != 6 || path[0] != '/')
            continue;
        struct stat st;
        if (stat(path, &st) != 0)
            give_up("no %s", path);
        say("seed_map %lu/%lu/%lu/%lu/%d/%d values0=%ld path0=%s", from, to - from, offset, inode,
            (rights[0] == 'r') | (rights[1] == 'w') << 1 | (rights[2] == 'x') << 2, rights[3] == 's' ? 1 : 2,
            strstr(line, " (deleted)") ? (long)(to - from) : (long)st.st_size, path); /* shared memory: all of it */
    }
    if (maps != NULL)
        fclose(maps);
}

static void wait_for_recorder(void)
{
    while (access(full("hold"), F_OK) == 0)
        usleep(2000);
}

static void *other(void *unused)
{
    (void)unused;
    wait_for_recorder();
    char byte;
    WANT(pread(3, &byte, 1, 100), 1);
    return NULL;
}

int main(int argc, char **argv)
{
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    begin(argc, argv, NULL);
    int two[2];
    const int data = open(full("data"), O_RDWR), closes = open(full("data"), O_RDONLY | O_CLOEXEC);
    lseek(closes, 77, SEEK_SET);
    mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, data, 4096);
    mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, data, 8192);
    mmap(NULL, 4096, PROT_READ, MAP_SHARED, data, 16384);
    if (data != 3 || pipe2(two, O_NONBLOCK) != 0 || eventfd(3, EFD_CLOEXEC) < 0 || epoll_create1(0) < 0 ||
        memfd_create("m", 0) < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, two) != 0)
        give_up("cannot make them");
    for (int i = 0; i < 2; i++) {
        struct stat st;
        fstat(two[i], &st);
        g_peer[i] = st.st_ino;
    }
    dup2(closes, 63);
    fcntl(63, F_SETFD, FD_CLOEXEC);
    const int child = fork();
    pthread_t thread;
    if (child != 0)
        pthread_create(&thread, NULL, other, NULL);
    say_what_is_there();
    const int done = open(full(child == 0 ? "ready.child" : "ready"), O_CREAT | O_WRONLY, 0644);
    close(done);
    wait_for_recorder();
    WANT(CALL3(SYS_read, closes, g_buffer, 10), 10);
    say("raw read fd0=%d result=10", closes);
    WANT(CALL1(SYS_close, 63), 0);
    say("raw close fd0=63 result=0");
    if (child == 0)
        _exit(0);
    do_wait(child);
    pthread_join(thread, NULL);
    return 0;
}
