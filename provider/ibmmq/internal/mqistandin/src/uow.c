/* Units of work. */
#include "qmgr.h"

/* A session's unit of work begins with its first message; they are numbered in
 * that order, as a full log claims the oldest first. */
void mqsJoinUow(MqsSession *s, MqsMsg *m) {
  static uint64_t begun;
  if (!s->uowCount) s->uowSince = ++begun;
  m->uowNext = NULL;
  m->uowPrev = s->uowTail;
  *(s->uowTail ? &s->uowTail->uowNext : &s->uowHead) = m;
  s->uowTail = m;
  s->uowCount++;
}

bool mqsSynced(MQLONG options, const MqsMsg *m) {
  return (options & MQGMO_SYNCPOINT) ||
         ((options & MQGMO_SYNCPOINT_IF_PERSISTENT) && m->md.Persistence == MQPER_PERSISTENT);
}

void mqsTake(MqsSession *s, MqsMsg *m, bool synced) {
  if (!synced) {
    mqsDestroy(m);
    return;
  }
  mqsSetState(m, MSG_GOT_PENDING);
  mqsJoinUow(s, m);
}

static void endUow(MqsSession *s, bool commit) {
  MqsMsg *m = s->uowHead;
  s->uowHead = s->uowTail = NULL;
  s->uowCount = 0;
  s->asyncFailedInUow = false;
  MqsQueue *changed = NULL;
  for (MqsMsg *next; m; m = next) {
    next = m->uowNext;
    m->uowPrev = m->uowNext = NULL;
    bool put = m->state == MSG_PUT_PENDING;
    if (put != commit) {
      mqsDestroy(m);
      continue;
    }
    if (!put) m->md.BackoutCount++;
    mqsSetState(m, MSG_AVAILABLE); /* its place on the queue never changed */
    if (changed && changed != m->queue) mqsKick(changed);
    changed = m->queue;
  }
  /* Only now: waiters see the whole unit of work, so the first of it goes first. */
  if (changed) mqsKick(changed);
}

void mqsCommit(MqsSession *s) { endUow(s, true); }
void mqsBackOut(MqsSession *s) { endUow(s, false); }

MqsSession *mqsOldestUow(void) {
  MqsSession *oldest = NULL;
  for (MqsSession *s = mqsQmgr.sessions; s; s = s->next)
    if (s->uowCount && (!oldest || s->uowSince < oldest->uowSince)) oldest = s;
  return oldest;
}
