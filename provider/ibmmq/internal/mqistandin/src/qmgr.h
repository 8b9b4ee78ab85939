/* Internals of the queue manager. One lock guards everything in it. */
#ifndef MQS_QMGR_H
#define MQS_QMGR_H

#include "wire.h"
#include <pthread.h>

#define MQS_PRIORITIES 10
#define MQS_MAX_UNCOMMITTED 10000
#define MQS_MAX_MSG_LENGTH 104857600

typedef struct MqsQueue MqsQueue;
typedef struct MqsSession MqsSession;
typedef struct MqsMsg MqsMsg;

typedef enum { MSG_AVAILABLE, MSG_PUT_PENDING, MSG_GOT_PENDING } MqsState;

struct MqsMsg {
  MqsMsg *prev, *next;       /* place on the queue; kept while got under syncpoint */
  MqsMsg *uowPrev, *uowNext; /* unit of work of one session */
  MqsQueue *queue;
  uint64_t seq;
  int lane; /* the list it is on: its priority, or 0 where the queue is FIFO */
  MqsState state;
  MQMD md;
  int64_t expiresAt; /* monotonic ms, 0: never */
  MQLONG length, propsLength;
  void *data, *props;
};

typedef struct {
  bool byMsgId, byCorrelId;
  MQBYTE msgId[24], correlId[24];
} MqsMatch;

typedef struct MqsWaiter {
  struct MqsWaiter *prev, *next;
  pthread_cond_t cond;
  bool signalled;
  const MqsMatch *match;
  MqsSession *session;
} MqsWaiter;

/* A wait whose client is out of reach while the queue manager does not know: it
 * still takes the message that comes. */
typedef struct MqsOrphanGet {
  struct MqsOrphanGet *next;
  MqsSession *session;
  MqsMatch match;
  MQLONG options;
  int64_t until; /* -1: for ever */
} MqsOrphanGet;

struct MqsQueue {
  MqsQueue *next;
  char name[49];
  MqsMsg *head[MQS_PRIORITIES], *tail[MQS_PRIORITIES];
  int available[MQS_PRIORITIES], availableTotal;
  int depth; /* as CURRENT_Q_DEPTH counts */
  int maxDepth, maxMsgLength, backoutThreshold;
  char backoutQueue[49];
  bool defaultExclusive, noShare, qsgShared, fifo, getInhibited, putInhibited;
  bool mayGet, mayBrowse, mayPut, mayInquire;
  int openInput, openOutput;
  bool exclusive;
  MqsWaiter *waitHead, *waitTail;
  int waiters, signalled;
  MqsOrphanGet *orphanGets;
};

typedef struct {
  bool open, isQmgr;
  MqsQueue *queue;
  MQLONG options;
  bool holdsInput, holdsExclusive;
  bool cursorSet; /* browse cursor: its place */
  int cursorLane;
  uint64_t cursorSeq;
} MqsObject;

/* One connection as the queue manager sees it. It outlives its client when that
 * went without a word, until the queue manager notices. */
struct MqsSession {
  MqsSession *prev, *next; /* of all that are not ended */
  MqsSession *nextServed;
  uint64_t id;
  int64_t link;
  int fd;        /* the client's socket, -1: in-process */
  bool cut;      /* the client can not be reached: its calls give 2009 */
  bool ended;    /* units of work backed out, objects closed */
  bool gone;     /* the client's socket is closed: nobody waits for an answer */
  bool doomed;   /* the unit of work was backed out under it: 2003 until it syncpoints */
  MQLONG endReason;
  int64_t noticeAt; /* when cut: end it then, -1: not by itself */
  int holders;      /* client side and server thread: freed when ended and unheld */
  char appl[29], user[13];
  MQLONG maxMsgLength;
  MqsMsg *uowHead, *uowTail;
  int uowCount;
  uint64_t uowSince; /* order in which units of work began */
  bool asyncFailedInUow;
  MqsObject *object;
  size_t objects, objectRoom;
  MQSTS async; /* counts since the last MQSTAT */
};

typedef struct {
  bool started;
  char name[49];
  char *users, *channels;
  MqsQueue *queues;
  MqsSession *sessions;
  int live; /* sessions not ended */
  MQLONG stop;
  bool discBacksOut;
  int64_t downUntil;
  int maxConnections;
  MQLONG maxConnectionsReason;
  int detectMs, heartbeatMs, latencyUs;
} MqsQmgr;

extern pthread_mutex_t mqsLock;
extern MqsQmgr mqsQmgr;

/* One call of the session's client, from arrival to answer; may wait. */
void mqsServe(MqsSession *s, const MqsRequest *q, MqsReply *r);
/* NULL: refused, the reply says why. */
MqsSession *mqsServeConnect(const MqsRequest *q, MqsReply *r, int fd);
int64_t mqsServeControl(const char *name, const char *text, int64_t a, int64_t b);

/* config.c */
void mqsStart(void);
int mqsDefaultHeartbeat(void); /* milliseconds */
bool mqsListed(const char *list, const char *item);
MqsQueue *mqsFindQueue(const char *name);
int mqsDefine(const char *text);

/* session.c */
void mqsThread(void *(*run)(void *), void *arg);
void mqsCondInit(pthread_cond_t *cond);
void mqsCondWaitUntil(pthread_cond_t *cond, int64_t at);
MqsSession *mqsNewSession(int fd);
void mqsCut(MqsSession *s);
void mqsEnd(MqsSession *s, MQLONG reason);
void mqsRelease(MqsSession *s);
void mqsDropObject(MqsObject *o);

/* message.c */
void mqsNewMsgId(MQBYTE *id);
void mqsStamp(MQMD *md);
void mqsAppend(MqsQueue *q, MqsMsg *m);
MqsMsg *mqsFind(MqsQueue *q, const MqsMatch *match, int afterLane, uint64_t afterSeq);
MqsMsg *mqsAt(MqsQueue *q, int lane, uint64_t seq);
void mqsSetState(MqsMsg *m, MqsState s);
void mqsDestroy(MqsMsg *m);
void mqsPurge(MqsQueue *q, bool nonPersistentOnly);

/* uow.c */
/* Whether a get with these options has the message under syncpoint. */
bool mqsSynced(MQLONG options, const MqsMsg *m);
void mqsTake(MqsSession *s, MqsMsg *m, bool synced);
void mqsJoinUow(MqsSession *s, MqsMsg *m);
void mqsCommit(MqsSession *s);
void mqsBackOut(MqsSession *s);
MqsSession *mqsOldestUow(void);

/* wait.c */
void mqsKick(MqsQueue *q);
void mqsWakeAll(MqsQueue *q);
void mqsWait(MqsQueue *q, MqsSession *s, const MqsMatch *match, int64_t until);
void mqsOrphanGet(MqsQueue *q, MqsSession *s, const MqsMatch *match, MQLONG options, int64_t until);
void mqsDropOrphanGets(MqsSession *s);

/* faults.c */
void mqsRoundTrip(MQLONG verb, MQLONG options);
void mqsCount(MQLONG verb);
long mqsCounted(MQLONG verb);
MQLONG mqsFault(MQLONG verb, bool after);
void mqsAddFault(MQLONG verb, MQLONG reason, int count, bool after);
void mqsDropFaults(void);
void mqsHold(MQLONG verb, bool after);
void mqsReleaseHolds(void);
void mqsWhileHeld(MqsSession *s, MQLONG verb, bool after);
int mqsHeld(void);
void mqsWakeHeld(void);

/* the calls */
void mqsFail(MqsReply *r, MQLONG cc, MQLONG reason);
MqsObject *mqsObject(MqsSession *s, MQLONG hobj);
bool mqsQuiescing(MQLONG options, MQLONG failIfQuiescing);
MQLONG mqsResolve(const MqsRequest *q, MqsQueue **queue);
MQLONG mqsPut(MqsSession *s, MqsQueue *queue, const MqsRequest *q, MqsReply *r);
void mqsDoPut(MqsSession *s, const MqsRequest *q, MqsReply *r);
void mqsDoPut1(MqsSession *s, const MqsRequest *q, MqsReply *r);
void mqsDoGet(MqsSession *s, const MqsRequest *q, MqsReply *r);
void mqsDoInq(MqsSession *s, const MqsRequest *q, MqsReply *r);
void mqsDoStat(MqsSession *s, const MqsRequest *q, MqsReply *r);

#endif
