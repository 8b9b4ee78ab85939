/* A C application on the stand-in, to be run under the sanitizers. */
#ifndef DRIVER_H
#define DRIVER_H

#define _GNU_SOURCE
#include <cmqc.h>
#include <cmqstrc.h>
#include <mqstandin.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define Q1 "DEV.QUEUE.1"
#define Q2 "DEV.QUEUE.2"

extern MQLONG cc, rc; /* of the main thread's last call */
extern int checks;

#define CHECK(x)                                                                              \
  do {                                                                                        \
    checks++;                                                                                 \
    if (!(x)) {                                                                               \
      fprintf(stderr, "%s:%d: %s (last: %d %s)\n", __FILE__, __LINE__, #x, cc, MQRC_STR(rc)); \
      exit(1);                                                                                \
    }                                                                                         \
  } while (0)
#define GIVES(call, code, reason) do { call; CHECK(cc == (code) && rc == (reason)); } while (0)
#define OK(call) GIVES(call, MQCC_OK, MQRC_NONE)
#define FAILS(call, reason) GIVES(call, MQCC_FAILED, reason)
/* For what another thread or process is about to do: ten seconds at most. */
#define SOON(x)                                                    \
  do {                                                             \
    for (time_t end_ = time(NULL) + 10; !(x) && time(NULL) < end_;) usleep(200); \
    CHECK(x);                                                                    \
  } while (0)

MQHCONN connectTo(void);
MQHOBJ openQ(MQHCONN h, const char *name, MQLONG options, MQLONG *c, MQLONG *r);
MQMD newMd(void);
void put(MQHCONN h, const char *q, const char *text, MQLONG options);
void putAs(MQHCONN h, const char *q, const char *text, MQLONG options, MQLONG priority, MQLONG expiry, MQLONG persistence,
           MQLONG *c, MQLONG *r);
MQLONG get(MQHCONN h, MQHOBJ o, MQLONG options, MQLONG wait, char *text, MQLONG room, MQMD *md, MQLONG *c, MQLONG *r);
/* The text got under syncpoint without a wait, or the reason as a number. */
const char *got(MQHCONN h, MQHOBJ o);

typedef struct {
  MQHCONN h;
  MQLONG options, wait, cc, rc;
  int want;
  bool commit;
} Getter;
extern atomic_int taken;
void *getter(void *arg); /* gets from Q1 as often as wanted */

void semantics(void);
void properties(void);
void waiting(void);
void strict(void);
void losses(void);
void stops(void);
void states(void);
void processes(const char *self, const char *address);
int clientMain(int argc, char **argv);

#endif
