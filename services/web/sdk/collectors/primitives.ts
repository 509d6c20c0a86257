import { apply, descriptorOf, realmWindow } from '../realm.ts'
import { member } from '../support.ts'
import { type Code, inSlices, isForeign, type Suspect } from './natives.ts'

type Global = Window & typeof globalThis

const bare = (code: Code) => [apply(code, undefined, [])]
const onObject = (code: Code) => [apply(code, {}, [])]
const onRevoked = (code: Code) => [apply(code, undefined, [revoked()])]

// Returns a revoked proxy, which throws on any access. A cycle would make JSON throw too, but Chromium takes 10 ms to
// describe one.
function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

interface Group {
  /** Prefix of each reported name. */
  label: string
  /** Path to the object that has the members. */
  owner: string[]
  names: string[]
  misuse?: (code: Code) => unknown
}

const staticMembers = (owner: string, names: string, misuse?: Group['misuse']): Group => ({
  label: `${owner}.`,
  owner: [owner],
  names: names.split(' '),
  ...(misuse ? { misuse } : {}),
})
const prototypeMembers = (owner: string, names: string, misuse?: Group['misuse']): Group => ({
  ...staticMembers(owner, names, misuse),
  owner: [owner, 'prototype'],
})

// Primitives with which a page could change what is observed, computed or sent.
const groups: Group[] = [
  staticMembers('JSON', 'stringify', onRevoked),
  staticMembers('JSON', 'parse', bare),
  prototypeMembers('Function', 'toString', onObject),
  prototypeMembers('Function', 'call apply bind', bare),
  staticMembers(
    'Object',
    'getOwnPropertyDescriptor getOwnPropertyDescriptors getOwnPropertyNames',
    bare,
  ),
  staticMembers('Object', 'defineProperty getPrototypeOf keys entries', bare),
  staticMembers(
    'Reflect',
    'apply get ownKeys getOwnPropertyDescriptor getPrototypeOf construct',
    bare,
  ),
  prototypeMembers('Array', 'map filter push join', bare),
  prototypeMembers('String', 'charCodeAt', bare),
  prototypeMembers('TextEncoder', 'encode', onObject),
  prototypeMembers('Crypto', 'getRandomValues', onObject),
  prototypeMembers('Response', 'json'),
  {
    ...prototypeMembers(
      'Navigator',
      'webdriver userAgent appVersion platform vendor language languages plugins mimeTypes hardwareConcurrency deviceMemory maxTouchPoints userAgentData',
      onObject,
    ),
    label: 'navigator.',
  },
  staticMembers('console', 'debug log error'),
  { ...staticMembers('window', 'fetch setTimeout'), label: '', owner: [] },
  prototypeMembers('EventTarget', 'addEventListener'),
  prototypeMembers('XMLHttpRequest', 'open send', onObject),
]

/** Number of primitives examined in the page; the frame has as many. */
export const examinedPrimitives = groups.reduce((sum, { names }) => sum + names.length, 0)

/**
 * Returns the names of primitives that are not native, in the page (`JSON.stringify`) and in a fresh frame
 * (`frame.JSON.stringify`). Only a driver's script or an extension can change those in the frame.
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

function foreignOf(global: Global, { label, owner, names, misuse }: Group): string[] {
  const target = owner.reduce<unknown>(member, global)
  const twin = realmWindow && owner.reduce<unknown>(member, realmWindow)
  return names
    .filter((name) => {
      const descriptor = descriptorFor(target, name)
      // Not every browser has every member, but one that only the frame has was removed from the page.
      if (!descriptor) return descriptorFor(twin, name) !== undefined || mustExist(name)
      const suspect: Suspect = { code: descriptor.get ?? descriptor.value, name }
      return isForeign(misuse ? { ...suspect, misuse } : suspect)
    })
    .map((name) => `${label}${name}`)
}

// Every engine with this CSS property has `webdriver`; Chromium before 89 had neither without automation.
function mustExist(name: string): boolean {
  return name === 'webdriver' && CSS.supports('border-end-end-radius', 'initial')
}

function descriptorFor(target: unknown, name: string): PropertyDescriptor | undefined {
  const isObject = (typeof target === 'object' && target !== null) || typeof target === 'function'
  return isObject ? descriptorOf(target, name) : undefined
}
