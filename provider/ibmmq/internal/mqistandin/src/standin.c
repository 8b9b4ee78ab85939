/* The controls as tests call them: to the queue manager in this process, or over
 * a socket to the one in another. */
#define _GNU_SOURCE
#include "client.h"
#include "qmgr.h"
#include <mqstandin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool chosen;
static char *server; /* addresses are few and never freed: a call may still use one */

const char *mqsServer(void) {
  pthread_mutex_lock(&lock);
  if (!chosen) {
    const char *e = getenv("MQSTANDIN_SERVER");
    if (e && *e) server = mqsCopy(e, strlen(e));
    chosen = true;
  }
  const char *now = server;
  pthread_mutex_unlock(&lock);
  return now;
}

API void mqstandin_use(const char *address) {
  pthread_mutex_lock(&lock);
  server = address && *address ? mqsCopy(address, strlen(address)) : NULL;
  chosen = true;
  pthread_mutex_unlock(&lock);
}

/* -1 also where the queue manager can not be reached. "tcp:" has no address for
 * controls: MQSTANDIN_CONTROL names one. */
static int64_t control(const char *name, const char *text, int64_t a, int64_t b) {
  const char *at = mqsServer();
  if (!at) return mqsServeControl(name, text, a, b);
  if (!strcmp(at, "tcp:")) at = getenv("MQSTANDIN_CONTROL");
  MqsRequest q = {.verb = MQS_CONTROL, .arg = {a, b}, .data = text ? text : ""};
  MqsReply r = {0};
  q.length = (MQLONG)strlen(q.data) + 1;
  snprintf(q.object, sizeof q.object, "%s", name);
  int fd = at ? mqsDial(at, "") : -1;
  bool done = fd >= 0 && mqsExchange(fd, &q, &r);
  if (fd >= 0) close(fd);
  return done ? r.value : -1;
}

static bool local(const char *call) { return mqsVerbOf(call) >= MQS_CRTMH; }

API int mqstandin_reset(void) {
  if (mqsServer()) {
    pthread_mutex_lock(&mqsLock);
    mqsDropFaults(); /* those of message handle calls */
    pthread_mutex_unlock(&mqsLock);
  }
  return (int)control("reset", NULL, 0, 0);
}

API int mqstandin_define(const char *text) { return (int)control("define", text, 0, 0); }
API int mqstandin_available(const char *queue) { return (int)control("available", queue, 0, 0); }
API int mqstandin_waiters(const char *queue) { return (int)control("waiters", queue, 0, 0); }
API int mqstandin_uncommitted(void) { return (int)control("uncommitted", NULL, 0, 0); }
API int mqstandin_connections(void) { return (int)control("connections", NULL, 0, 0); }
API int mqstandin_unnoticed(void) { return (int)control("unnoticed", NULL, 0, 0); }
API int mqstandin_held(void) { return (int)control("held", NULL, 0, 0); }
API int mqstandin_message_handles(void) { return (int)mqsHandlesOfAll(); }

API long mqstandin_calls(const char *call) {
  return local(call) ? mqsServeControl("calls", call, 0, 0) : control("calls", call, 0, 0);
}

API int mqstandin_break(const char *appl, int noticed) { return (int)control("break", appl, noticed, 0); }
API int mqstandin_break_oldest(int count, int noticed) { return (int)control("break_oldest", NULL, count, noticed); }
API int mqstandin_notice(void) { return (int)control("notice", NULL, 0, 0); }
API int mqstandin_detect_after(int ms) { return (int)control("detect_after", NULL, ms, 0); }
API int mqstandin_heartbeat(int ms) { return (int)control("heartbeat", NULL, ms, 0); }
API int mqstandin_back_out(int count) { return (int)control("back_out", NULL, count, 0); }
API int mqstandin_stop(int reason) { return (int)control("stop", NULL, reason, 0); }
API int mqstandin_restart(int downMs) { return (int)control("restart", NULL, downMs, 0); }

API int mqstandin_limit_connections(int most, int reason) {
  return (int)control("limit_connections", NULL, most, reason);
}

API int mqstandin_fail_next(const char *call, int reason, int count) {
  if (local(call)) return (int)mqsServeControl("fail_next", call, reason, count);
  return (int)control("fail_next", call, reason, count);
}

API int mqstandin_fail_after(const char *call, int reason, int count) {
  return local(call) ? -1 : (int)control("fail_after", call, reason, count);
}

API int mqstandin_hold(const char *call, int after) { return (int)control("hold", call, after, 0); }
API int mqstandin_release(void) { return (int)control("release", NULL, 0, 0); }
API int mqstandin_latency(int microseconds) { return (int)control("latency", NULL, microseconds, 0); }
API int mqstandin_disc_backs_out(int on) { return (int)control("disc_backs_out", NULL, on, 0); }
