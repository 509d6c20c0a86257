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
  const scope = await readBoth(scopeKey(publishableKey))
  // A new key of a known organization has no scope yet, so any id is taken: the server ignores one of others.
  const stateId = scope ? await readBoth(idKey(scope)) : readOrNull(anyStateId)
  return { resumeToken, stateId: stateId ?? undefined }
}

/** Stores the token for this tab only, so that a reload is the same session and a new tab is not. */
export function storeResumeToken(publishableKey: string, token: string): void {
  readOrNull(() => sessionStorage.setItem(resumeKey(publishableKey), token))
}

export function dropResumeToken(publishableKey: string): void {
  readOrNull(() => sessionStorage.removeItem(resumeKey(publishableKey)))
}

/**
 * Stores the id in both stores, because browsers and people clear them separately. `scope` is the session's
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
    inStore('readwrite', (store) => entries.map(([key, value]) => store.put(value, key))),
  )
}

/** Deletes all that this file stores. The cookie, which no script sees, ends by itself within a day. */
export function forgetBrowser(publishableKey: string): void {
  dropResumeToken(publishableKey)
  const scope = readOrNull(() => localStorage.getItem(scopeKey(publishableKey)))
  readOrNull(() => localStorage.removeItem(scopeKey(publishableKey)))
  if (scope !== null) readOrNull(() => localStorage.removeItem(idKey(scope)))
  // The database is not opened first, because that would make it where there is none.
  readOrNull(() => indexedDB.deleteDatabase(databaseName))
}

async function readBoth(key: string): Promise<string | null> {
  const local = readOrNull(() => localStorage.getItem(key))
  return local ?? (await withinBudget(300, () => readDatabase(key)))
}

function anyStateId(): string | null {
  const keys = Array.from({ length: localStorage.length }, (_, i) => localStorage.key(i))
  const first = keys.find((key) => key?.startsWith(idPrefix))
  return first ? localStorage.getItem(first) : null
}

async function readDatabase(key: string): Promise<string | null> {
  const value = await inStore('readonly', (store) => [store.get(key)])
  return typeof value === 'string' ? value : null
}

async function inStore(
  mode: IDBTransactionMode,
  use: (store: IDBObjectStore) => IDBRequest[],
): Promise<unknown> {
  const opening = indexedDB.open(databaseName, 1)
  opening.onupgradeneeded = () => opening.result.createObjectStore('continuity')
  await settled(opening)
  const database = opening.result
  try {
    const requests = use(database.transaction('continuity', mode).objectStore('continuity'))
    await Promise.all(requests.map(settled))
    return requests[0]?.result
  } finally {
    database.close()
  }
}

function settled(request: IDBRequest): Promise<void> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve()
    request.onerror = () => reject(request.error)
  })
}
