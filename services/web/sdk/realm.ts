import { createSerialiser } from './serialiser.ts'
import { trusted } from './trusted.ts'

// A realm of our own: an empty frame whose built-ins the page has not touched. What decides and what is sent is
// taken from it as this module loads, function by function, since the page can reach into the frame afterwards.
// Where none can be opened (sandbox, detached document) the page's own built-ins stand in, and the snapshot says so.
type Window_ = Window & typeof globalThis

const opened = openRealm()
const from: Window_ = opened?.window ?? window

export const realmWindow: Window_ | null = opened?.window ?? null

/** Whether the frame still has a document, since a page may remove elements that it does not know. */
export function isRealmAttached(): boolean {
  return opened?.element.isConnected === true
}

export const apply = from.Reflect.apply
export const construct = from.Reflect.construct
export const getMember = from.Reflect.get
export const isArray = from.Array.isArray
export const descriptorOf = from.Object.getOwnPropertyDescriptor
export const ownNames = from.Object.getOwnPropertyNames
export const define = from.Object.defineProperty
export const remove = from.Reflect.deleteProperty
export const nativeSourceOf = from.Function.prototype.toString
export const realmConsole = from.console
/** To be called while the frame is attached. It is bound, because a `fetch` may be called on its own window only. */
export const realmFetch: typeof fetch | undefined = from.fetch?.bind(from)
/** Undefined in Firefox before 113 and Safari before 16.4. */
export const Compression: typeof CompressionStream | undefined = from.CompressionStream
export const Response_ = from.Response

const { charCodeAt } = from.String.prototype
export const { encode, jsonOf } = createSerialiser({
  isArray,
  keysOf: from.Object.keys,
  codeAt: (text, at) => apply(charCodeAt, text, [at]),
})

const { crypto } = from
/** Undefined outside of secure contexts. */
export const subtle = bindSubtle()
const getRandomValues = crypto?.getRandomValues

export type Subtle = NonNullable<ReturnType<typeof bindSubtle>>

function bindSubtle() {
  try {
    const { subtle } = crypto
    return {
      digest: subtle.digest.bind(subtle),
      importKey: subtle.importKey.bind(subtle),
      deriveBits: subtle.deriveBits.bind(subtle),
      encrypt: subtle.encrypt.bind(subtle),
      sign: subtle.sign.bind(subtle),
    }
  } catch {
    return undefined
  }
}

export function randomBytes(size: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(size)
  apply(getRandomValues, crypto, [bytes])
  return bytes
}

/**
 * What the browser itself answers for this page's `navigator`, whatever the page put in the way; undefined where that
 * cannot be read.
 */
export function navigatorSays(name: string): unknown {
  const getter = navigatorGetters[name]
  try {
    return getter && apply(getter, navigator, [])
  } catch {
    return undefined
  }
}

const navigatorGetters: Record<string, (() => unknown) | undefined> = {
  webdriver: from.Navigator && descriptorOf(from.Navigator.prototype, 'webdriver')?.get,
}

// A page may have blocked some of the ways to open a frame, so they are tried one after the other. Never throws.
function openRealm() {
  for (const way of [byElement, byNamespace, byMarkup]) {
    try {
      const found = openBy(way)
      if (found) return found
    } catch {
      // The next way may work.
    }
  }
  return null
}

// A window's numbered members are the browser's own, while `contentWindow` may be answered by the page.
function openBy(way: (host: Element) => void): { window: Window_; element: Element } | null {
  const before: unknown[] = []
  for (let i = 0; window[i]; i++) before[i] = window[i]
  way(document.body ?? document.documentElement)
  for (let i = 0; window[i]; i++) {
    const frame = window[i] as Window_
    if (!isAmong(frame, before) && frame.frameElement && isUsable(frame))
      return { window: frame, element: frame.frameElement }
  }
  return null
}

function isAmong(value: unknown, values: unknown[]): boolean {
  for (let i = 0; i < values.length; i++) if (values[i] === value) return true
  return false
}

// Throws where the frame has another origin, as in a sandbox.
function isUsable(frame: Window_): boolean {
  return (
    frame.Object !== Object && frame.parent === window && typeof frame.Reflect.apply === 'function'
  )
}

function byElement(host: Element): void {
  host.appendChild(hide(document.createElement('iframe')))
}

function byNamespace(host: Element): void {
  host.insertBefore(hide(document.createElementNS('http://www.w3.org/1999/xhtml', 'iframe')), null)
}

function hide(frame: Element): Element {
  frame.setAttribute('hidden', '')
  frame.setAttribute('aria-hidden', 'true')
  frame.setAttribute('tabindex', '-1')
  return frame
}

function byMarkup(host: Element): void {
  const frame = trusted.createHTML('<iframe hidden aria-hidden="true" tabindex="-1"></iframe>')
  host.insertAdjacentHTML('beforeend', frame)
}
