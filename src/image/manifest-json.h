/* SPDX-License-Identifier: Apache-2.0 */
#ifndef IMAGE_MANIFEST_JSON_H
#define IMAGE_MANIFEST_JSON_H

/* Shared by the writer and the parser of the manifest. */

#include <jansson.h>
#include <stdbool.h>

struct image_manifest;

#define MANIFEST_CHECKSUM_MAX 16

/* manifest_checksum() - get the checksum of the member "image" in hexadecimal digits; NULL: no memory. */
char *manifest_checksum(char text[MANIFEST_CHECKSUM_MAX], const json_t *image);

/* manifest_has_control() - are there control characters in @text? */
bool manifest_has_control(const char *text);

/* manifest_get_version() - the lowest that has what is in it: older readers refuse what they do not know. */
int manifest_get_version(const struct image_manifest *manifest);

#endif
