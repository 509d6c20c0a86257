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
import { hasTimeLeft, tryOrNull, yieldToPage } from '../support.ts'

export type Code = (...args: unknown[]) => unknown

export interface Suspect {
  code: unknown
  /** The name in the source text of the native function. */
  name: string
  /** Calls the function such that the native one throws without side effects. Absent if there is no such call. */
  misuse?: (code: Code) => unknown
}

/**
 * Returns true if a function is not native, judged by its source text, own properties, use as a constructor, and the
 * stack of the error that a misuse throws. Wrappers, proxies and bound functions fail at least one check, even if
 * `Function.prototype.toString` is patched.
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
  const source = tryOrNull(() => apply(nativeSourceOf, code, []))
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

// Returns true if the misuse does not throw, or if a script other than the SDK's threw the error.
function misbehaves(code: Code, misuse: (code: Code) => unknown): boolean {
  // The array prevents a tail call, whose frame an engine may drop from the stack.
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
    const stack = tryOrNull(() => (error as Error).stack)
    return /([^\s(@]*):\d+:\d+/.exec(`${stack}`)?.[1] ?? ''
  }
}

/** Examines the items in time slices, with the default error stacks in the page and in the realm of `errors`. */
export async function examineInSlices<T>(
  items: readonly T[],
  errors: ErrorConstructor,
  examine: (item: T) => void,
): Promise<void> {
  for (let at = 0; at < items.length; ) {
    await yieldToPage()
    withDefaultStacks(Error, () =>
      withDefaultStacks(errors, () => {
        do {
          const item = items[at++]
          if (item !== undefined) examine(item)
        } while (at < items.length && hasTimeLeft())
      }),
    )
  }
}

/**
 * Runs `work` with the engine's default error stacks, whatever the page has configured. Stacks are short, because
 * engines re-parse each function in a stack to find the line.
 */
function withDefaultStacks<T>(owner: ErrorConstructor, work: () => T): T {
  const before = ['stackTraceLimit', 'prepareStackTrace'].map(
    (name) => [name, descriptorOf(owner, name)] as const,
  )
  tryOrNull(() =>
    define(owner, 'stackTraceLimit', { value: 4, configurable: true, writable: true }),
  )
  tryOrNull(() => remove(owner, 'prepareStackTrace'))
  try {
    return work()
  } finally {
    for (const [name, descriptor] of before) restore(owner, name, descriptor)
  }
}

export function restore(owner: object, name: string, before: PropertyDescriptor | undefined): void {
  tryOrNull(() => (before ? define(owner, name, before) : remove(owner, name)))
}
