#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "limiter.h"

/* The device files of the driver, and the library that must be mapped wherever one of them is open. */
#define DEVICE_PREFIX "/dev/davinci"
#define LIBRARY       "libvnpu.so"

static bool has_device_open(const char *pid) {
    char path[300];
    char target[300];
    struct dirent *entry;
    bool found = false;

    snprintf(path, sizeof path, "/proc/%s/fd", pid);
    DIR *descriptors = opendir(path);
    while (descriptors != NULL && !found && (entry = readdir(descriptors)) != NULL) {
        ssize_t length = readlinkat(dirfd(descriptors), entry->d_name, target, sizeof target - 1);

        target[length > 0 ? length : 0] = '\0';
        found = strncmp(target, DEVICE_PREFIX, strlen(DEVICE_PREFIX)) == 0;
    }
    if (descriptors != NULL)
        closedir(descriptors);
    return found;
}

static bool has_library(const char *pid) {
    char line[1024];
    bool found = false;

    snprintf(line, sizeof line, "/proc/%s/maps", pid);
    FILE *maps = fopen(line, "re");
    while (maps != NULL && !found && fgets(line, sizeof line, maps) != NULL)
        found = strstr(line, LIBRARY) != NULL;
    if (maps != NULL)
        fclose(maps);
    return found;
}

static void tell(FILE *output, const char *pid) {
    char path[300];
    char name[64] = "?";

    snprintf(path, sizeof path, "/proc/%s/comm", pid);
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        if (fgets(name, sizeof name, file) != NULL)
            name[strcspn(name, "\n")] = '\0';
        fclose(file);
    }
    fprintf(output, "%s %s: has an NPU open and is not held to the quota: " LIBRARY " is not loaded\n", pid, name);
}

unsigned int count_unmanaged(FILE *output) {
    unsigned int count = 0;
    struct dirent *entry;
    DIR *processes = opendir("/proc");

    while (processes != NULL && (entry = readdir(processes)) != NULL) {
        if (*entry->d_name < '0' || *entry->d_name > '9' || !has_device_open(entry->d_name) ||
            has_library(entry->d_name))
            continue;
        count++;
        if (output != NULL)
            tell(output, entry->d_name);
    }
    if (processes != NULL)
        closedir(processes);
    return count;
}

enum exit_code check(void) {
    if (count_unmanaged(stdout) > 0)
        return EXIT_NO;
    return puts("every process that has an NPU open has " LIBRARY " loaded") < 0 ? EXIT_SYSTEM : EXIT_DONE;
}
