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
  /** Calls the function so that the native one throws at once, without any effect. Left out where no such call exists. */
  wrongly?: (code: Code) => unknown
}

/**
 * Whether a function is the browser's own, by checks that do not rest on each other. They are source text, own
 * properties, being no constructor, and the stack of the error that a wrong call throws. A wrapper, a proxy and a
 * bound function each fail at least one, also where `Function.prototype.toString` lies.
 */
export function isForeign({ code, name, wrongly }: Suspect): boolean {
  if (typeof code !== 'function') return true
  const native = code as Code
  return (
    !hasNativeSource(native, name) ||
    hasScriptProperties(native) ||
    isConstructor(native) ||
    (wrongly !== undefined && misbehaves(native, wrongly))
  )
}

// How the engine writes the source text of a native function, around its name.
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

// A native function throws for a wrong call, and no other script stands between the call and the error.
function misbehaves(code: Code, wrongly: (code: Code) => unknown): boolean {
  // In arrays, since an engine may drop a function from the stack that only returns what another returns.
  const script = scriptOf(() => [wrongly(code)])
  ownScript ??= scriptOf(() => [thrower()])
  return script === null || script !== ownScript
}

let ownScript: string | null = null

function thrower(): never {
  throw new Error('')
}

// The address of the script that is innermost in the stack of the error; null when nothing is thrown.
function scriptOf(call: () => unknown): string | null {
  try {
    call()
    return null
  } catch (error) {
    const stack = readOrNull(() => (error as Error).stack)
    return /([^\s(@]*):\d+:\d+/.exec(`${stack}`)?.[1] ?? ''
  }
}

/** Examines the items one after another in slices, with plain stacks in the page and in another realm. */
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
 * Runs with stacks as the engine itself writes them, whatever the page has set for its own errors. They are short:
 * an engine reads the source of each function in a stack again to find the line.
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
