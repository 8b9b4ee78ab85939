/* Gets that wait. */
#include "qmgr.h"
#include <stdlib.h>

/* Gets nobody can hear of come first: the worst that can happen to the others. */
static void serveOrphans(MqsQueue *q) {
  for (MqsOrphanGet **at = &q->orphanGets, *g; (g = *at);) {
    bool over = g->until >= 0 && g->until <= mqsNowMs();
    MqsMsg *m = over || q->getInhibited ? NULL : mqsFind(q, &g->match, MQS_PRIORITIES, 0);
    if (!over && !m) {
      at = &g->next;
      continue;
    }
    *at = g->next;
    if (m) mqsTake(g->session, m, mqsSynced(g->options, m));
    free(g);
  }
}

void mqsOrphanGet(MqsQueue *q, MqsSession *s, const MqsMatch *match, MQLONG options, int64_t until) {
  MqsOrphanGet *g = mqsAlloc(sizeof *g);
  *g = (MqsOrphanGet){.next = q->orphanGets, .session = s, .match = *match, .options = options, .until = until};
  q->orphanGets = g;
  mqsKick(q); /* it may have been woken for a message just before */
}

void mqsDropOrphanGets(MqsSession *s) {
  for (MqsQueue *q = mqsQmgr.queues; q; q = q->next)
    for (MqsOrphanGet **at = &q->orphanGets, *g; (g = *at);) {
      if (g->session != s) {
        at = &g->next;
        continue;
      }
      *at = g->next;
      free(g);
    }
}

/* Wakes as many waiters, oldest first, as there are messages for them. */
void mqsKick(MqsQueue *q) {
  serveOrphans(q);
  for (MqsWaiter *w = q->waitHead; w && q->signalled < q->availableTotal; w = w->next) {
    if (w->signalled || !mqsFind(q, w->match, MQS_PRIORITIES, 0)) continue;
    w->signalled = true;
    q->signalled++;
    pthread_cond_signal(&w->cond);
  }
}

/* For what is no message: each looks at its own state again. */
void mqsWakeAll(MqsQueue *q) {
  for (MqsWaiter *w = q->waitHead; w; w = w->next) pthread_cond_signal(&w->cond);
}

/* One wait; the caller looks again, and passes a wake-up on that it can not use. */
void mqsWait(MqsQueue *q, MqsSession *s, const MqsMatch *match, int64_t until) {
  MqsWaiter w = {.match = match, .session = s};
  mqsCondInit(&w.cond);
  w.prev = q->waitTail;
  *(w.prev ? &w.prev->next : &q->waitHead) = &w;
  q->waitTail = &w;
  q->waiters++;
  mqsCondWaitUntil(&w.cond, until);
  *(w.prev ? &w.prev->next : &q->waitHead) = w.next;
  *(w.next ? &w.next->prev : &q->waitTail) = w.prev;
  q->waiters--;
  if (w.signalled) q->signalled--;
  pthread_cond_destroy(&w.cond);
}
