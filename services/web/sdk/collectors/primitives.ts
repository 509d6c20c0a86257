import { apply, descriptorOf, realmWindow } from '../realm.ts'
import { member } from '../support.ts'
import { type Code, examineInSlices, isForeign, type Suspect } from './natives.ts'

type Global = Window & typeof globalThis

const callBare = (code: Code) => [apply(code, undefined, [])]
const callOnObject = (code: Code) => [apply(code, {}, [])]
const callWithRevoked = (code: Code) => [apply(code, undefined, [revoked()])]

// Returns a revoked proxy, which throws on any access. For a cycle, Chromium takes 10 ms to create the error message.
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

// Built-ins that a page could replace to change what the SDK observes, computes or sends.
const groups: Group[] = [
  staticMembers('JSON', 'stringify', callWithRevoked),
  staticMembers('JSON', 'parse', callBare),
  prototypeMembers('Function', 'toString', callOnObject),
  prototypeMembers('Function', 'call apply bind', callBare),
  staticMembers(
    'Object',
    'getOwnPropertyDescriptor getOwnPropertyDescriptors getOwnPropertyNames',
    callBare,
  ),
  staticMembers('Object', 'defineProperty getPrototypeOf keys entries', callBare),
  staticMembers(
    'Reflect',
    'apply get ownKeys getOwnPropertyDescriptor getPrototypeOf construct',
    callBare,
  ),
  prototypeMembers('Array', 'map filter push join', callBare),
  prototypeMembers('String', 'charCodeAt', callBare),
  prototypeMembers('TextEncoder', 'encode', callOnObject),
  prototypeMembers('Crypto', 'getRandomValues', callOnObject),
  prototypeMembers('Response', 'json'),
  {
    ...prototypeMembers(
      'Navigator',
      'webdriver userAgent appVersion platform vendor language languages plugins mimeTypes hardwareConcurrency deviceMemory maxTouchPoints userAgentData',
      callOnObject,
    ),
    label: 'navigator.',
  },
  staticMembers('console', 'debug log error'),
  { ...staticMembers('window', 'fetch setTimeout'), label: '', owner: [] },
  prototypeMembers('EventTarget', 'addEventListener'),
  prototypeMembers('XMLHttpRequest', 'open send', callOnObject),
]

/** Number of primitives examined in the page, and again in the frame. */
export const primitiveCount = groups.reduce((sum, { names }) => sum + names.length, 0)

/**
 * Returns the names of primitives that are not native, in the page (`JSON.stringify`) and in a fresh frame
 * (`frame.JSON.stringify`). Only a driver's script or an extension can change those in the frame.
 */
export async function findForeignPrimitives(): Promise<string[]> {
  const page = await foreignIn(window).catch(() => [])
  const frame = realmWindow ? await foreignIn(realmWindow).catch(() => []) : []
  return [...page, ...frame.map((name) => `frame.${name}`)]
}

async function foreignIn(global: Global): Promise<string[]> {
  const found: string[] = []
  await examineInSlices(groups, global.Error, (group) => {
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
      // Not every browser has every member. One that the frame has but the page lacks was removed from the page.
      if (!descriptor) return descriptorFor(twin, name) !== undefined || mustExist(name)
      const suspect: Suspect = { code: descriptor.get ?? descriptor.value, name }
      return isForeign(misuse ? { ...suspect, misuse } : suspect)
    })
    .map((name) => `${label}${name}`)
}

// Every engine with this CSS property has `webdriver`. Chromium before 89 lacks both, unless it is automated.
function mustExist(name: string): boolean {
  return name === 'webdriver' && CSS.supports('border-end-end-radius', 'initial')
}

function descriptorFor(target: unknown, name: string): PropertyDescriptor | undefined {
  const isObject = (typeof target === 'object' && target !== null) || typeof target === 'function'
  return isObject ? descriptorOf(target, name) : undefined
}
