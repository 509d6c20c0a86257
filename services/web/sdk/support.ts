import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'
import { getMember, isArray, jsonOf } from './realm.ts'

/** What `read` gives, or null when it throws or there is nothing: one blocked API costs one value. */
export function readOrNull<T>(read: () => T): NonNullable<T> | null {
  try {
    return read() ?? null
  } catch {
    return null
  }
}

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

// The first 128 bits of SHA-256, hex: short enough to send, long enough never to collide by chance.
function hashText(text: string): string {
  return hashBytes(utf8ToBytes(text))
}

export function hashBytes(bytes: Uint8Array): string {
  return bytesToHex(sha256(bytes)).slice(0, 32)
}

/** All of SHA-256, lower-case hex, of the text in UTF-8. */
export function sha256Of(text: string): string {
  return bytesToHex(sha256(utf8ToBytes(text)))
}

export function hashJson(value: unknown): string {
  return hashText(jsonOf(value) ?? '')
}

/** Waits for a moment in which the page has nothing better to do, at most 100 ms. */
export function idle(): Promise<void> {
  return new Promise((resolve) => {
    if (typeof requestIdleCallback === 'function') requestIdleCallback(() => resolve(), { timeout: 100 })
    else setTimeout(resolve, 0)
  })
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
