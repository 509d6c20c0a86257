import { hash, randomBytes, randomInt } from 'node:crypto'
import { networkPrefix } from '../../../infra/ip/network.ts'
import type { Secret } from '../secret-scan.ts'

/**
 * Texts and numbers that one person alone has, each for one member of what a client can fill. All texts begin with the
 * person's token, so that one look finds any of them, whatever stands around it.
 */
export interface Marks {
  name: string
  token: string
  /** The text of this member: letters, digits and hyphens, which stay as they are in URLs, headers, JSON and SQL. */
  text(member: string): string
  /** Of fifteen digits, for a member that takes any number. */
  number(member: string): number
  /** Something else that is only ever said of this person, with how it would be found. */
  add(member: string, value: string | Buffer): void
  /** That of the person who must not be found. */
  secrets(): Secret[]
  /** Every member, to see that the scan would find each. */
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

/** An address that no two have: of all of them no part is another's. With what was made of its network without a key. */
export function markedAddress(marks: Marks, n: number): string {
  const network = `198.18.${100 + n}`
  const address = `${network}.${200 + (n % 50)}`
  marks.add('address', `${network}.`)
  const prefix = networkPrefix(address) ?? ''
  for (const text of [prefix, `${network}.0`, `${network}.0/24`])
    marks.add(`SHA-256 of ${text}`, hash('sha256', text).slice(0, 16))
  return address
}

/** Of a hand-off: what stands for the text that it was asked for with. */
export function markedBinding(marks: Marks): string {
  const binding = randomBytes(32).toString('hex')
  marks.add('binding', binding)
  return binding
}
