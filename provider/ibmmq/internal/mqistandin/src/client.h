/* The client library's side: handles of this process, checks of what the
 * application passes, and the way to the queue manager. */
#ifndef MQS_CLIENT_H
#define MQS_CLIENT_H

#include "wire.h"
#include <pthread.h>

#define API __attribute__((visibility("default")))

typedef struct {
  char *name;
  MQLONG type, length;
  MQLONG options, support, context, copyOptions;
  unsigned char *value;
} MqsProp;

typedef struct {
  MqsProp *item;
  size_t count, room;
} MqsProps;

typedef struct MqsHandle {
  struct MqsHandle *next;
  MQHMSG id;
  MqsProps props;
  size_t cursor; /* 1 + index of the property last inquired, 0: none */
} MqsHandle;

/* Whoever has set busy has the connection to himself. */
typedef struct {
  MQHCONN id;
  bool busy, blockWhenBusy;
  bool encrypted; /* counts in the TLS environment of the process */
  MQLONG over; /* reason each further call gives, 0: alive */
  struct MqsSession *session; /* in-process */
  int fd;                     /* to another process, -1: none */
  int64_t link;               /* the link that watches over it */
  MqsHandle **bucket;
  size_t buckets, handles;
} MqsConn;

typedef struct {
  MQLONG verb;
  MqsConn *conn;
  PMQLONG cc, rc;
} MqsCall;

/* conn.c */
/* True: the connection is this call's own until mqsLeave. */
bool mqsEnter(MqsCall *call, MQLONG verb, MQHCONN h, PMQLONG cc, PMQLONG rc);
void mqsLeave(MqsCall *call);
void mqsResult(MqsCall *call, MQLONG cc, MQLONG reason);
MQHCONN mqsConnect(const MqsConnect *c, const char *connectionName, const MQCNO *cno, PMQLONG cc, PMQLONG rc);
void mqsDropConn(MqsCall *call);
/* Sends the request, fills the reply and the call's result. */
void mqsAsk(MqsCall *call, const MqsRequest *q, MqsReply *r);
/* The queue manager at the end of that link no longer shows life. */
void mqsSeverLink(int64_t link);
int64_t mqsHandlesOfAll(void);

/* tls.c: a reason or 0; who has begun ends it with MQDISC */
MQLONG mqsTlsBegin(const MQCNO *cno, bool *encrypted);
void mqsTlsEnd(void);

/* passed.c */
void mqsPassed(const char *appl, const MQCNO *cno);

/* check.c: the reason the call fails with, 0: none */
MQLONG mqsCheckCno(const MQCNO *cno);
MQLONG mqsCheckOpen(const MQOD *od, MQLONG options);
MQLONG mqsCheckClose(MQLONG options);
MQLONG mqsCheckPut(const MQMD *md, const MQPMO *pmo, MQLONG length, const void *data);
MQLONG mqsCheckGet(const MQMD *md, const MQGMO *gmo, MQLONG room, const void *buffer);
MQLONG mqsCheckOd(const MQOD *od);
bool mqsIs(const MQCHAR4 id, const char *want);

/* props.c */
void mqsPropsFree(MqsProps *p);
size_t mqsPropIndex(const MqsProps *p, const char *name);
void mqsPropSet(MqsProps *p, MqsProp prop);
void mqsPropDelete(MqsProps *p, size_t at);
void *mqsPropsPack(const MqsProps *p, MQLONG *length);
void mqsPropsUnpack(MqsProps *p, const void *packed, MQLONG length);
MqsHandle *mqsHandle(MqsConn *c, MQHMSG id);
void mqsFreeHandles(MqsConn *c);

/* socket.c */
/* "unix:PATH", "tcp:HOST:PORT", or "tcp:" for the channel's own connection name. -1: nobody there. */
int mqsDial(const char *address, const char *connectionName);
const char *mqsServer(void); /* NULL: the queue manager is in this process */
bool mqsSend(int fd, const void *head, size_t n, const void *data, MQLONG length, const void *props, MQLONG propsLength);
bool mqsReceive(int fd, void *to, size_t n);
bool mqsExchange(int fd, const MqsRequest *q, MqsReply *r);

/* link.c */
int64_t mqsLink(const char *address, const char *connectionName); /* 0: none to be had */

#endif
