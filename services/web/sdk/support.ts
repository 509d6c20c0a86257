import { getMember, isArray } from './realm.ts'

/** Returns the result of `read`, or null if it throws or is nullish, so that a blocked API costs only its value. */
export function readOrNull<T>(read: () => T): NonNullable<T> | null {
  try {
    return read() ?? null
  } catch {
    return null
  }
}

/** Runs work that only waits for the browser; resolves to null on timeout or failure. */
export type AskBrowser = <T>(work: () => Promise<T> | T) => Promise<T | null>

/** Resolves to the result of the work, or to null if it fails or takes longer than `ms`. */
export function withinBudget<T>(ms: number, work: () => Promise<T> | T): Promise<T | null> {
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

// Length of a task before it yields to the page. Indivisible work takes longer, but stays below 50 ms.
const sliceMs = 15
let sliceEnd = 0

/** Returns true while this task has time left. */
export const hasTime = () => performance.now() < sliceEnd

/** Waits until the page is idle, at most 100 ms, and not at all on a hidden page. */
export function idle(): Promise<void> {
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
 * Yields to the page once this task has lasted `sliceMs`. It does not wait for idle time, which takes 100 ms each time
 * on a busy page: a snapshot of 50 parts would be late.
 */
export async function yieldToPage(): Promise<void> {
  if (!hasTime()) await nextSlice()
}

/** Always yields. Call it before a long indivisible operation. */
export async function nextSlice(): Promise<void> {
  await nextTask()
  sliceEnd = performance.now() + sliceMs
}

/** Continues in a new task. Messages queue behind waiting tasks and, unlike timers, are not throttled. */
function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    continuations.push(resolve)
    postTask()
  })
}

const continuations: (() => void)[] = []
const postTask = createTaskQueue(() => continuations.shift()?.())

function createTaskQueue(run: () => void): () => void {
  // Emulated browsers may lack it, and their sessions must still be scored.
  if (typeof MessageChannel !== 'function') return () => void setTimeout(run)
  const { port1, port2 } = new MessageChannel()
  port1.onmessage = run
  return () => port2.postMessage(null)
}

/** Returns a property that the type does not declare, such as a vendor's; undefined if absent. */
export function member(target: unknown, name: string): unknown {
  return (typeof target === 'object' && target !== null) || typeof target === 'function'
    ? getMember(target, name)
    : undefined
}

export function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

export function numberOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null
}

export function booleanOf(value: unknown): boolean | null {
  return typeof value === 'boolean' ? value : null
}

export function textsOf(value: unknown): string[] {
  return isArray(value) ? value.filter((item) => typeof item === 'string') : []
}
