/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated host: a directory that stands for a machine with GPUs. */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stddef.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "sim/host-layout.h"
#include "sim/test-guest.h"

static int create_new(const char *specification)
{
        char directory[] = "/tmp/sim-test-XXXXXX";
        int r;

        assert_non_null(mkdtemp(directory));
        r = sim_host_create(directory, specification);
        if (sim_host_remove(directory) < 0) {
                char lock[64];

                (void)snprintf(lock, sizeof(lock), "%s/lock", directory);
                (void)unlink(lock);
                (void)rmdir(directory);
        }
        return r;
}

static void test_specifications_are_counts_kinds_and_sizes(void **state)
{
        static const struct {
                const char *text;
                int result;
        } cases[] = {
                { "H200", 0 },          { "2xH200", 0 },       { "2xH200:2G", 0 },
                { "1xH200,1xL4", 0 },   { "32xT4:64M", 0 },    { "1xA100:512M,2xB200", 0 },
                { "", -EINVAL },        { "H300", -EINVAL },   { "0xH200", -EINVAL },
                { "33xH200", -EINVAL }, { "xH200", -EINVAL },  { "2xH200:", -EINVAL },
                { "2x", -EINVAL },      { "H200:1", -EINVAL }, { "H200:two", -EINVAL },
                { "-1xH200", -EINVAL },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                int r = create_new(cases[i].text);

                if (r != cases[i].result)
                        fail_msg("\"%s\" gives %d, not %d", cases[i].text, r, cases[i].result);
        }
}

static void see_devices(int socket)
{
        char name[64], bus[32];
        CUuuid uuid[2];
        size_t size;
        int count;

        (void)socket;
        must(cuInit(0));
        must(cuDeviceGetCount(&count));
        must_equal(count, 2);
        must(cuDeviceGetName(name, sizeof(name), 1));
        must_equal(strcmp(name, "NVIDIA H200"), 0);
        must(cuDeviceTotalMem_v2(&size, 0));
        must_equal(size, 1 * GIB);
        must(cuDeviceGetUuid(&uuid[0], 0));
        must(cuDeviceGetUuid(&uuid[1], 1));
        must_equal(memcmp(&uuid[0], &uuid[1], sizeof(uuid[0])) != 0, 1);
        must(cuDeviceGetPCIBusId(bus, sizeof(bus), 1));
        must_equal(strcmp(bus, "0000:07:00.0"), 0);
        must(cuDeviceGetByPCIBusId(&count, "0000:07:00.0"));
        must_equal(count, 1);
        must_equal(cuDeviceGet(&count, 2), CUDA_ERROR_INVALID_DEVICE);
}

/* As if there were as many processes as there is room for. */
static void take_all_slots(int socket)
{
        struct flock record = { .l_type = F_WRLCK,
                                .l_whence = SEEK_SET,
                                .l_start = HOST_SLOTS_KEPT,
                                .l_len = HOST_SLOTS - HOST_SLOTS_KEPT };
        char path[128];
        const uint32_t n = HOST_SLOTS;
        const int32_t pid = getpid();
        int fd;

        (void)snprintf(path, sizeof(path), "%s/slots", getenv(SIM_HOST_VARIABLE));
        fd = open(path, O_RDWR | O_CLOEXEC);
        must_equal(fcntl(fd, F_SETLK, &record), 0);
        for (unsigned int i = HOST_SLOTS_KEPT; i < HOST_SLOTS; i++)
                must_equal(pwrite(fd, &pid, sizeof(pid), offsetof(struct host_slots, slot[i].pid)),
                           sizeof(pid));
        must_equal(pwrite(fd, &n, sizeof(n), 0), sizeof(n));
        guest_tell(socket, 1, -1);
        (void)guest_hear(socket, NULL);
}

static void find_no_room(int socket)
{
        (void)socket;
        must_equal(cuInit(0), CUDA_ERROR_OUT_OF_MEMORY);
}

static void find_kept_room(int socket)
{
        (void)socket;
        must_equal(setenv(SIM_HOST_OWN_VARIABLE, "1", 1), 0);
        must(cuInit(0));
}

static void test_a_host_of_a_thousand_and_more_processes_has_room_for_its_own(void **state)
{
        struct guest crowd = guest_start(take_all_slots);

        (void)state;
        assert_true(HOST_SLOTS - HOST_SLOTS_KEPT > 1000);
        assert_int_equal(guest_hear(crowd.socket, NULL), 1);
        guest_run(find_no_room);
        guest_run(find_kept_room);
        guest_tell(crowd.socket, 0, -1);
        assert_int_equal(guest_end(&crowd), 0);
        guest_run(see_devices); /* they are dead, and their slots are free */
}

static void test_a_process_sees_the_devices(void **state)
{
        (void)state;
        guest_run(see_devices);
}

static void stay(int socket)
{
        (void)guest_init(0);
        guest_tell(socket, 0, -1);
        (void)guest_hear(socket, NULL);
}

static void test_a_host_with_processes_is_kept_or_refused(void **state)
{
        struct guest guest = guest_start(stay);

        (void)state;
        (void)guest_hear(guest.socket, NULL);
        assert_int_equal(sim_host_create(test_directory, "2xH200:1G"), 0);
        assert_int_equal(sim_host_create(test_directory, "4xH200:1G"), -EBUSY);
        assert_int_equal(sim_host_remove(test_directory), -EBUSY);
        guest_tell(guest.socket, 0, -1);
        assert_int_equal(guest_end(&guest), 0);
        guest_run(see_devices);
}

/* As in a container with a /tmp of its own and the /dev/shm of the machine. */
static void create_elsewhere(int socket)
{
        if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("none", "/tmp", "tmpfs", 0, "size=64M") < 0) {
                guest_tell(socket, 1, -1);
                return;
        }
        must_equal(create_new("T4"), 0);
        guest_tell(socket, 0, -1);
}

static void test_a_host_that_only_another_namespace_sees_is_left_alone(void **state)
{
        struct guest guest = guest_start(create_elsewhere);
        bool is_forbidden = guest_hear(guest.socket, NULL);

        (void)state;
        assert_int_equal(guest_end(&guest), 0);
        if (is_forbidden)
                skip();
        guest_run(see_devices);
}

static void forget(const char *directory, const char *name)
{
        char path[96];

        (void)snprintf(path, sizeof(path), "%s/%s", directory, name);
        (void)unlink(path);
}

static void put(const char *directory, const char *name, const char *target)
{
        char path[96];

        forget(directory, name);
        (void)snprintf(path, sizeof(path), "%s/%s", directory, name);
        assert_int_equal(symlink(target, path), 0);
}

static void claim_memory(const char *directory, const char *folder)
{
        char path[96], memory[HOST_PATH_MAX];
        int fd;

        (void)snprintf(path, sizeof(path), "%s/host", directory);
        (void)snprintf(memory, sizeof(memory), "/dev/shm/openvgpu-sim-1/../../..%s", folder);
        fd = open(path, O_RDWR | O_CLOEXEC);
        assert_int_equal(pwrite(fd, memory, sizeof(memory), offsetof(struct host, memory)),
                         sizeof(memory));
        (void)close(fd);
        (void)mkdir("/dev/shm/openvgpu-sim-1", 0700);
}

/* A folder for memory as it is left by a host that is gone; below another root if @root_offset is not 0. */
static void leave_memory(char path[96], unsigned int root_offset)
{
        struct stat space, root;
        char link[128];

        assert_int_equal(stat("/proc/self/ns/mnt", &space), 0);
        assert_int_equal(stat("/", &root), 0);
        (void)snprintf(path, 96, "/dev/shm/openvgpu-sim-%llu.%llu-test%d",
                       (unsigned long long)space.st_ino,
                       (unsigned long long)root.st_ino + root_offset, (int)getpid());
        assert_int_equal(mkdir(path, 0700), 0);
        (void)snprintf(link, sizeof(link), "%s/.host", path);
        assert_int_equal(symlink("/nonexistent/host", link), 0);
}

/* Who is in a chroot does not see the hosts outside of it. */
static void test_only_memory_of_hosts_that_can_be_seen_is_swept(void **state)
{
        char directory[] = "/tmp/sim-test-XXXXXX", here[96], elsewhere[96], link[128];
        struct stat status;

        (void)state;
        assert_non_null(mkdtemp(directory));
        leave_memory(here, 0);
        leave_memory(elsewhere, 1);
        assert_int_equal(sim_host_create(directory, "T4"), 0);
        assert_int_equal(stat(here, &status), -1);
        assert_int_equal(stat(elsewhere, &status), 0);
        (void)snprintf(link, sizeof(link), "%s/.host", elsewhere);
        assert_int_equal(unlink(link), 0);
        assert_int_equal(rmdir(elsewhere), 0);
        assert_int_equal(sim_host_remove(directory), 0);
}

/* As a process that was killed leaves memory that it has shared: nobody locks the file any more. */
static void test_memory_that_nobody_holds_is_swept(void **state)
{
        char directory[] = "/dev/shm/sim-test-XXXXXX", dead[64], alive[64];
        struct stat status;
        int fd;

        (void)state;
        assert_non_null(mkdtemp(directory));
        assert_int_equal(sim_host_create(directory, "T4"), 0);
        (void)snprintf(dead, sizeof(dead), "%s/memory/0-2097152-0-1", directory);
        (void)snprintf(alive, sizeof(alive), "%s/memory/0-2097152-0-2", directory);
        (void)close(open(dead, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        fd = open(alive, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_int_equal(flock(fd, LOCK_EX), 0);

        assert_int_equal(sim_host_create(directory, "T4"), 0); /* the next vgpud */
        assert_int_equal(stat(dead, &status), -1);
        assert_int_equal(stat(alive, &status), 0);
        (void)close(fd);
        sim_host_sweep(directory); /* its end */
        assert_int_equal(stat(alive, &status), -1);
        assert_int_equal(sim_host_remove(directory), 0);
}

/* The host of root is for all: anybody can put anything there. */
static void test_a_host_leads_to_nobody_elses_files(void **state)
{
        char directory[] = "/tmp/sim-test-XXXXXX", folder[] = "/tmp/sim-test-XXXXXX", file[64];
        struct stat status;

        (void)state;
        assert_non_null(mkdtemp(directory));
        assert_non_null(mkdtemp(folder));
        (void)snprintf(file, sizeof(file), "%s/file", folder);
        (void)close(open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));

        assert_int_equal(sim_host_create(directory, "T4"), 0);
        claim_memory(directory, folder);
        assert_int_equal(sim_host_create(directory, "L4"), 0);
        claim_memory(directory, folder);
        assert_int_equal(sim_host_remove(directory), 0);
        assert_int_equal(stat(file, &status), 0);

        assert_int_equal(mkdir(directory, 0700), 0);
        put(directory, "turn-0", file);
        assert_int_equal(sim_host_create(directory, "T4"), -ELOOP);
        put(directory, "lock", file);
        assert_int_equal(sim_host_create(directory, "T4"), -ELOOP);
        assert_int_equal(stat(file, &status), 0);
        assert_int_equal(status.st_mode & 0777, 0600);

        forget(directory, "turn-0");
        forget(directory, "lock");
        assert_int_equal(sim_host_create(directory, "T4"), 0);
        assert_int_equal(sim_host_remove(directory), 0);
        (void)rmdir("/dev/shm/openvgpu-sim-1");
        (void)unlink(file);
        (void)rmdir(folder);
}

static const char *visible;
static int visible_count, visible_first;

static void see_visible(int socket)
{
        CUuuid uuid;
        int count;

        (void)socket;
        (void)setenv("CUDA_VISIBLE_DEVICES", visible, 1);
        if (visible_count == 0) {
                must_equal(cuInit(0), CUDA_ERROR_NO_DEVICE);
                return;
        }
        must(cuInit(0));
        must(cuDeviceGetCount(&count));
        must_equal(count, visible_count);
        must(cuDeviceGetAttribute(&count, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 0));
        must_equal(count, 6 + visible_first);
        must(cuDeviceGetUuid(&uuid, 0));
}

static char uuid_text[48];

static void tell_uuid(int socket)
{
        CUuuid uuid;
        uint64_t half[2];

        must(cuInit(0));
        must(cuDeviceGetUuid(&uuid, 1));
        memcpy(half, uuid.bytes, sizeof(half));
        guest_tell(socket, half[0], -1);
        guest_tell(socket, half[1], -1);
}

static void format_uuid_of_device_1(void)
{
        struct guest guest = guest_start(tell_uuid);
        uint64_t half[2] = { guest_hear(guest.socket, NULL), guest_hear(guest.socket, NULL) };
        uint8_t b[16];

        memcpy(b, half, sizeof(b));
        (void)snprintf(uuid_text, sizeof(uuid_text),
                       "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
                       b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11],
                       b[12], b[13], b[14], b[15]);
        assert_int_equal(guest_end(&guest), 0);
}

static void test_visible_devices_are_indices_or_uuids_or_prefixes(void **state)
{
        char prefix[13];
        const struct {
                const char *text;
                int count, first;
        } cases[] = {
                { "0", 1, 0 },   { "1", 1, 1 },    { "1,0", 2, 1 },     { "0,1", 2, 0 },
                { "", 0, 0 },    { "2", 0, 0 },    { "0,7,1", 1, 0 },   { "-1", 0, 0 },
                { "x", 0, 0 },   { "GPU-", 0, 0 }, { uuid_text, 1, 1 }, { prefix, 1, 1 },
                { "1,1", 1, 1 },
        };

        (void)state;
        format_uuid_of_device_1();
        memcpy(prefix, uuid_text, sizeof(prefix) - 1);
        prefix[sizeof(prefix) - 1] = '\0';
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                visible = cases[i].text;
                visible_count = cases[i].count;
                visible_first = cases[i].first;
                guest_run(see_visible);
        }
}

static void find_no_host(int socket)
{
        (void)socket;
        (void)setenv(SIM_HOST_VARIABLE, "/nonexistent", 1);
        must_equal(cuInit(0), CUDA_ERROR_NO_DEVICE);
        must_equal(cuInit(0), CUDA_ERROR_NO_DEVICE);
}

static void test_without_a_host_there_is_no_device(void **state)
{
        (void)state;
        guest_run(find_no_host);
}

static char moved[64];

static void find_moved_host(int socket)
{
        (void)socket;
        (void)setenv(SIM_HOST_VARIABLE, moved, 1);
        must(cuInit(0));
}

/* As a container does that has the directory elsewhere, and nothing where it was. */
static void test_a_host_in_a_tmpfs_is_found_where_it_is_mounted(void **state)
{
        char directory[] = "/dev/shm/sim-test-XXXXXX";

        (void)state;
        assert_non_null(mkdtemp(directory));
        assert_int_equal(sim_host_create(directory, "1xH200:1G"), 0);
        (void)snprintf(moved, sizeof(moved), "%s.moved", directory);
        assert_int_equal(rename(directory, moved), 0);
        guest_run(find_moved_host);
        assert_int_equal(sim_host_remove(moved), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_specifications_are_counts_kinds_and_sizes),
                cmocka_unit_test(test_a_host_of_a_thousand_and_more_processes_has_room_for_its_own),
                cmocka_unit_test(test_a_process_sees_the_devices),
                cmocka_unit_test(test_a_host_with_processes_is_kept_or_refused),
                cmocka_unit_test(test_a_host_that_only_another_namespace_sees_is_left_alone),
                cmocka_unit_test(test_only_memory_of_hosts_that_can_be_seen_is_swept),
                cmocka_unit_test(test_memory_that_nobody_holds_is_swept),
                cmocka_unit_test(test_a_host_leads_to_nobody_elses_files),
                cmocka_unit_test(test_visible_devices_are_indices_or_uuids_or_prefixes),
                cmocka_unit_test(test_without_a_host_there_is_no_device),
                cmocka_unit_test(test_a_host_in_a_tmpfs_is_found_where_it_is_mounted),
        };
        int failed;

        test_host_create("2xH200:1G");
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        test_host_remove();
        return failed;
}
