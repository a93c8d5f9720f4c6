#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "limiter.h"

static const char usage[] =
    "usage: limiter [run]                                keep this container's region until stopped\n"
    "       limiter start [--sleep N] [-- COMMAND...]    the same in the background, under a guardian; when it is\n"
    "                                                    ready, sleep N seconds, then become COMMAND\n"
    "       limiter status [--json]                      quota, use, share, processes\n"
    "       limiter stop                                 end limiter and guardian\n"
    "       limiter check                                processes that have an NPU open without libvnpu.so\n"
    "       limiter version\n"
    "exit codes: 0 done; 1 no limiter lives, or check found one; 2 quota or environment cannot be used;\n"
    "            3 the system refused something; 100 usage\n";

static int refuse_usage(void) {
    fputs(usage, stderr);
    return EXIT_USAGE;
}

static int run(void) {
    struct settings settings;

    if (!read_settings(&settings))
        return EXIT_SETTINGS;
    remove_abandoned_regions();
    enum ending ending = run_limiter(&settings, 0);
    if (ending == FAILED)
        fprintf(stderr, "limiter: the region %s cannot be kept; the log says why\n", settings.region_path);
    return ending == FAILED ? EXIT_SYSTEM : EXIT_DONE;
}

struct start_options {
    unsigned int sleep_s;
    char **command;
};

static bool read_start_options(char **arguments, struct start_options *options) {
    *options = (struct start_options){0};
    for (; *arguments != NULL; arguments++) {
        char *end;

        if (strcmp(*arguments, "--") == 0) {
            options->command = arguments + 1;
            return *options->command != NULL;
        }
        if (strcmp(*arguments, "--sleep") != 0 || *++arguments == NULL || **arguments < '0' || **arguments > '9')
            return false;
        errno = 0;
        unsigned long seconds = strtoul(*arguments, &end, 10);
        if (errno != 0 || *end != '\0' || seconds > INT32_MAX)
            return false;
        options->sleep_s = (unsigned int)seconds;
    }
    return true;
}

static int start_verb(char **arguments) {
    struct start_options options;
    struct settings settings;

    if (!read_start_options(arguments, &options))
        return refuse_usage();
    if (!read_settings(&settings))
        return EXIT_SETTINGS;
    enum exit_code code = start(&settings);
    if (code != EXIT_DONE)
        return code;
    for (unsigned int left = options.sleep_s; left > 0;)
        left = sleep(left);
    if (options.command == NULL)
        return EXIT_DONE;
    execvp(options.command[0], options.command);
    fprintf(stderr, "limiter: %s: %s\n", options.command[0], strerror(errno));
    return EXIT_SYSTEM;
}

static int region_verb(const char *verb, char **arguments) {
    char path[VNPU_PATH_LIMIT];
    bool json = *arguments != NULL && strcmp(*arguments, "--json") == 0 && strcmp(verb, "status") == 0;

    if (arguments[json] != NULL)
        return refuse_usage();
    if (!vnpu_region_path(path)) {
        fputs("limiter: neither VNPU_REGION nor /proc tells where the region is\n", stderr);
        return EXIT_SYSTEM;
    }
    return strcmp(verb, "stop") == 0 ? stop(path) : status(path, json);
}

int main(int count, char **arguments) {
    const char *verb = count > 1 ? arguments[1] : "run";

    if (strcmp(verb, "start") == 0)
        return start_verb(arguments + 2);
    if (strcmp(verb, "status") == 0 || strcmp(verb, "stop") == 0)
        return region_verb(verb, arguments + 2);
    if (count > 2)
        return refuse_usage();
    if (strcmp(verb, "run") == 0)
        return run();
    if (strcmp(verb, "check") == 0)
        return check();
    if (strcmp(verb, "--help") == 0 || strcmp(verb, "-h") == 0)
        return fputs(usage, stdout) < 0 ? EXIT_SYSTEM : EXIT_DONE;
    if (strcmp(verb, "version") == 0)
        return puts(VNPU_VERSION) < 0 ? EXIT_SYSTEM : EXIT_DONE;
    return refuse_usage();
}
