import { tryOrNull, withTimeoutOrNull } from './support.ts'

export interface Continuity {
  resumeToken: string | undefined
  /** `fingerprint.state.id` of an earlier session of this browser. */
  stateId: string | undefined
}

const resumeKey = (publishableKey: string) => `tidegate:resume:${publishableKey}`
const scopeKey = (publishableKey: string) => `tidegate:scope:${publishableKey}`
const databaseName = 'tidegate'
const idPrefix = 'tidegate:id:'
const idKey = (scope: string) => `${idPrefix}${scope}`

export async function loadContinuity(publishableKey: string): Promise<Continuity> {
  const resumeToken =
    tryOrNull(() => sessionStorage.getItem(resumeKey(publishableKey))) ?? undefined
  const scope = await readStored(scopeKey(publishableKey))
  // A new key has no scope yet, so send any stored id. The server ignores ids of other organizations.
  const stateId = scope ? await readStored(idKey(scope)) : tryOrNull(anyStateId)
  return { resumeToken, stateId: stateId ?? undefined }
}

/** Stores the token for this tab only: a reload continues the session, and a new tab starts a new one. */
export function storeResumeToken(publishableKey: string, token: string): void {
  tryOrNull(() => sessionStorage.setItem(resumeKey(publishableKey), token))
}

export function dropResumeToken(publishableKey: string): void {
  tryOrNull(() => sessionStorage.removeItem(resumeKey(publishableKey)))
}

/**
 * Stores the id in localStorage and IndexedDB, because browsers and people clear them separately. `scope` is the
 * session's `continuityScope`, which all keys of an organization and environment share.
 */
export async function storeStateId(
  publishableKey: string,
  { scope, id }: { scope: string; id: string },
  signal: AbortSignal,
): Promise<void> {
  const entries: [string, string][] = [
    [scopeKey(publishableKey), scope],
    [idKey(scope), id],
  ]
  if (signal.aborted) return
  for (const [key, value] of entries) tryOrNull(() => localStorage.setItem(key, value))
  await withTimeoutOrNull(500, () =>
    withStore('readwrite', (store) => entries.map(([key, value]) => store.put(value, key))),
  )
}

/** Deletes everything that the SDK stores, except for the HTTP-only cookie, which expires within a day. */
export function deleteStoredData(publishableKey: string): void {
  dropResumeToken(publishableKey)
  const scope = tryOrNull(() => localStorage.getItem(scopeKey(publishableKey)))
  tryOrNull(() => localStorage.removeItem(scopeKey(publishableKey)))
  if (scope !== null) tryOrNull(() => localStorage.removeItem(idKey(scope)))
  // Deletes without opening, which would create the database.
  tryOrNull(() => indexedDB.deleteDatabase(databaseName))
}

async function readStored(key: string): Promise<string | null> {
  const local = tryOrNull(() => localStorage.getItem(key))
  return local ?? (await withTimeoutOrNull(300, () => readDatabase(key)))
}

function anyStateId(): string | null {
  const keys = Array.from({ length: localStorage.length }, (_, i) => localStorage.key(i))
  const firstKey = keys.find((key) => key?.startsWith(idPrefix))
  return firstKey ? localStorage.getItem(firstKey) : null
}

async function readDatabase(key: string): Promise<string | null> {
  const value = await withStore('readonly', (store) => [store.get(key)])
  return typeof value === 'string' ? value : null
}

async function withStore(
  mode: IDBTransactionMode,
  use: (store: IDBObjectStore) => IDBRequest[],
): Promise<unknown> {
  const opening = indexedDB.open(databaseName, 1)
  opening.onupgradeneeded = () => opening.result.createObjectStore('continuity')
  await requestDone(opening)
  const database = opening.result
  try {
    const requests = use(database.transaction('continuity', mode).objectStore('continuity'))
    await Promise.all(requests.map(requestDone))
    return requests[0]?.result
  } finally {
    database.close()
  }
}

function requestDone(request: IDBRequest): Promise<void> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve()
    request.onerror = () => reject(request.error)
  })
}
