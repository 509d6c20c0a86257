import { getMember, isArray } from './realm.ts'

/** What `read` returns, or null when it throws or there is nothing, so that one blocked API costs one value. */
export function readOrNull<T>(read: () => T): NonNullable<T> | null {
  try {
    return read() ?? null
  } catch {
    return null
  }
}

/** Runs work that only waits for the browser; null when that takes too long or fails. */
export type AskBrowser = <T>(work: () => Promise<T> | T) => Promise<T | null>

/** What the work comes to, or null when that takes longer than so many milliseconds or fails. */
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

// For how long one task of ours works before it lets the page go on. What cannot be divided lasts longer, and still
// fits into 50 ms.
const sliceMs = 15
let sliceEnd = 0

/** Returns whether the slice of this task has time left. */
export const hasTime = () => performance.now() < sliceEnd

/** Waits for a moment in which the page has nothing better to do, at most 100 ms. Nobody waits for a hidden page. */
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
 * Ends this task, so that the page can go on, once it has lasted for `sliceMs`. It does not wait until the page has
 * nothing to do. On a busy page that takes 100 ms each time, and a snapshot of 50 parts came too late.
 */
export async function yieldToPage(): Promise<void> {
  if (!hasTime()) await nextSlice()
}

/** Ends this task in any case, before something that a browser does in one piece and that takes long. */
export async function nextSlice(): Promise<void> {
  await nextTask()
  sliceEnd = performance.now() + sliceMs
}

/** Continues in a task of its own. A message is queued behind what waits already, and unlike a timer it is not delayed. */
function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    continuations.push(resolve)
    postTask()
  })
}

const continuations: (() => void)[] = []
const postTask = createTaskQueue(() => continuations.shift()?.())

function createTaskQueue(run: () => void): () => void {
  // A program that only imitates a browser may have none, and it is to be judged all the same.
  if (typeof MessageChannel !== 'function') return () => void setTimeout(run)
  const { port1, port2 } = new MessageChannel()
  port1.onmessage = run
  return () => port2.postMessage(null)
}

/** A member of an object that the type does not promise, such as a vendor's own property; undefined when absent. */
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
