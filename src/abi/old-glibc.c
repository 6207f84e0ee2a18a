/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is loaded into guests must load in containers of old distributions, from glibc 2.17 on, though it was
 * linked with a new one. Each function that a newer glibc has under a newer version is defined here
 * once more, for the library that this file is linked into and for nobody else: it calls the version that
 * has been there since glibc's beginning, or does without.
 *
 * Before glibc 2.34 some of them are in libdl.so.2 and libpthread.so.0, which the library hence needs too;
 * later these are empty. tests/abi/check-glibc.py reads off what was built that none is missing here.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HIDDEN __attribute__((visibility("hidden")))

/* @result @name@parameters, which is old_@name here and named @name for the rest of the library. */
#define OLD(result, name, parameters, arguments)                 \
        extern result old_##name parameters;                     \
        __asm__(".symver old_" #name ", " #name "@GLIBC_2.2.5"); \
        HIDDEN result new_##name parameters __asm__(#name);      \
        HIDDEN result new_##name parameters                      \
        {                                                        \
                return old_##name arguments;                     \
        }                                                        \
        struct old_needs_semicolon_##name

/* Of libdl. Who calls is told by the return address: the library itself, with or without us. */
OLD(void *, dlsym, (void *handle, const char *name), (handle, name));
OLD(void *, dlopen, (const char *name, int flags), (name, flags));
OLD(char *, dlerror, (void), ());
OLD(int, dladdr, (const void *address, Dl_info *info), (address, info));

/* Of libpthread. */
OLD(int, pthread_create,
    (pthread_t * thread, const pthread_attr_t *attributes, void *(*run)(void *), void *data),
    (thread, attributes, run, data));
OLD(int, pthread_detach, (pthread_t thread), (thread));
OLD(int, pthread_key_create, (pthread_key_t * key, void (*end)(void *)), (key, end));
OLD(int, pthread_setspecific, (pthread_key_t key, const void *value), (key, value));
OLD(int, pthread_mutex_trylock, (pthread_mutex_t * mutex), (mutex));
OLD(int, pthread_mutex_timedlock, (pthread_mutex_t * mutex, const struct timespec *until),
    (mutex, until));
OLD(int, pthread_once, (pthread_once_t * once, void (*run)(void)), (once, run));
OLD(int, pthread_sigmask, (int how, const sigset_t *set, sigset_t *old), (how, set, old));

extern int old_pthread_setname_np(pthread_t thread, const char *name);
__asm__(".symver old_pthread_setname_np, pthread_setname_np@GLIBC_2.12");
HIDDEN int new_pthread_setname_np(pthread_t thread, const char *name) __asm__("pthread_setname_np");
HIDDEN int new_pthread_setname_np(pthread_t thread, const char *name)
{
        return old_pthread_setname_np(thread, name);
}

/*
 * What reads numbers has other names from glibc 2.38 on, where it also knows C23's "0b1": headers say so.
 * We want none of that.
 */
#define OLD_C23(result, name, parameters, arguments)                    \
        extern result old_##name parameters;                            \
        __asm__(".symver old_" #name ", " #name "@GLIBC_2.2.5");        \
        HIDDEN result c23_##name parameters __asm__("__isoc23_" #name); \
        HIDDEN result c23_##name parameters                             \
        {                                                               \
                return old_##name arguments;                            \
        }                                                               \
        struct old_needs_semicolon_c23_##name

OLD_C23(long, strtol, (const char *text, char **end, int base), (text, end, base));
OLD_C23(unsigned long, strtoul, (const char *text, char **end, int base), (text, end, base));
OLD_C23(unsigned long long, strtoull, (const char *text, char **end, int base), (text, end, base));

extern int old_vsscanf(const char *text, const char *format, va_list arguments);
__asm__(".symver old_vsscanf, vsscanf@GLIBC_2.2.5");
HIDDEN int c23_sscanf(const char *text, const char *format, ...) __asm__("__isoc23_sscanf");
HIDDEN int c23_sscanf(const char *text, const char *format, ...)
{
        va_list arguments;
        int n;

        va_start(arguments, format);
        n = old_vsscanf(text, format, arguments);
        va_end(arguments);
        return n;
}

/* The kernel's structure is the same, on x86-64. */
HIDDEN int new_fstat64(int fd, struct stat *status) __asm__("fstat64");
HIDDEN int new_fstat64(int fd, struct stat *status)
{
        return (int)syscall(SYS_fstat, fd, status);
}

HIDDEN int new_stat64(const char *path, struct stat *status) __asm__("stat64");
HIDDEN int new_stat64(const char *path, struct stat *status)
{
        return (int)syscall(SYS_stat, path, status);
}

/* Whatever the third argument is, it is in the same register. */
extern int old_fcntl(int fd, int command, void *argument);
__asm__(".symver old_fcntl, fcntl@GLIBC_2.2.5");
HIDDEN int new_fcntl64(int fd, int command, void *argument) __asm__("fcntl64");
HIDDEN int new_fcntl64(int fd, int command, void *argument)
{
        return old_fcntl(fd, command, argument);
}

HIDDEN const char *new_strerrordesc_np(int error) __asm__("strerrordesc_np");
HIDDEN const char *new_strerrordesc_np(int error)
{
        return strerror(error);
}

/*
 * The waits by the monotonic clock came with glibc 2.30. Without them the time left is counted by the
 * clock of the day: who sets that meanwhile makes a wait longer or shorter, once.
 */
typedef int (*cond_clockwait_fn)(pthread_cond_t *, pthread_mutex_t *, clockid_t,
                                 const struct timespec *);
typedef int (*mutex_clocklock_fn)(pthread_mutex_t *, clockid_t, const struct timespec *);

static cond_clockwait_fn cond_clockwait;
static mutex_clocklock_fn mutex_clocklock;

__attribute__((constructor)) static void find(void)
{
        void *wait = dlsym(RTLD_DEFAULT, "pthread_cond_clockwait");
        void *lock = dlsym(RTLD_DEFAULT, "pthread_mutex_clocklock");

        memcpy(&cond_clockwait, &wait, sizeof(wait));
        memcpy(&mutex_clocklock, &lock, sizeof(lock));
}

static struct timespec by_day(clockid_t clock, const struct timespec *until)
{
        struct timespec now, day;

        clock_gettime(clock, &now);
        clock_gettime(CLOCK_REALTIME, &day);
        day.tv_sec += until->tv_sec - now.tv_sec;
        day.tv_nsec += until->tv_nsec - now.tv_nsec;
        if (day.tv_nsec < 0) {
                day.tv_sec--;
                day.tv_nsec += 1000000000;
        } else if (day.tv_nsec >= 1000000000) {
                day.tv_sec++;
                day.tv_nsec -= 1000000000;
        }
        return day;
}

HIDDEN int new_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock,
                              const struct timespec *until) __asm__("pthread_cond_clockwait");
HIDDEN int new_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock,
                              const struct timespec *until)
{
        struct timespec day;

        if (cond_clockwait)
                return cond_clockwait(condition, mutex, clock, until);
        day = by_day(clock, until);
        return pthread_cond_timedwait(condition, mutex, &day);
}

HIDDEN int new_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock,
                               const struct timespec *until) __asm__("pthread_mutex_clocklock");
HIDDEN int new_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock,
                               const struct timespec *until)
{
        struct timespec day;

        if (mutex_clocklock)
                return mutex_clocklock(mutex, clock, until);
        day = by_day(clock, until);
        return pthread_mutex_timedlock(mutex, &day);
}
