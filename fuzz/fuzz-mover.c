/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is said to a mover, on the simulated driver. Its source is included: it is a program. Its
 * descriptor 3 is the socket, of which this target plays the other end.
 *
 * The input is a series of packets: which request (0: none, the bytes are the whole packet), how many
 * descriptors and of what, the job, the number of bytes (two bytes), and the bytes behind the header.
 * A last bit of the first byte has the mover come to rest before the next one.
 *
 * Whatever was said: when all jobs are ended and all slabs removed, the mover holds nothing of the
 * device.
 */
int mover_main(int argc, char **argv);
#define main mover_main
#include "mover/mover.c"
#undef main

#include <assert.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/size.h"
#include "fuzz/target.h"
#include "sim/host.h"

#define MEMORY_SIZE (2 * MIB)
#define SLAB_SIZE   (4 * MIB)

enum { FD_MEMORY, FD_SLAB, FD_OTHER_MEMORY, FD_NULL, N_FDS };

static struct {
        struct mover mover;
        char directory[64];
        int client; /* our end of the socket */
        int fds[N_FDS];
        pid_t guest;
        int pidfd; /* of it */
        size_t free_at_first;
} fuzz;

/* Setting up, once. */

static void remove_host(void)
{
        kill(fuzz.guest, SIGKILL);
        (void)sim_host_remove(fuzz.directory);
}

/* A process that checkpoints can be tried on. */
static pid_t start_guest(void)
{
        int pair[2];
        pid_t pid;
        char byte;

        assert(pipe(pair) == 0);
        pid = fork();
        if (pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (driver_load() < 0 || write(pair[1], "", 1) != 1)
                        _exit(1);
                for (;;)
                        pause();
        }
        assert(read(pair[0], &byte, 1) == 1);
        close(pair[0]);
        close(pair[1]);
        return pid;
}

static int export_memory(int ordinal)
{
        const CUmemAllocationProp properties = {
                .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                .location = { CU_MEM_LOCATION_TYPE_DEVICE, ordinal },
        };
        void *library = dlopen(FUZZ_DRIVER, RTLD_NOW);
        __typeof__(&cuMemExportToShareableHandle) export_handle;
        CUmemGenericAllocationHandle handle;
        int fd;

        *(void **)&export_handle = dlsym(library, "cuMemExportToShareableHandle");
        assert(driver.cuMemCreate(&handle, MEMORY_SIZE, &properties, 0) == 0);
        assert(export_handle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) == 0);
        return fd;
}

static size_t free_memory(void)
{
        struct mover_done done = { 0 };
        size_t free_bytes, total;

        assert(device_enter(&fuzz.mover.device, &done) == 0);
        assert(driver.cuMemGetInfo_v2(&free_bytes, &total) == 0);
        return free_bytes;
}

static void connect_mover(void)
{
        int pair[2];

        assert(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
        assert(dup2(pair[1], MOVER_SOCKET) == MOVER_SOCKET);
        if (pair[1] != MOVER_SOCKET)
                close(pair[1]);
        fuzz.client = fcntl(pair[0], F_DUPFD_CLOEXEC, MOVER_SOCKET + 1);
        if (pair[0] != MOVER_SOCKET)
                close(pair[0]);
        assert(fcntl(fuzz.client, F_SETFL, O_NONBLOCK) == 0);
}

static void set_up(void)
{
        char uuid[DEVICE_UUID_MAX];
        CUuuid bytes;

        strcpy(fuzz.directory, "/tmp/vgfuzz-XXXXXX");
        assert(mkdtemp(fuzz.directory) && sim_host_create(fuzz.directory, "2xH200:64M") == 0);
        setenv("OPENVGPU_SIM", fuzz.directory, 1);
        setenv("OPENVGPU_DRIVER", FUZZ_DRIVER, 1);
        unsetenv("CUDA_VISIBLE_DEVICES");
        assert(freopen("/dev/null", "w", stderr)); /* the mover says what it refuses */
        fuzz.guest = start_guest();
        fuzz.pidfd = (int)syscall(SYS_pidfd_open, fuzz.guest, 0);
        assert(fuzz.pidfd >= 0);
        atexit(remove_host);

        assert(driver_load() == 0 && driver.cuDeviceGetUuid(&bytes, 0) == 0);
        device_format_uuid(uuid, &bytes);
        assert(mover_init(&fuzz.mover, strdup(uuid)) == 0);
        connect_mover();
        (void)free_memory(); /* the context stays */
        fuzz.fds[FD_MEMORY] = export_memory(0);
        fuzz.fds[FD_OTHER_MEMORY] = export_memory(1);
        fuzz.fds[FD_SLAB] = memfd_create("fuzz", MFD_CLOEXEC);
        assert(ftruncate(fuzz.fds[FD_SLAB], SLAB_SIZE) == 0);
        fuzz.fds[FD_NULL] = open("/dev/null", O_RDWR | O_CLOEXEC);
        fuzz.free_at_first = free_memory();
}

/* The manager. */

static void drain(void)
{
        union packet packet;
        int fds[PACKET_FDS_MAX];
        size_t size, n_fds;

        while (packet_receive(fuzz.client, &packet, &size, fds, &n_fds) == 0) {
                assert(n_fds == 0 && size >= sizeof(packet.header));
                assert(packet.header.message >= MOVER_INFO_IS);
                assert(packet.header.message <= MOVER_DONE);
        }
}

static void rest(void)
{
        for (size_t i = 0; i < N_LANES; i++) {
                struct lane *lane = &fuzz.mover.lanes[i];

                pthread_mutex_lock(&lane->lock);
                while (lane->first || lane->n_idle < lane->n_threads)
                        pthread_cond_wait(&lane->is_idle, &lane->lock);
                pthread_mutex_unlock(&lane->lock);
        }
        drain();
}

/* False: the mover would have ended. */
static bool say(const void *packet, size_t size, const int *fds, size_t n_fds)
{
        drain();
        assert(packet_send(fuzz.client, packet, size, fds, n_fds) == 0);
        return serve_one(&fuzz.mover) == 0;
}

/* Until then the mover would take nothing, and what asks for it would wait. */
static void end_lending(void)
{
        struct mover_lend end = {
                .header = { MOVER_WIRE_MAGIC, MOVER_WIRE_VERSION, MOVER_LEND_END, 0, 0 },
        };

        rest();
        while (fuzz.mover.lendings.first) {
                end.pid = fuzz.mover.lendings.first->pid;
                end.call = fuzz.mover.lendings.first->call;
                assert(say(&end, sizeof(end), NULL, 0));
        }
        rest();
}

/* A checkpoint of ourselves would never end. */
static void choose_process(union packet *packet, size_t size)
{
        if (size == sizeof(packet->checkpoint) && packet->header.message == MOVER_CHECKPOINT)
                packet->checkpoint.pid = packet->checkpoint.pid % 2 ? fuzz.guest : INT_MAX;
        if (size == sizeof(packet->checkpoint) && packet->checkpoint.timeout_ms > 100)
                packet->checkpoint.timeout_ms = 100;
}

static void end_everything(void)
{
        struct mover_header end = { MOVER_WIRE_MAGIC, MOVER_WIRE_VERSION, MOVER_JOB_END, 0, 0 };
        struct mover_slab remove = { .header = end };

        rest();
        while (fuzz.mover.jobs) {
                end.job = fuzz.mover.jobs->id;
                assert(say(&end, sizeof(end), NULL, 0));
        }
        rest();
        remove.header.message = MOVER_SLAB_REMOVE;
        for (remove.slab = 0; remove.slab < 256; remove.slab++) {
                assert(say(&remove, sizeof(remove), NULL, 0));
                rest();
        }
        assert(slabs_are_empty(&fuzz.mover.slabs));
        assert(fuzz.mover.n_jobs == 0);
        assert(free_memory() == fuzz.free_at_first);
}

/* The input. */

struct input {
        const uint8_t *data;
        size_t size;
};

static size_t take(struct input *input, void *bytes, size_t n)
{
        if (n > input->size)
                n = input->size;
        memcpy(bytes, input->data, n);
        input->data += n;
        input->size -= n;
        return n;
}

static bool one_packet(struct input *input)
{
        struct {
                uint8_t request, n_fds, job, low, high;
        } head = { 0 };
        size_t n = sizeof(operations) / sizeof(operations[0]), size, n_fds;
        union packet packet = { .header = { MOVER_WIRE_MAGIC, MOVER_WIRE_VERSION, 0, 1, 0 } };
        const struct operation *operation;
        int fds[PACKET_FDS_MAX];

        take(input, &head, sizeof(head));
        operation = &operations[head.request / 2 % n];
        n_fds = head.n_fds / N_FDS;
        for (size_t i = 0; i < n_fds; i++)
                fds[i] = fuzz.fds[head.n_fds % N_FDS];
        size = head.low + 256u * head.high;
        if (size > sizeof(packet) - sizeof(packet.header))
                size = sizeof(packet) - sizeof(packet.header);
        if (!operation->size) {
                size = take(input, packet.space, size);
        } else {
                packet.header.message = (uint16_t)(operation - operations);
                packet.header.job = head.job;
                take(input, packet.space + sizeof(packet.header), size);
                size = operation->size;
                if (operation->run == run_slab_add || operation->run == run_slab_remove ||
                    operation->run == run_slab_zero)
                        packet.slab.slab %= 256; /* those that end_everything() looks for */
        }
        choose_process(&packet, size);
        if (operation->run == run_checkpoint && n_fds == 0)
                fds[n_fds++] = fuzz.pidfd;
        if (size == 0 || !say(&packet, size, fds, n_fds))
                return false;
        if (operation->run == run_lend)
                end_lending();
        else if (head.request % 2)
                rest();
        return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct input input = { data, size };

        if (!fuzz.client)
                set_up();
        while (input.size > 0 && one_packet(&input))
                ;
        end_everything();
        return 0;
}
