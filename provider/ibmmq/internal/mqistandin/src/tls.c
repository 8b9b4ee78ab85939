/* What the client library does about TLS before anything is encrypted, which nothing
 * is here: one environment for the process, made by its first encrypted connection
 * and gone with its last, as the MQCNO's SSLConfigPtr is documented. */
#define _GNU_SOURCE
#include "client.h"
#include <cmqxc.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int users; /* encrypted connections that are not concluded by MQDISC */

static bool blank(const char *field) { return !field[0] || field[0] == ' '; }

/* 0, a warning, or the reason there can be no encrypted connection. */
MQLONG mqsTlsBegin(const MQCNO *cno, bool *encrypted) {
  const MQCD *cd = cno && cno->Version >= MQCNO_VERSION_2 ? cno->ClientConnPtr : NULL;
  const MQSCO *sco = cno && cno->Version >= MQCNO_VERSION_4 ? cno->SSLConfigPtr : NULL;
  *encrypted = cd && cd->Version >= MQCD_VERSION_7 && !blank(cd->SSLCipherSpec);
  if (!*encrypted) return 0;
  const char *env = getenv("MQSSLKEYR");
  MQLONG reason = 0;
  pthread_mutex_lock(&lock);
  if (users) reason = sco ? MQRC_SSL_ALREADY_INITIALIZED : 0;
  else if (sco ? blank(sco->KeyRepository) : !env || !*env) reason = MQRC_KEY_REPOSITORY_ERROR;
  if (reason != MQRC_KEY_REPOSITORY_ERROR) users++;
  pthread_mutex_unlock(&lock);
  return reason;
}

void mqsTlsEnd(void) {
  pthread_mutex_lock(&lock);
  users--;
  pthread_mutex_unlock(&lock);
}
