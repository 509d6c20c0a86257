import { apply, descriptorOf, realmWindow } from '../realm.ts'
import { member } from '../support.ts'
import { type Code, inSlices, isForeign, type Suspect } from './natives.ts'

type Global = Window & typeof globalThis

const bare = (code: Code) => [apply(code, undefined, [])]
const onObject = (code: Code) => [apply(code, {}, [])]
const onRevoked = (code: Code) => [apply(code, undefined, [revoked()])]

// An object that cannot be read at all. A cycle would make JSON throw as well, but Chromium takes 10 ms to describe one.
function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

interface Group {
  /** The prefix of each name in a report. */
  label: string
  /** The path to the object that has them. */
  owner: string[]
  names: string[]
  wrongly?: (code: Code) => unknown
}

const own = (owner: string, names: string, wrongly?: Group['wrongly']): Group => ({
  label: `${owner}.`,
  owner: [owner],
  names: names.split(' '),
  ...(wrongly ? { wrongly } : {}),
})
const onPrototype = (owner: string, names: string, wrongly?: Group['wrongly']): Group => ({
  ...own(owner, names, wrongly),
  owner: [owner, 'prototype'],
})

// Primitives with which a page could change what is observed, computed or sent.
const groups: Group[] = [
  own('JSON', 'stringify', onRevoked),
  own('JSON', 'parse', bare),
  onPrototype('Function', 'toString', onObject),
  onPrototype('Function', 'call apply bind', bare),
  own('Object', 'getOwnPropertyDescriptor getOwnPropertyDescriptors getOwnPropertyNames', bare),
  own('Object', 'defineProperty getPrototypeOf keys entries', bare),
  own('Reflect', 'apply get ownKeys getOwnPropertyDescriptor getPrototypeOf construct', bare),
  onPrototype('Array', 'map filter push join', bare),
  onPrototype('String', 'charCodeAt', bare),
  onPrototype('TextEncoder', 'encode', onObject),
  onPrototype('Crypto', 'getRandomValues', onObject),
  onPrototype('Response', 'json'),
  {
    ...onPrototype(
      'Navigator',
      'webdriver userAgent appVersion platform vendor language languages plugins mimeTypes hardwareConcurrency deviceMemory maxTouchPoints userAgentData',
      onObject,
    ),
    label: 'navigator.',
  },
  own('console', 'debug log error'),
  { ...own('window', 'fetch setTimeout'), label: '', owner: [] },
  onPrototype('EventTarget', 'addEventListener'),
  onPrototype('XMLHttpRequest', 'open send', onObject),
]

/** How many there are in the page; as many are examined in the frame. */
export const examinedPrimitives = groups.reduce((sum, { names }) => sum + names.length, 0)

/**
 * The names of what is not the browser's own, in the page (`JSON.stringify`) and in a fresh frame
 * (`frame.JSON.stringify`). Only what reaches every frame can have been there: a driver's script or an extension.
 */
export async function foreignPrimitives(): Promise<string[]> {
  const page = await foreignIn(window).catch(() => [])
  const frame = realmWindow ? await foreignIn(realmWindow).catch(() => []) : []
  return [...page, ...frame.map((name) => `frame.${name}`)]
}

async function foreignIn(global: Global): Promise<string[]> {
  const found: string[] = []
  await inSlices(groups, global.Error, (group) => {
    found.push(...foreignOf(global, group))
  })
  return found
}

function foreignOf(global: Global, { label, owner, names, wrongly }: Group): string[] {
  const target = owner.reduce<unknown>(member, global)
  const twin = realmWindow && owner.reduce<unknown>(member, realmWindow)
  return names
    .filter((name) => {
      const descriptor = descriptorFor(target, name)
      // Not every browser has every member, but one that only the frame has was taken away from the page.
      if (!descriptor) return descriptorFor(twin, name) !== undefined || mustExist(name)
      const suspect: Suspect = { code: descriptor.get ?? descriptor.value, name }
      return isForeign(wrongly ? { ...suspect, wrongly } : suspect)
    })
    .map((name) => `${label}${name}`)
}

// Every engine has `webdriver` where it has this property of CSS; Chromium before 89 had neither for people.
function mustExist(name: string): boolean {
  return name === 'webdriver' && CSS.supports('border-end-end-radius', 'initial')
}

function descriptorFor(target: unknown, name: string): PropertyDescriptor | undefined {
  const isObject = (typeof target === 'object' && target !== null) || typeof target === 'function'
  return isObject ? descriptorOf(target, name) : undefined
}
