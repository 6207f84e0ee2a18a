/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guests that share device memory:
 *
 *     guest-share make WAY PATH [SIZE [PIECES [DEVICE]]]   makes it, and gives it to all who connect
 *     guest-share use WAY PATH [SIZE [PIECES [DEVICE]]]    connects, and takes it
 *
 * WAY is "descriptor" (cuMemCreate(), SCM_RIGHTS), "ipc" (cuMemAlloc(), legacy IPC) or "pool" (a memory pool that
 * is exported, SCM_RIGHTS, and pointers into it); PATH a socket.
 * "ready" is printed when the memory is there. Then it does what it is told, by words on its standard
 * input, and prints each when that is done:
 *
 *     fill=N      writes N + i to each word of piece i
 *     check=N     ends with a message where that is not what it reads
 *     retain      gets another handle for each piece from its address, and gives the first back
 *     read        may only read from now on
 *     twice       maps the first piece at a second address, where "check" looks, too
 *     seize       tries the virtual-memory calls on the first piece, and prints "code CODE" for each
 *     expose      tries to give the first piece to each other device that it sees, and prints for each what became
 *                 of that and what access the device has: "code CODE access FLAGS"
 *     drop        gives everything back
 *     last=N      "fill", and gives everything back, without waiting for the device in between; of a pool
 *     alone       tries to allocate from the imported pool, and prints "code CODE"
 *     churn       a thread imports the first piece (a descriptor), maps and drops it, again and again; or (of a pool)
 *                 imports it, writes 77 and frees it behind that
 *     calm        ends it
 *     try=N       imports the first piece (a descriptor) N times, gives it back, and prints "code CODE", the last
 *     more        makes one more piece and exports it; or connects anew and takes the first that it has not
 *     name        exports the memory: with GUEST_SHARE_LATE=1 in the environment it has not been before
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/packet.h"
#include "base/size.h"
#include "tests/guests/driver.h"

#define PIECES_MAX 4096

static struct {
        bool is_maker, is_ipc, is_pool;
        uint64_t size;
        size_t n;
        CUdevice device;
        struct sockaddr_un address;
        CUdeviceptr at[PIECES_MAX], second;
        CUmemGenericAllocationHandle handle[PIECES_MAX];
        CUipcMemHandle ipc[PIECES_MAX];
        CUmemPoolPtrExportData exported[PIECES_MAX];
        CUmemoryPool pool;
        int pool_fd;
        int ticket[PIECES_MAX];
        int listener;
        CUcontext context;
        bool is_late; /* named by "name" */
        pthread_t churn;
        _Atomic bool is_calm;
} share = { .size = 4 * MIB, .n = 1 };

static void fail(const char *what)
{
        fprintf(stderr, "%s: %s\n", what, strerror(errno));
        exit(1);
}

static void set_access(CUdeviceptr at, int flags)
{
        const CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, share.device }, flags };

        must(DRIVER(cuMemSetAccess)(at, share.size, &access, 1));
}

static void map(CUdeviceptr *ret_at, CUmemGenericAllocationHandle handle)
{
        must(DRIVER(cuMemAddressReserve)(ret_at, share.size, 0, 0, 0));
        must(DRIVER(cuMemMap)(*ret_at, share.size, 0, handle, 0));
        set_access(*ret_at, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

/* The maker. */

static void name_piece(size_t i)
{
        if (share.is_pool)
                must(DRIVER(cuMemPoolExportPointer)(&share.exported[i], share.at[i]));
        else if (share.is_ipc)
                must(DRIVER(cuIpcGetMemHandle)(&share.ipc[i], share.at[i]));
        else
                must(DRIVER(cuMemExportToShareableHandle)(&share.ticket[i], share.handle[i],
                                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                                          0));
}

static void make_pool(void)
{
        CUmemPoolProps props;

        memset(&props, 0, sizeof(props));
        props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        props.location.id = share.device;
        must(DRIVER(cuMemPoolCreate)(&share.pool, &props));
        must(DRIVER(cuMemPoolExportToShareableHandle)(&share.pool_fd, share.pool,
                                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
}

static void make_piece(size_t i)
{
        CUmemAllocationProp prop;

        if (share.is_pool) {
                must(DRIVER(cuMemAllocFromPoolAsync)(&share.at[i], share.size, share.pool, NULL));
                return;
        }
        if (share.is_ipc) {
                must(DRIVER(cuMemAlloc_v2)(&share.at[i], share.size));
                return;
        }
        memset(&prop, 0, sizeof(prop));
        prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        prop.location.id = share.device;
        must(DRIVER(cuMemCreate)(&share.handle[i], share.size, &prop, 0));
        map(&share.at[i], share.handle[i]);
}

static int give_piece(int to, size_t i)
{
        if (share.is_pool)
                return packet_send(to, &share.exported[i], sizeof(share.exported[i]),
                                   &share.pool_fd, 1);
        return packet_send(to, &share.ipc[i], sizeof(share.ipc[i]), &share.ticket[i],
                           !share.is_ipc);
}

static void *give(void *unused)
{
        for (;;) {
                int to = accept(share.listener, NULL, NULL);

                for (size_t i = 0; i < share.n && to >= 0; i++)
                        if (give_piece(to, i) < 0)
                                break;
                if (to >= 0)
                        (void)close(to);
        }
        return unused;
}

static void make_all(void)
{
        const struct sockaddr_un *address = &share.address;
        pthread_t thread;

        if (share.is_pool)
                make_pool();
        for (size_t i = 0; i < share.n; i++) {
                make_piece(i);
                if (!share.is_late)
                        name_piece(i);
        }
        share.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        if (bind(share.listener, (const struct sockaddr *)address, sizeof(*address)) < 0 ||
            listen(share.listener, 64) < 0)
                fail(address->sun_path);
        if (pthread_create(&thread, NULL, give, NULL) != 0)
                fail("pthread_create");
}

/* Who uses it. */

/* Its descriptor, if it comes with one. */
static int receive_piece(CUipcMemHandle *ret_ipc, int from)
{
        char buffer[PACKET_SIZE_MAX];
        int fds[PACKET_FDS_MAX];
        size_t size, n_fds;

        errno = -packet_receive(from, buffer, &size, fds, &n_fds);
        if (errno || size != sizeof(*ret_ipc))
                fail("receiving");
        memcpy(ret_ipc, buffer, size);
        return n_fds > 0 ? fds[0] : -1;
}

static void take_pointer(size_t i, const CUipcMemHandle *data, int pool_fd)
{
        const CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, share.device },
                                         CU_MEM_ACCESS_FLAGS_PROT_READWRITE };

        memcpy(&share.exported[i], data, sizeof(share.exported[i]));
        if (!share.pool)
                must(DRIVER(cuMemPoolImportFromShareableHandle)(
                        &share.pool, (void *)(intptr_t)pool_fd,
                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
        (void)close(pool_fd);
        must(DRIVER(cuMemPoolSetAccess)(share.pool, &access, 1)); /* it may be on another device */
        must(DRIVER(cuMemPoolImportPointer)(&share.at[i], share.pool, &share.exported[i]));
}

static void take_piece(size_t i, int from)
{
        share.ticket[i] = receive_piece(&share.ipc[i], from);
        if (share.is_pool) {
                take_pointer(i, &share.ipc[i], share.ticket[i]);
                return;
        }
        if (share.is_ipc) {
                must(DRIVER(cuIpcOpenMemHandle_v2)(&share.at[i], share.ipc[i],
                                                   CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
                return;
        }
        must(DRIVER(cuMemImportFromShareableHandle)(&share.handle[i],
                                                    (void *)(intptr_t)share.ticket[i],
                                                    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
        map(&share.at[i], share.handle[i]);
}

/* Those before the first are let pass. */
static void take_from(size_t first)
{
        const struct sockaddr_un *address = &share.address;
        int from = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        CUipcMemHandle had;

        if (connect(from, (const struct sockaddr *)address, sizeof(*address)) < 0)
                fail(address->sun_path);
        for (size_t i = 0; i < first; i++)
                fd_close(receive_piece(&had, from));
        for (size_t i = first; i < share.n; i++)
                take_piece(i, from);
        (void)close(from);
}

/* Words. */

static void fill(unsigned int value)
{
        for (size_t i = 0; i < share.n; i++)
                must(DRIVER(cuMemsetD32_v2)(share.at[i], value + (unsigned int)i, share.size / 4));
        must(DRIVER(cuCtxSynchronize)());
}

static void check_at(CUdeviceptr at, unsigned int value)
{
        unsigned int *words = malloc(share.size);

        if (!words)
                fail("malloc");
        must(DRIVER(cuMemcpyDtoH_v2)(words, at, share.size));
        for (size_t i = 0; i < share.size / 4; i++)
                if (words[i] != value) {
                        fprintf(stderr, "word %zu at %llx is %u, not %u\n", i,
                                (unsigned long long)at, words[i], value);
                        exit(1);
                }
        free(words);
}

static void check(unsigned int value)
{
        for (size_t i = 0; i < share.n; i++)
                check_at(share.at[i], value + (unsigned int)i);
        if (share.second)
                check_at(share.second, value);
}

static void retain(void)
{
        for (size_t i = 0; i < share.n; i++) {
                CUmemGenericAllocationHandle second;

                must(DRIVER(cuMemRetainAllocationHandle)(
                        &second, (void *)(uintptr_t)(share.at[i] + share.size / 2)));
                must(DRIVER(cuMemRelease)(share.handle[i]));
                share.handle[i] = second;
        }
}

static void unmap(CUdeviceptr at, CUmemGenericAllocationHandle handle)
{
        must(DRIVER(cuMemUnmap)(at, share.size));
        must(DRIVER(cuMemAddressFree)(at, share.size));
        must(DRIVER(cuMemRelease)(handle));
}

static void free_all(void)
{
        for (size_t i = 0; i < share.n; i++) {
                if (share.is_pool) {
                        must(DRIVER(cuMemFreeAsync)(share.at[i], NULL));
                } else if (share.is_ipc && share.is_maker) {
                        must(DRIVER(cuMemFree_v2)(share.at[i]));
                } else if (share.is_ipc) {
                        must(DRIVER(cuIpcCloseMemHandle)(share.at[i]));
                } else {
                        unmap(share.at[i], share.handle[i]);
                }
        }
        share.n = 0;
}

/* Memory of a pool goes when the program waits. */
static void drop(void)
{
        free_all();
        must(DRIVER(cuStreamSynchronize)(NULL));
}

/* What is freed is freed behind what was written; the program never waits for that. */
static void write_and_drop(unsigned int value)
{
        for (size_t i = 0; i < share.n; i++)
                must(DRIVER(cuMemsetD32Async)(share.at[i], value + (unsigned int)i, share.size / 4,
                                              NULL));
        free_all();
}

static void allocate_alone(void)
{
        CUdeviceptr pointer;

        printf("code %d\n",
               DRIVER(cuMemAllocFromPoolAsync)(&pointer, share.size, share.pool, NULL));
}

static void churn_pointer(void)
{
        CUstream stream;

        must(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
        for (unsigned int i = 0; !atomic_load(&share.is_calm); i++) {
                CUdeviceptr at;

                must(DRIVER(cuMemPoolImportPointer)(&at, share.pool, &share.exported[0]));
                must(DRIVER(cuMemsetD32Async)(at, 77, share.size / 4, stream));
                must(DRIVER(cuMemFreeAsync)(at, stream));
                if (i % 16 == 0) /* the simulated stream takes any amount of work */
                        must(DRIVER(cuStreamSynchronize)(stream));
        }
        must(DRIVER(cuStreamSynchronize)(stream));
}

static void *churn(void *unused)
{
        must(DRIVER(cuCtxSetCurrent)(share.context));
        if (share.is_pool)
                churn_pointer();
        while (!atomic_load(&share.is_calm)) {
                CUmemGenericAllocationHandle handle;
                CUdeviceptr at;

                must(DRIVER(cuMemImportFromShareableHandle)(
                        &handle, (void *)(intptr_t)share.ticket[0],
                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
                map(&at, handle);
                unmap(at, handle);
        }
        return unused;
}

static void try_import(int n)
{
        CUmemGenericAllocationHandle handle;
        CUresult result = CUDA_SUCCESS;

        while (n-- > 0) {
                result = DRIVER(cuMemImportFromShareableHandle)(
                        &handle, (void *)(intptr_t)share.ticket[0],
                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
                if (result == CUDA_SUCCESS)
                        must(DRIVER(cuMemRelease)(handle));
        }
        printf("code %d\n", result);
}

static void seize(void)
{
        const CUdeviceptr at = share.at[0];
        const CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, share.device },
                                         CU_MEM_ACCESS_FLAGS_PROT_READ };
        CUmemGenericAllocationHandle handle;

        printf("code %d\n", DRIVER(cuMemRetainAllocationHandle)(&handle, (void *)(uintptr_t)at));
        printf("code %d\n", DRIVER(cuMemSetAccess)(at, share.size, &access, 1));
        printf("code %d\n", DRIVER(cuMemUnmap)(at, share.size));
        printf("code %d\n", DRIVER(cuMemAddressFree)(at, share.size));
}

static void expose(void)
{
        int n;

        must(DRIVER(cuDeviceGetCount)(&n));
        for (int i = 0; i < n; i++) {
                const CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, i },
                                                 CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
                unsigned long long flags = 0;
                CUresult result;

                if (i == share.device)
                        continue;
                result = DRIVER(cuMemSetAccess)(share.at[0], share.size, &access, 1);
                must(DRIVER(cuMemGetAccess)(&flags, &access.location, share.at[0]));
                printf("code %d access %llu\n", result, flags);
        }
}

static void start_churn(void)
{
        if (pthread_create(&share.churn, NULL, churn, NULL) != 0)
                fail("pthread_create");
}

static void end_churn(void)
{
        atomic_store(&share.is_calm, true);
        (void)pthread_join(share.churn, NULL);
}

static void name_all(void)
{
        for (size_t i = 0; i < share.n; i++)
                name_piece(i);
}

static void take_more(void)
{
        size_t n = share.n;

        if (n == PIECES_MAX)
                return;
        if (share.is_maker) {
                make_piece(n);
                name_piece(n);
        }
        share.n++;
        if (!share.is_maker)
                take_from(n);
}

static void do_word(const char *word)
{
        if (strncmp(word, "fill=", 5) == 0)
                fill((unsigned int)atoi(word + 5));
        else if (strncmp(word, "check=", 6) == 0)
                check((unsigned int)atoi(word + 6));
        else if (strncmp(word, "last=", 5) == 0)
                write_and_drop((unsigned int)atoi(word + 5));
        else if (strcmp(word, "alone") == 0)
                allocate_alone();
        else if (strncmp(word, "try=", 4) == 0)
                try_import(atoi(word + 4));
        else if (strcmp(word, "retain") == 0)
                retain();
        else if (strcmp(word, "read") == 0)
                set_access(share.at[0], CU_MEM_ACCESS_FLAGS_PROT_READ);
        else if (strcmp(word, "twice") == 0)
                map(&share.second, share.handle[0]);
        else if (strcmp(word, "seize") == 0)
                seize();
        else if (strcmp(word, "expose") == 0)
                expose();
        else if (strcmp(word, "drop") == 0)
                drop();
        else if (strcmp(word, "churn") == 0)
                start_churn();
        else if (strcmp(word, "calm") == 0)
                end_churn();
        else if (strcmp(word, "more") == 0)
                take_more();
        else if (strcmp(word, "name") == 0)
                name_all();
        else
                fprintf(stderr, "there is no '%s'\n", word);
        puts(word);
        (void)fflush(stdout);
}

static int understand(int argc, char **argv)
{
        struct sockaddr_un *address = &share.address;

        if (argc < 4 || argc > 7 || strlen(argv[3]) >= sizeof(address->sun_path))
                return -1;
        share.is_maker = strcmp(argv[1], "make") == 0;
        share.is_ipc = strcmp(argv[2], "ipc") == 0;
        share.is_pool = strcmp(argv[2], "pool") == 0;
        share.is_late = getenv("GUEST_SHARE_LATE") != NULL;
        address->sun_family = AF_UNIX;
        strcpy(address->sun_path, argv[3]);
        if (argc > 4 && size_parse(&share.size, argv[4]) < 0)
                return -1;
        if (argc > 5)
                share.n = (size_t)atoi(argv[5]);
        if (argc > 6)
                share.device = atoi(argv[6]);
        return share.n > PIECES_MAX ? -1 : 0;
}

int main(int argc, char **argv)
{
        char word[32];

        if (understand(argc, argv) < 0) {
                fprintf(stderr,
                        "usage: guest-share make|use descriptor|ipc|pool PATH [SIZE [PIECES "
                        "[DEVICE]]]\n");
                return 2;
        }
        must(DRIVER(cuInit)(0));
        must(DRIVER(cuDevicePrimaryCtxRetain)(&share.context, share.device));
        must(DRIVER(cuCtxSetCurrent)(share.context));
        if (share.is_maker)
                make_all();
        else
                take_from(0);
        puts("ready");
        (void)fflush(stdout);
        while (scanf("%31s", word) == 1)
                do_word(word);
        return 0;
}
