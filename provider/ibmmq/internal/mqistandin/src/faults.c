/* Failures on demand: replaced results, held calls, slow ones, and call counts.
 * Each process has its own for message handle calls, which never leave it. */
#define _GNU_SOURCE
#include "qmgr.h"
#include <stdlib.h>
#include <time.h>

typedef struct Fault {
  struct Fault *next;
  MQLONG verb, reason;
  int count;
  bool after;
} Fault;

static Fault *faults;
static long counts[MQS_CALLS];

void mqsCount(MQLONG verb) { counts[verb]++; }
long mqsCounted(MQLONG verb) { return counts[verb]; }

/* The reason the call is to give now, 0: its own. Each use counts. */
MQLONG mqsFault(MQLONG verb, bool after) {
  for (Fault **at = &faults, *f; (f = *at); at = &f->next) {
    if (f->after != after || f->verb != verb) continue;
    MQLONG reason = f->reason;
    if (--f->count == 0) {
      *at = f->next;
      free(f);
    }
    return reason;
  }
  return 0;
}

void mqsAddFault(MQLONG verb, MQLONG reason, int count, bool after) {
  Fault **at = &faults;
  while (*at) at = &(*at)->next;
  *at = mqsAlloc(sizeof **at);
  **at = (Fault){.verb = verb, .reason = reason, .count = count, .after = after};
}

void mqsDropFaults(void) {
  for (Fault *f; (f = faults); free(f)) faults = f->next;
  for (int i = 0; i < MQS_CALLS; i++) counts[i] = 0;
}

/* ---- calls that do not return until released ---- */

static bool holds[MQS_CALLS][2];
static uint64_t epoch;
static int held;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;

void mqsHold(MQLONG verb, bool after) { holds[verb][after] = true; }

void mqsReleaseHolds(void) {
  for (int i = 0; i < MQS_CALLS; i++) holds[i][0] = holds[i][1] = false;
  epoch++;
  mqsWakeHeld();
}

void mqsWakeHeld(void) { pthread_cond_broadcast(&released); }
int mqsHeld(void) { return held; }

/* Only a release ends it, or the death of the client: a broken connection is no
 * answer to a call that hangs. */
void mqsWhileHeld(MqsSession *s, MQLONG verb, bool after) {
  if (!holds[verb][after]) return;
  uint64_t since = epoch;
  held++;
  while (epoch == since && !s->gone) pthread_cond_wait(&released, &mqsLock);
  held--;
}

/* ---- a simulated way to the queue manager and back ---- */

void mqsRoundTrip(MQLONG verb, MQLONG options) {
  if ((verb == MQS_PUT || verb == MQS_PUT1) && (options & MQPMO_ASYNC_RESPONSE)) return; /* nobody waits for it */
  pthread_mutex_lock(&mqsLock);
  int us = mqsQmgr.latencyUs;
  pthread_mutex_unlock(&mqsLock);
  if (us <= 0) return;
  struct timespec t = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000L};
  nanosleep(&t, NULL);
}
