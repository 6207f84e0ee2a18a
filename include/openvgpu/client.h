/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_CLIENT_H
#define OPENVGPU_CLIENT_H

/*
 * Client: the way to the manager, vgpud, and the reason why the last call failed.
 *
 * Making a client opens nothing. The first call that needs the manager connects; a call after the
 * connection broke connects again. No call is ever sent twice.
 *
 * Threads:  a client belongs to one thread at a time; make one for each thread. Nothing is shared
 *           between clients.
 * Time:     a call waits 10 seconds for its answer (vgpu_client_set_timeout_ms()); suspend, resume
 *           and migrate wait as long as the manager holds the connection. Signals interrupt nothing.
 * Errors:   0 or a negative errno. After a failure vgpu_client_get_error() has the kind, which is
 *           finer, a message and a hint for people, and what else is known.
 * Source:   docs/control-protocol.md.
 */

#include <openvgpu/base.h>
#include <openvgpu/error.h>

VGPU_BEGIN_DECLS

struct vgpu_client;

/**
 * vgpu_client_new() - make a client; does not connect
 * @ret_client:     the caller owns it and frees it with vgpu_client_free()
 * @run_directory:  where the manager's socket is; copied. NULL: $OPENVGPU_RUN, else
 *                  /run/openvgpu if a manager is there or the caller is root, else
 *                  $XDG_RUNTIME_DIR/openvgpu, else /tmp/openvgpu-UID. Unless it was named, calls
 *                  to a manager that is neither root nor the caller are PERMISSION_DENIED
 *
 * Errors: -ENAMETOOLONG, no socket can have such a path. -ENOMEM.
 */
int vgpu_client_new(struct vgpu_client **ret_client, const char *run_directory);

/** vgpu_client_free() - disconnect; NULL is fine. Returns NULL. */
struct vgpu_client *vgpu_client_free(struct vgpu_client *client);

/** vgpu_client_set_timeout_ms() - how long a call waits for its answer; 0 restores 10 seconds. */
void vgpu_client_set_timeout_ms(struct vgpu_client *client, unsigned int timeout_ms);

/** vgpu_client_get_run_directory() - borrowed; valid as long as @client. */
const char *vgpu_client_get_run_directory(const struct vgpu_client *client);

/**
 * vgpu_client_get_error() - why the last call with @client failed
 *
 * Never NULL; the kind is VGPU_ERROR_NONE when it succeeded. Borrowed: valid until the next call
 * with @client.
 */
const struct vgpu_error *vgpu_client_get_error(const struct vgpu_client *client);

VGPU_END_DECLS

#endif
