import { getMember, isArray } from './realm.ts'

/** Returns the result of `read`; null if it throws, as blocked APIs do, or returns undefined. */
export function tryOrNull<T>(read: () => T): NonNullable<T> | null {
  try {
    return read() ?? null
  } catch {
    return null
  }
}

/** Runs work that only waits for the browser. Resolves to null on timeout or failure. */
export type AskBrowser = <T>(work: () => Promise<T> | T) => Promise<T | null>

/** Resolves to the result of the work; to null if it fails or takes longer than `ms`. */
export function withTimeoutOrNull<T>(ms: number, work: () => Promise<T> | T): Promise<T | null> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(null), ms)
    const settle = (value: T | null) => {
      clearTimeout(timer)
      resolve(value)
    }
    Promise.resolve()
      .then(work)
      .then(settle, () => settle(null))
  })
}

// A task yields to the page after this time. Indivisible work may take longer, but stays below 50 ms.
const sliceMs = 15
let sliceEnd = 0

/** Returns true while this task has time left. */
export const hasTimeLeft = () => performance.now() < sliceEnd

/** Waits until the page is idle, at most 100 ms. Returns at once on a hidden page. */
export function waitForIdle(): Promise<void> {
  if (document.visibilityState === 'hidden') return Promise.resolve()
  return new Promise((resolve) => {
    const begin = () => {
      sliceEnd = performance.now() + sliceMs
      resolve()
    }
    if (typeof requestIdleCallback === 'function') requestIdleCallback(begin, { timeout: 100 })
    else setTimeout(begin, 0)
  })
}

/**
 * Yields to the page if this task has lasted `sliceMs`. Waiting until the page is idle would take 100 ms each time on a
 * busy page, too long for a snapshot of 50 parts.
 */
export async function yieldToPage(): Promise<void> {
  if (!hasTimeLeft()) await nextSlice()
}

/** Yields to the page in any case. Call it before a long indivisible operation. */
export async function nextSlice(): Promise<void> {
  await nextTask()
  sliceEnd = performance.now() + sliceMs
}

/** Continues in a new task, behind those that already wait. Uses messages, because timers are throttled. */
function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    continuations.push(resolve)
    postTask()
  })
}

const continuations: (() => void)[] = []
const postTask = createTaskQueue(() => continuations.shift()?.())

function createTaskQueue(run: () => void): () => void {
  // Emulated browsers may lack MessageChannel, and their sessions must still be scored.
  if (typeof MessageChannel !== 'function') return () => void setTimeout(run)
  const { port1, port2 } = new MessageChannel()
  port1.onmessage = run
  return () => port2.postMessage(null)
}

/** Returns a property that the type does not declare, such as a vendor-specific one; undefined if absent. */
export function member(target: unknown, name: string): unknown {
  return (typeof target === 'object' && target !== null) || typeof target === 'function'
    ? getMember(target, name)
    : undefined
}

export function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

export function numberOrNull(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null
}

export function booleanOrNull(value: unknown): boolean | null {
  return typeof value === 'boolean' ? value : null
}

export function stringsIn(value: unknown): string[] {
  return isArray(value) ? value.filter((item) => typeof item === 'string') : []
}
