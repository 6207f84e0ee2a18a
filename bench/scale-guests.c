/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that have joined vGPUs and do nothing: bench-scale-guests RUN_DIRECTORY N VGPU...
 *
 * N processes, one after another in each of the vGPUs. Prints "joined" when all have, and "ended" after
 * they were all killed, which a line on standard input starts: the kill, not the waiting, is at once.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/packet.h"
#include "wire/gate.h"

static int join(const char *run, const char *vgpu)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        struct gate_join join = { .header = { GATE_WIRE_MAGIC, GATE_WIRE_VERSION, GATE_JOIN },
                                  .state = GATE_STATE_OPEN };
        int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0), fds[PACKET_FDS_MAX];
        char bytes[PACKET_SIZE_MAX];
        size_t size, n_fds;

        snprintf(address.sun_path, sizeof(address.sun_path), "%s/gate.sock", run);
        snprintf(join.vgpu, sizeof(join.vgpu), "%s", vgpu);
        if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
            packet_send(fd, &join, sizeof(join), NULL, 0) < 0 ||
            packet_receive(fd, bytes, &size, fds, &n_fds) < 0)
                return -1;
        return ((struct gate_header *)(void *)bytes)->message == GATE_WELCOME ? 0 : -1;
}

static void live(const char *run, const char *vgpu, int told)
{
        char result = join(run, vgpu) < 0 ? 'f' : 'j';

        if (write(told, &result, 1) != 1)
                _exit(1);
        for (;;)
                pause();
}

int main(int argc, char **argv)
{
        int n = argc > 3 ? atoi(argv[2]) : 0, pipes[2];
        pid_t *pids = calloc((size_t)n + 1, sizeof(*pids));
        char result;

        if (n <= 0 || !pids || pipe(pipes) < 0)
                return 2;
        for (int i = 0; i < n; i++) {
                pids[i] = fork();
                if (pids[i] == 0)
                        live(argv[1], argv[3 + i % (argc - 3)], pipes[1]);
                if (pids[i] < 0 || read(pipes[0], &result, 1) != 1 || result != 'j')
                        fprintf(stderr, "process %d could not join\n", i);
        }
        puts("joined");
        (void)fflush(stdout);
        (void)getchar();
        for (int i = 0; i < n; i++)
                if (pids[i] > 0)
                        (void)kill(pids[i], SIGKILL);
        while (wait(NULL) > 0)
                ;
        puts("ended");
        return 0;
}
