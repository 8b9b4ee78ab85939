/* What crosses between the client library and the queue manager. In-process it
 * is a function call; between processes the same structures go over a socket,
 * so both forms behave alike. Both ends are built from the same sources: raw
 * structures are sent as they are. */
#ifndef MQS_WIRE_H
#define MQS_WIRE_H

#include <cmqc.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum {
  MQS_CONNX,
  MQS_DISC,
  MQS_OPEN,
  MQS_CLOSE,
  MQS_PUT,
  MQS_PUT1,
  MQS_GET,
  MQS_CMIT,
  MQS_BACK,
  MQS_INQ,
  MQS_STAT,
  /* answered by the client library itself, as message handles live there */
  MQS_CRTMH,
  MQS_DLTMH,
  MQS_SETMP,
  MQS_INQMP,
  MQS_DLTMP,
  MQS_CALLS, /* how many calls there are */
  /* not calls: the stand-in's own business */
  MQS_CONTROL = 100,
  MQS_LINK
} MqsVerb;

extern const char *const mqsVerbName[MQS_CALLS];
/* -1: no such call. */
int mqsVerbOf(const char *name);

typedef struct {
  MQLONG verb, hobj, options;
  MQLONG match, wait;      /* MQGET */
  MQLONG room;             /* bytes the caller has for the answer */
  MQLONG ints, chars;      /* MQINQ: how much of each the caller has */
  MQLONG objectType;       /* MQOPEN, MQPUT1 */
  MQLONG length, propsLength; /* of what follows: data, then properties */
  int64_t arg[2];          /* controls */
  char object[49], objectQmgr[49];
  MQMD md;
  const void *data, *props; /* not sent: the bytes follow */
} MqsRequest;

typedef struct {
  MQLONG cc, rc, hobj;
  MQLONG messageLength;       /* MQGET: the whole message */
  MQLONG length, propsLength; /* of what follows: data, then properties */
  int64_t value;              /* controls */
  char queue[49], qmgr[49];
  bool hasMd;
  MQMD md;
  void *buffer; /* the caller's, at least the request's room */
  void *props;  /* made by malloc, the caller frees it */
} MqsReply;

/* The data of MQS_CONNX. */
typedef struct {
  int64_t link; /* the process it comes from, 0: this one */
  bool throughChannel, hasUser;
  char qmgr[49], channel[21], appl[29];
  char user[1025], password[1025];
  MQLONG maxMsgLength;
} MqsConnect;

/* Fixed-length, blank- or null-padded fields. */
void mqsField(char *to, size_t room, const char *from, size_t n);
void mqsPad(char *to, const char *from, size_t n);

/* Memory that can not be had ends the process: a test tool has no better answer. */
void *mqsAlloc(size_t n); /* zeroed */
void *mqsGrow(void *p, size_t n);
void *mqsCopy(const void *from, size_t n);

int64_t mqsNowMs(void);

#endif
