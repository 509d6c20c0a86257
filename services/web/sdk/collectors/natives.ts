import {
  apply,
  construct,
  define,
  descriptorOf,
  isArray,
  nativeSourceOf,
  ownNames,
  remove,
} from '../realm.ts'
import { hasTime, readOrNull, yieldToPage } from '../support.ts'

export type Code = (...args: unknown[]) => unknown

export interface Suspect {
  code: unknown
  /** The name in the source text of the native function. */
  name: string
  /**
   * Calls the function in a way that makes the native one throw without side effects. Absent if there is no such call.
   */
  misuse?: (code: Code) => unknown
}

/**
 * Returns true if a function is not native, by independent checks: source text, own properties, being a constructor,
 * and the stack of the error that a misuse throws. A wrapper, a proxy and a bound function each fail at least one, even
 * if `Function.prototype.toString` is patched.
 */
export function isForeign({ code, name, misuse }: Suspect): boolean {
  if (typeof code !== 'function') return true
  const native = code as Code
  return (
    !hasNativeSource(native, name) ||
    hasScriptProperties(native) ||
    isConstructor(native) ||
    (misuse !== undefined && misbehaves(native, misuse))
  )
}

// Source text of a native function before and after its name.
const [before = '', after = ''] = apply(nativeSourceOf, isArray, []).split('isArray')

function hasNativeSource(code: Code, name: string): boolean {
  const source = readOrNull(() => apply(nativeSourceOf, code, []))
  return source === `${before}${name}${after}` || source === `${before}get ${name}${after}`
}

function hasScriptProperties(code: Code): boolean {
  const names = ownNames(code)
  for (let i = 0; i < names.length; i++)
    if (/^(prototype|arguments|caller|toString|apply|call|bind)$/.test(names[i] ?? '')) return true
  return false
}

function isConstructor(code: Code): boolean {
  try {
    construct(Object, [], code)
    return true
  } catch {
    return false
  }
}

// Returns true if the misuse does not throw, or another script is in the stack above the call.
function misbehaves(code: Code, misuse: (code: Code) => unknown): boolean {
  // Arrays prevent tail calls, which an engine may drop from the stack.
  const script = scriptOf(() => [misuse(code)])
  sdkScript ??= scriptOf(() => [thrower()])
  return script === null || script !== sdkScript
}

let sdkScript: string | null = null

function thrower(): never {
  throw new Error('')
}

// Returns the URL of the innermost script in the error's stack; null if nothing is thrown.
function scriptOf(call: () => unknown): string | null {
  try {
    call()
    return null
  } catch (error) {
    const stack = readOrNull(() => (error as Error).stack)
    return /([^\s(@]*):\d+:\d+/.exec(`${stack}`)?.[1] ?? ''
  }
}

/** Examines the items in time slices, with plain error stacks in the page and in another realm. */
export async function inSlices<T>(
  items: readonly T[],
  errors: ErrorConstructor,
  examine: (item: T) => void,
): Promise<void> {
  for (let at = 0; at < items.length; ) {
    await yieldToPage()
    withPlainStacks(Error, () =>
      withPlainStacks(errors, () => {
        do {
          const item = items[at++]
          if (item !== undefined) examine(item)
        } while (at < items.length && hasTime())
      }),
    )
  }
}

/**
 * Runs `work` with the engine's default error stacks, whatever the page has configured. Stacks are short, because
 * engines re-parse each function in a stack to find the line.
 */
function withPlainStacks<T>(owner: ErrorConstructor, work: () => T): T {
  const before = ['stackTraceLimit', 'prepareStackTrace'].map(
    (name) => [name, descriptorOf(owner, name)] as const,
  )
  readOrNull(() =>
    define(owner, 'stackTraceLimit', { value: 4, configurable: true, writable: true }),
  )
  readOrNull(() => remove(owner, 'prepareStackTrace'))
  try {
    return work()
  } finally {
    for (const [name, descriptor] of before) restore(owner, name, descriptor)
  }
}

export function restore(owner: object, name: string, before: PropertyDescriptor | undefined): void {
  readOrNull(() => (before ? define(owner, name, before) : remove(owner, name)))
}
