/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIB_IMAGE_H
#define LIB_IMAGE_H

/* The actions with images share these functions. */

#include <openvgpu/image.h>
#include <openvgpu/instance.h>

#include "image/chain.h"
#include "image/parent.h"
#include "lib/client.h"
#include "lib/memory.h"

/* image_begin() - forget the last error, and take the caller's options. */
int image_begin(struct vgpu_client *client, const struct vgpu_image_options *options,
                struct vgpu_image_options *ret_options, struct image_data_options *ret_data);

/* image_set_error() - make @error the client's. Returns its errno. */
int image_set_error(struct vgpu_client *client, const struct image_error *error);

/* image_describe_origin() - write time, host, and the devices of @instance, if it is not NULL, into @manifest. */
int image_describe_origin(struct vgpu_client *client, const struct vgpu_instance *instance,
                          struct image_manifest *manifest);

/* image_read_driver() - copy the version of the kernel's driver into @text; "" if there is none. */
void image_read_driver(char text[IMAGE_TEXT_MAX]);

void image_describe_vgpu(const struct vgpu_instance *instance, struct image_manifest *manifest);

/* What a dump is compared with, and the hashes for the next one to be compared with. */
struct image_comparison {
        struct image_parent parent; /* all zeros: there is none */
        struct image_hashes hashes;
};

/*
 * image_comparison_new() - open the image @parent, or none for NULL
 * @data:  hashes and parent are set
 */
int image_comparison_new(struct image_comparison **ret_comparison, struct vgpu_client *client,
                         const char *parent, struct image_data_options *data);
struct image_comparison *image_comparison_free(struct image_comparison *comparison);

/* image_check_parent() - is the parent, if there is one, an image of @instance? */
int image_check_parent(struct vgpu_client *client, const struct image_data_options *data,
                       const struct vgpu_instance *instance);

/* image_write_memory() - write @memory into @directory and @manifest. */
int image_write_memory(struct memory *memory, const struct image_directory *directory,
                       const struct image_data_options *options, struct image_manifest *manifest,
                       struct image_data_report *ret_report);

/*
 * image_report_dump(), image_report_chain() - make a report of an image that was written or read
 *
 * The caller fills in the times.
 */
int image_report_dump(struct vgpu_client *client, const char *directory,
                      const struct image_manifest *manifest, const struct image_data_report *data,
                      const struct image_data_options *options,
                      struct vgpu_image_report **ret_report);
int image_report_chain(struct vgpu_client *client, const struct image_chain *chain,
                       const struct image_data_report *data, struct vgpu_image_report **ret_report);

double image_now(void);

#endif
