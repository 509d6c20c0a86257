import { createSerializer } from './serializer.ts'
import { trusted } from './trusted.ts'

// The clean realm is an empty frame whose built-ins the page has not touched. Functions that detect or send anything
// are copied from it as this module loads, because the page can modify the frame later. Without a frame, as in a
// sandbox, the page's built-ins are used, and the snapshot says so.
type Window_ = Window & typeof globalThis

const realm = openRealm()
const source: Window_ = realm?.window ?? window

export const realmWindow: Window_ | null = realm?.window ?? null

/** Returns true while the frame is in the document. Some pages remove unknown elements. */
export function isRealmAttached(): boolean {
  return realm?.element.isConnected === true
}

export const apply = source.Reflect.apply
export const construct = source.Reflect.construct
export const getMember = source.Reflect.get
export const isArray = source.Array.isArray
export const descriptorOf = source.Object.getOwnPropertyDescriptor
export const ownNames = source.Object.getOwnPropertyNames
export const define = source.Object.defineProperty
export const remove = source.Reflect.deleteProperty
export const nativeSourceOf = source.Function.prototype.toString
export const realmConsole = source.console
/** Works only while the frame is attached. Bound to its window, because `fetch` requires that. */
export const realmFetch: typeof fetch | undefined = source.fetch?.bind(source)
/** Undefined in Firefox before 113 and Safari before 16.4. */
export const Compression: typeof CompressionStream | undefined = source.CompressionStream
export const Response_ = source.Response

const { charCodeAt } = source.String.prototype
export const { encode, jsonOf } = createSerializer({
  isArray,
  keysOf: source.Object.keys,
  codeAt: (text, at) => apply(charCodeAt, text, [at]),
})

const { crypto } = source
/** Undefined outside secure contexts. */
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
 * Reads a property of this page's `navigator` with the clean realm's getter, which the page cannot override. Returns
 * undefined if it cannot be read.
 */
export function readNavigator(name: string): unknown {
  const getter = navigatorGetters[name]
  try {
    return getter && apply(getter, navigator, [])
  } catch {
    return undefined
  }
}

const navigatorGetters: Record<string, (() => unknown) | undefined> = {
  webdriver: source.Navigator && descriptorOf(source.Navigator.prototype, 'webdriver')?.get,
}

// Tries several ways to insert a frame, because the page may have blocked some. Never throws.
function openRealm() {
  for (const insert of [insertElement, insertNamespaced, insertMarkup]) {
    try {
      const frame = openFrame(insert)
      if (frame) return frame
    } catch {
      // The next way may work.
    }
  }
  return null
}

// Finds the frame through `window[i]`, which pages cannot override, unlike `contentWindow`.
function openFrame(insert: (host: Element) => void): { window: Window_; element: Element } | null {
  const before: unknown[] = []
  for (let i = 0; window[i]; i++) before[i] = window[i]
  insert(document.body ?? document.documentElement)
  for (let i = 0; window[i]; i++) {
    const frame = window[i] as Window_
    if (!includes(frame, before) && frame.frameElement && isUsable(frame))
      return { window: frame, element: frame.frameElement }
  }
  return null
}

function includes(value: unknown, values: unknown[]): boolean {
  for (let i = 0; i < values.length; i++) if (values[i] === value) return true
  return false
}

// Throws if the frame has another origin, as in a sandbox.
function isUsable(frame: Window_): boolean {
  return (
    frame.Object !== Object && frame.parent === window && typeof frame.Reflect.apply === 'function'
  )
}

function insertElement(host: Element): void {
  host.appendChild(hide(document.createElement('iframe')))
}

function insertNamespaced(host: Element): void {
  host.insertBefore(hide(document.createElementNS('http://www.w3.org/1999/xhtml', 'iframe')), null)
}

function hide(frame: Element): Element {
  frame.setAttribute('hidden', '')
  frame.setAttribute('aria-hidden', 'true')
  frame.setAttribute('tabindex', '-1')
  return frame
}

function insertMarkup(host: Element): void {
  const frame = trusted.createHTML('<iframe hidden aria-hidden="true" tabindex="-1"></iframe>')
  host.insertAdjacentHTML('beforeend', frame)
}
