import { readOrNull, withinBudget } from './support.ts'

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
    readOrNull(() => sessionStorage.getItem(resumeKey(publishableKey))) ?? undefined
  const scope = await readStored(scopeKey(publishableKey))
  // A key used here for the first time has no scope yet, so send any stored id: the server ignores one of another
  // organization.
  const stateId = scope ? await readStored(idKey(scope)) : readOrNull(anyStateId)
  return { resumeToken, stateId: stateId ?? undefined }
}

/** Stores the token for this tab only, so that a reload continues the session and a new tab starts one. */
export function storeResumeToken(publishableKey: string, token: string): void {
  readOrNull(() => sessionStorage.setItem(resumeKey(publishableKey), token))
}

export function dropResumeToken(publishableKey: string): void {
  readOrNull(() => sessionStorage.removeItem(resumeKey(publishableKey)))
}

/**
 * Stores the id in localStorage and IndexedDB, because browsers and people clear them separately. `scope` is the session's
 * `continuityScope`, because all keys of one organization and environment share a visitor.
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
  for (const [key, value] of entries) readOrNull(() => localStorage.setItem(key, value))
  await withinBudget(500, () =>
    withStore('readwrite', (store) => entries.map(([key, value]) => store.put(value, key))),
  )
}

/** Deletes everything that this file stores. The HTTP-only cookie expires within a day. */
export function forgetBrowser(publishableKey: string): void {
  dropResumeToken(publishableKey)
  const scope = readOrNull(() => localStorage.getItem(scopeKey(publishableKey)))
  readOrNull(() => localStorage.removeItem(scopeKey(publishableKey)))
  if (scope !== null) readOrNull(() => localStorage.removeItem(idKey(scope)))
  // Not opened first, because opening would create the database.
  readOrNull(() => indexedDB.deleteDatabase(databaseName))
}

async function readStored(key: string): Promise<string | null> {
  const local = readOrNull(() => localStorage.getItem(key))
  return local ?? (await withinBudget(300, () => readDatabase(key)))
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
