import { hash, randomBytes, randomInt } from 'node:crypto'
import { networkPrefix } from '../../../infra/ip/network.ts'
import type { Secret } from '../secret-scan.ts'

/**
 * Unique texts and numbers of a person, one for each member that a client can fill. All texts begin with the person's
 * token, so that a single search finds any of them.
 */
export interface Marks {
  name: string
  token: string
  /**
   * Returns the text of this member: letters, digits and hyphens, which need no escaping in URLs, headers, JSON and
   * SQL.
   */
  text(member: string): string
  /** Returns a mark of fifteen digits, for a member that takes any number. */
  number(member: string): number
  /** Adds another value that only this person has. */
  add(member: string, value: string | Buffer): void
  /** Returns the values that must not be found. */
  secrets(): Secret[]
  /** Returns the values of all members, to check that the scan would find each. */
  members(): Secret[]
}

const tokenLetters = 'bcdfghjkmnpqrstvwxz'

export function createMarks(name: string): Marks {
  const letter = () => tokenLetters[randomInt(tokenLetters.length)] ?? 'q'
  const token = Array.from({ length: 12 }, letter).join('')
  const texts = new Map<string, string>()
  const numbers = new Map<string, number>()
  const added = new Map<string, Secret>()
  const once = <T>(known: Map<string, T>, member: string, make: () => T): T => {
    const value = known.get(member) ?? make()
    known.set(member, value)
    return value
  }
  const ofNumber = ([member, value]: [string, number]): Secret[] => [
    { name: `${name}: ${member}`, value: String(value) },
    { name: `${name}: ${member} as a double`, value: doubleOf(value) },
  ]
  return {
    name,
    token,
    text: (member) => once(texts, member, () => `${token}-${String(texts.size).padStart(3, '0')}`),
    number: (member) => once(numbers, member, () => 4e14 + randomInt(2 ** 47)),
    add: (member, value) => void added.set(member, { name: `${name}: ${member}`, value }),
    secrets: () => [
      { name: `${name}: a text`, value: token },
      ...[...numbers].flatMap(ofNumber),
      ...added.values(),
    ],
    members: () => [
      ...[...texts].map(([member, value]) => ({ name: member, value })),
      ...[...numbers].map(([member, value]) => ({ name: member, value: String(value) })),
    ],
  }
}

function doubleOf(value: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeDoubleLE(value)
  return bytes
}

/**
 * An address that no two have: of all of them no part is another's. With what was made of its network without a key.
 */
export function markedAddress(marks: Marks, n: number): string {
  const network = `198.18.${100 + n}`
  const address = `${network}.${200 + (n % 50)}`
  marks.add('address', `${network}.`)
  const prefix = networkPrefix(address) ?? ''
  for (const text of [prefix, `${network}.0`, `${network}.0/24`])
    marks.add(`SHA-256 of ${text}`, hash('sha256', text).slice(0, 16))
  return address
}

/** Returns a marked binding for a hand-off: random hex in place of a hash. */
export function markedBinding(marks: Marks): string {
  const binding = randomBytes(32).toString('hex')
  marks.add('binding', binding)
  return binding
}
