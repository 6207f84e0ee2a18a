/* SPDX-License-Identifier: Apache-2.0 */
#include "fake/manager.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"

#define CALLS_MAX       16
#define CALL_SIZE       4096
#define CONNECTIONS_MAX 8

struct fake_manager {
        char directory[64];
        char socket_path[96];
        int listener;
        int stop[2]; /* a pipe: readable when the thread shall end */
        pthread_t thread;
        const struct fake_step *steps;
        size_t n_steps;

        pthread_mutex_t lock; /* of what follows */
        size_t n_calls;
        char calls[CALLS_MAX][CALL_SIZE];
};

static void must(bool is_good, const char *what)
{
        if (is_good)
                return;
        perror(what);
        abort();
}

static void swap_quotes(char *text, char from, char to)
{
        for (; *text; text++)
                if (*text == from)
                        *text = to;
}

/* False: told to stop. */
static bool wait_readable(const struct fake_manager *fake, int fd)
{
        struct pollfd pollers[] = { { .fd = fd, .events = POLLIN },
                                    { .fd = fake->stop[0], .events = POLLIN } };

        while (poll(pollers, 2, -1) < 0)
                ;
        return pollers[1].revents == 0;
}

static bool read_call(const struct fake_manager *fake, int fd, char *text)
{
        for (size_t n = 0; n < CALL_SIZE; n++) {
                if (!wait_readable(fake, fd) || read(fd, text + n, 1) != 1)
                        return false;
                if (text[n] == '\0')
                        return true;
        }
        return false;
}

static void send_bytes(int fd, const char *bytes, size_t n)
{
        while (n > 0) {
                ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);

                if (sent < 0)
                        return; /* a client may hang up on what it does not like */
                bytes += sent;
                n -= (size_t)sent;
        }
}

static void send_text(int fd, const char *text, bool has_end)
{
        CLEANUP(freep) char *json = strdup(text);

        must(json, "strdup");
        swap_quotes(json, '\'', '"');
        send_bytes(fd, json, strlen(json) + has_end);
}

static void send_junk(int fd, size_t n)
{
        char letters[4096];

        memset(letters, 'x', sizeof(letters));
        for (; n > 0; n -= n < sizeof(letters) ? n : sizeof(letters))
                send_bytes(fd, letters, n < sizeof(letters) ? n : sizeof(letters));
}

/* Remembers the call and finds its step; NULL: none is left. */
static const struct fake_step *take_call(struct fake_manager *fake, char *text)
{
        const struct fake_step *step = NULL;

        swap_quotes(text, '"', '\'');
        pthread_mutex_lock(&fake->lock);
        if (fake->n_calls < fake->n_steps)
                step = &fake->steps[fake->n_calls];
        if (fake->n_calls < CALLS_MAX)
                memcpy(fake->calls[fake->n_calls++], text, strlen(text) + 1);
        pthread_mutex_unlock(&fake->lock);
        return step;
}

/* False: the connection ends. */
static bool answer(int fd, const struct fake_step *step, const char *call)
{
        char method[128];

        if (!step)
                return false;
        if (step->before)
                step->before();

        snprintf(method, sizeof(method), "'method':'org.openvgpu.%s'",
                 step->method ? step->method : "");
        if (step->method && !strstr(call, method)) {
                send_text(fd,
                          "{'error':'org.openvgpu.Failed','parameters':"
                          "{'message':'the test expected another method'}}",
                          true);
                return true;
        }
        for (size_t i = 0; i < FAKE_ANSWERS_MAX && step->answers[i]; i++)
                send_text(fd, step->answers[i], true);
        if (step->cut)
                send_text(fd, step->cut, false);
        send_junk(fd, step->junk);
        return !step->hang_up;
}

/* Any vgpu of this machine that finds no vgpud asks the sockets of this name whether one answers: not for the steps. */
static bool is_of_the_test(int fd)
{
        struct ucred peer = { .pid = -1 };
        socklen_t size = sizeof(peer);

        return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
               getpgid(peer.pid) == getpgrp();
}

/* The next call of a connection. False: the connection ends. */
static bool serve(struct fake_manager *fake, int fd)
{
        char text[CALL_SIZE];

        return read_call(fake, fd, text) && answer(fd, take_call(fake, text), text);
}

/* What they are polled for: to stop, for a new connection, for calls. */
enum { STOP, LISTENER, CONNECTIONS };

static void accept_one(struct fake_manager *fake, struct pollfd *pollers, nfds_t *n)
{
        int fd = accept4(fake->listener, NULL, NULL, SOCK_CLOEXEC);

        if (fd < 0)
                return;
        if (is_of_the_test(fd) && *n < CONNECTIONS + CONNECTIONS_MAX)
                pollers[(*n)++] = (struct pollfd){ .fd = fd, .events = POLLIN };
        else
                close(fd);
}

/* A command has several connections, and may wait for the last one to be answered before it ends the first. */
static void *run_fake_manager(void *userdata)
{
        struct fake_manager *fake = userdata;
        struct pollfd pollers[CONNECTIONS + CONNECTIONS_MAX] = {
                [STOP] = { .fd = fake->stop[0], .events = POLLIN },
                [LISTENER] = { .fd = fake->listener, .events = POLLIN },
        };
        nfds_t n = CONNECTIONS;

        while (pollers[STOP].revents == 0) {
                if (poll(pollers, n, -1) < 0)
                        continue;
                for (nfds_t i = n; i-- > CONNECTIONS;)
                        if (pollers[i].revents && !serve(fake, pollers[i].fd)) {
                                close(pollers[i].fd);
                                pollers[i] = pollers[--n];
                        }
                if (pollers[LISTENER].revents)
                        accept_one(fake, pollers, &n);
        }
        while (n > CONNECTIONS)
                close(pollers[--n].fd);
        return NULL;
}

struct fake_manager *fake_manager_new(const struct fake_step *steps, size_t n_steps)
{
        struct fake_manager *fake = calloc(1, sizeof(*fake));
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        must(fake, "calloc");
        fake->steps = steps;
        fake->n_steps = n_steps;
        snprintf(fake->directory, sizeof(fake->directory), "/tmp/vgpu-fake-XXXXXX");
        must(mkdtemp(fake->directory), "mkdtemp");
        snprintf(fake->socket_path, sizeof(fake->socket_path), "%s/control.sock", fake->directory);
        memcpy(address.sun_path, fake->socket_path, sizeof(fake->socket_path));

        must(pthread_mutex_init(&fake->lock, NULL) == 0, "pthread_mutex_init");
        must(pipe2(fake->stop, O_CLOEXEC) == 0, "pipe2");
        fake->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        must(bind(fake->listener, (const struct sockaddr *)&address, sizeof(address)) == 0, "bind");
        must(listen(fake->listener, 8) == 0, "listen");
        must(pthread_create(&fake->thread, NULL, run_fake_manager, fake) == 0, "pthread_create");
        return fake;
}

struct fake_manager *fake_manager_free(struct fake_manager *fake)
{
        if (!fake)
                return NULL;

        must(write(fake->stop[1], "", 1) == 1, "write");
        pthread_join(fake->thread, NULL);
        pthread_mutex_destroy(&fake->lock);
        fd_close(fake->stop[0]);
        fd_close(fake->stop[1]);
        fd_close(fake->listener);
        unlink(fake->socket_path);
        rmdir(fake->directory);
        free(fake);
        return NULL;
}

const char *fake_manager_get_directory(const struct fake_manager *fake)
{
        return fake->directory;
}

const char *fake_manager_get_call(struct fake_manager *fake, size_t i)
{
        const char *call;

        pthread_mutex_lock(&fake->lock);
        call = i < fake->n_calls ? fake->calls[i] : "";
        pthread_mutex_unlock(&fake->lock);
        return call;
}
