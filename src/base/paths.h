/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_PATHS_H
#define BASE_PATHS_H

/*
 * Paths of the run, state and private directories.
 *
 * Run directory (sockets, state page; gone after a reboot): $OPENVGPU_RUN, else /run/openvgpu for
 * root, else $XDG_RUNTIME_DIR/openvgpu, else /tmp/openvgpu-UID. A client without $OPENVGPU_RUN that
 * is not root asks the manager of its own user while there is one, else that of the machine (paths_choose()).
 *
 * State directory (databases that must last): $OPENVGPU_STATE, else /var/lib/openvgpu for root,
 * else $XDG_STATE_HOME/openvgpu, else $HOME/.local/state/openvgpu.
 *
 * Private directory (gate, simulated driver, NVML, helper programs): $OPENVGPU_LIB, else
 * ../lib/openvgpu from the running program's folder, so that an installed tree can be moved.
 *
 * All functions write into the caller's PATHS_MAX bytes. Errors: -ENAMETOOLONG.
 */

#include <stdbool.h>

#define PATHS_MAX 512

#define PATHS_RUN_MACHINE "/run/openvgpu" /* the run directory of root's manager */

/* In the run directory. A sun_path is 108 bytes, so the run directory is kept short. */
#define PATHS_CONTROL_SOCKET "control.sock" /* JSON for clients */
#define PATHS_GATE_SOCKET    "gate.sock"    /* wire/gate.h */
#define PATHS_KEEPER_SOCKET  "keeper.sock"  /* wire/keeper.h */
#define PATHS_STATE_PAGE     "state-page"   /* state/state-page.h */
#define PATHS_SIMULATION     "sim"          /* the simulated host, see src/sim */

/* In the private directory. */
#define PATHS_GATE         "gate/libcuda.so.1"
#define PATHS_SIM_DRIVER   "sim/libcuda.so.1"
#define PATHS_NVML         "nvml"
#define PATHS_MOVER        "vgpu-mover"
#define PATHS_KEEPER       "vgpu-keeper"
#define PATHS_SAMPLER      "vgpu-sampler"
#define PATHS_CHECKPOINTER "vgpu-checkpointer"

int paths_run(char *path);
int paths_run_client(char *path);
bool paths_run_is_given(void); /* by $OPENVGPU_RUN; else nobody said whom to believe */
/*
 * paths_choose() - the run directory for a client, one of the two. @own if a manager answers there; else @machine if one
 * answers there; else where one has ended, @own first; else @own.
 */
const char *paths_choose(const char *own, const char *machine);
/* paths_is_passed_by() - has the manager of @own ended, and a client asks that of @machine instead? */
bool paths_is_passed_by(const char *own, const char *machine);
int paths_state(char *path);
int paths_private(char *path);

/* paths_search() - where execvp() would find @program. -ENOENT: nowhere. */
int paths_search(char *path, const char *program);

/* paths_join() - @directory "/" @name into @path of PATHS_MAX bytes. */
int paths_join(char *path, const char *directory, const char *name);

#endif
