/* SPDX-License-Identifier: MIT */
/* Stands in for the driver that moves data between files and an accelerator: a process that is not recorded.
 * usage: driver FILE MICROSECONDS: each request takes so long at least; ends when FILE is gone. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "area.h"

static struct area *g_area;
static long g_least;

static void perform(struct slot *slot)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", slot->pid, slot->fd);
    const int whole = slot->offset % 4096 == 0 && slot->size % 4096 == 0;
    const int fd = open(path, (slot->writes ? O_WRONLY : O_RDONLY) | (whole ? O_DIRECT : 0));
    char *const memory = g_area->memory + slot->memory;
    usleep((useconds_t)g_least);
    slot->result = fd < 0 ? -1
                   : slot->writes ? pwrite(fd, memory, (size_t)slot->size, slot->offset)
                                  : pread(fd, memory, (size_t)slot->size, slot->offset);
    close(fd);
    atomic_store(&slot->state, DONE);
    wake_all(&g_area->done);
}

static void *serve(void *unused)
{
    (void)unused;
    for (;;) {
        const int asked = atomic_load(&g_area->asked);
        int any = 0;
        for (int i = 0; i < SLOTS; i++) {
            int state = ASKED;
            if (atomic_compare_exchange_strong(&g_area->slots[i].state, &state, TAKEN)) {
                perform(&g_area->slots[i]);
                any = 1;
            }
        }
        if (!any)
            wait_while(&g_area->asked, asked);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    const int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(struct area)) != 0)
        return 1;
    g_least = atol(argv[2]);
    g_area = mmap(NULL, sizeof *g_area, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (g_area == MAP_FAILED)
        return 1;
    for (int i = 0; i < 32; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, serve, NULL) != 0)
            return 1;
    }
    while (access(argv[1], F_OK) == 0)
        usleep(100000);
    return 0;
}
