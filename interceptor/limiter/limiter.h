/* The limiter: makes the region of a container, keeps it, and tells about it.
 *
 *     main.c      the command line              start.c     guardian and readiness
 *     settings.c  quota and environment         run.c       the limiter itself
 *     publish.c   making and taking over files  tenants.c   its place on each card
 *     mirror.c    figures for readers outside   status.c    figures for people and programs
 *     check.c     processes that escape         log.c       one bounded file */
#ifndef VNPU_LIMITER_H
#define VNPU_LIMITER_H

#include <stdio.h>

#include "attach.h"
#include "quota.h"

enum exit_code {
    EXIT_DONE = 0,
    EXIT_NO = 1,       /* status: no limiter lives; check: somebody escapes */
    EXIT_SETTINGS = 2, /* quota or environment cannot be used */
    EXIT_SYSTEM = 3,   /* the system refused something; the line says what */
    EXIT_USAGE = 100,
};

struct settings {
    struct vnpu_quota quota;
    char region_path[VNPU_PATH_LIMIT];
    char registry_dir[VNPU_PATH_LIMIT];
    char mirror_path[VNPU_PATH_LIMIT]; /* "": none is wanted */
};

/* Reads environment and quota file; false after a line on standard error that names what is wrong. */
bool read_settings(struct settings *settings);

/* A region that we keep: the keeper's lock is held through `attached.mapping.descriptor`. */
enum keeping { KEPT, ANOTHER_KEEPS, NOT_KEPT };
enum keeping keep_region(const struct settings *settings, struct vnpu_attached *attached);
/* Makes the file complete and only then visible; false when somebody else was first, or with errno set. */
bool publish_file(const char *path, mode_t mode, const void *content, size_t size, bool locked, int *descriptor);
/* Removes regions in /dev/shm that nobody can be using any more. */
void remove_abandoned_regions(void);

/* The limiter's hold on one card. */
struct tenancy {
    struct vnpu_mapping mapping; /* of the registry; no base until joined */
    struct vnpu_registry *registry;
    struct vnpu_tenant *tenant;
};
/* Joins, or stays on, each card; false when one of them has no place or no registry that can be used. */
bool keep_tenancies(struct vnpu_region *region, struct tenancy tenancies[VNPU_CARDS]);

struct mirror {
    struct vnpu_mapping mapping;
    bool failed; /* told once */
    uint64_t held_us[VNPU_CARDS];
    bool behind[VNPU_CARDS];
};
void write_mirror(struct mirror *mirror, struct vnpu_region *region, const struct tenancy tenancies[VNPU_CARDS]);

/* Keeps the region until it is asked to stop. `guardian` is the parent that guards it, 0 for none. */
enum ending { STOPPED, SUPERSEDED, FAILED, GUARDIAN_LOST };
enum ending run_limiter(const struct settings *settings, pid_t guardian);

enum exit_code start(const struct settings *settings);
enum exit_code stop(const char *region_path);
enum exit_code status(const char *region_path, bool json);
enum exit_code check(void);
/* How many processes have an NPU device open and no libvnpu mapped; each gets a line on `output` unless it is NULL. */
unsigned int count_unmanaged(FILE *output);

void log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
