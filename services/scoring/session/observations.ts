import { inflateRawSync } from 'node:zlib'
import { maxDeflatedBytes, maxObservationBytes } from '../../../infra/wire/collect/protocol.ts'
import {
  type Behavior,
  behaviorSchema,
  type Observations,
  observationsSchema,
  type Snapshot,
} from '../../../schemas/observations.ts'

// A real snapshot has about 300 members, four levels deep. Much larger ones only waste CPU time.
const maxMembers = 20_000
const maxDepth = 32
// Most payloads are smaller, and allocating zlib's default of 16 KB takes as long as inflating them.
const chunkSize = 8192

/**
 * Returns the observations in a batch's payload (raw-deflated JSON), or undefined if it can't be read. Never throws.
 */
export function readObservations(payload: Buffer): Observations | undefined {
  // Limit the compressed size as well, because empty blocks take time but inflate to nothing.
  if (payload.length > maxDeflatedBytes) return undefined
  try {
    const json = inflateRawSync(payload, { maxOutputLength: maxObservationBytes, chunkSize })
    return isCheapToParse(json)
      ? observationsSchema.parse(JSON.parse(json.toString('utf8')))
      : undefined
  } catch {
    return undefined
  }
}

const quote = 0x22
const backslash = 0x5c

const kinds = new Uint8Array(256)
const [opening, closing, separator, string] = [1, 2, 3, 4]
for (const byte of Buffer.from('[{')) kinds[byte] = opening
for (const byte of Buffer.from(']}')) kinds[byte] = closing
for (const byte of Buffer.from(',:')) kinds[byte] = separator
kinds[quote] = string

// Counts brackets, commas and colons outside of strings, without parsing the JSON.
function isCheapToParse(json: Buffer): boolean {
  let depth = 0
  let members = 0
  for (let at = 0; at < json.length; at++) {
    const kind = kinds[json[at] ?? 0]
    if (kind === 0) continue
    if (kind === string) {
      at = endOfString(json, at)
      continue
    }
    if (kind === opening) depth += 1
    if (kind === closing) depth -= 1
    members += 1
    if (depth > maxDepth || members > maxMembers) return false
  }
  return true
}

function endOfString(json: Buffer, from: number): number {
  let at = from + 1
  while (at < json.length && json[at] !== quote) at += json[at] === backslash ? 2 : 1
  return at
}

type Automation = Snapshot['automation']

/**
 * Returns the newest snapshot with the automation markers of all earlier ones, because a driver still controls the
 * browser if the next page hides it.
 */
export function mergeSnapshot(previous: Snapshot | null, next: Snapshot): Snapshot {
  if (!previous) return next
  return { ...next, automation: mergeAutomation(previous.automation, next.automation) }
}

function mergeAutomation(previous: Automation, next: Automation): Automation {
  return {
    webdriver: either(previous.webdriver, next.webdriver),
    webdriver_iframe: either(previous.webdriver_iframe, next.webdriver_iframe),
    webdriver_worker: either(previous.webdriver_worker, next.webdriver_worker),
    webdriver_own_property: either(previous.webdriver_own_property, next.webdriver_own_property),
    cdp_runtime: either(previous.cdp_runtime, next.cdp_runtime),
    console_readers: union(previous.console_readers, next.console_readers),
    sequentum: either(previous.sequentum, next.sequentum),
    electron: either(previous.electron, next.electron),
    globals: union(previous.globals, next.globals),
    document_attributes: union(previous.document_attributes, next.document_attributes),
  }
}

function either(previous: boolean | null, next: boolean | null): boolean | null {
  return previous || next || (next ?? previous)
}

function union(previous: string[], next: string[]): string[] {
  return [...new Set([...previous, ...next])].slice(0, 100)
}

export function hasIdentityChanged(previous: Snapshot | null, next: Snapshot): boolean {
  if (!previous) return false
  return (
    differ(previous.navigator.user_agent, next.navigator.user_agent) ||
    differ(previous.navigator.platform, next.navigator.platform) ||
    differ(previous.webgl.renderer, next.webgl.renderer)
  )
}

/** Returns true if another device continues the session, so that platform, graphics card and canvas all differ. */
export function hasDeviceChanged(previous: Snapshot | null, next: Snapshot): boolean {
  if (!previous) return false
  return (
    differ(previous.navigator.platform, next.navigator.platform) &&
    differ(previous.webgl.renderer, next.webgl.renderer) &&
    differ(previous.canvas.hash, next.canvas.hash)
  )
}

function differ<T extends string | number>(previous: T | null, next: T | null): boolean {
  return previous !== null && next !== null && previous !== next
}

type Channel = Record<string, number | null>

// Means and spreads, which are averaged by number of events. All other members are summed.
const averagedMembers = new Set([
  'interval_mean',
  'interval_std',
  'straightness',
  'speed_std',
  'hold_mean',
  'hold_std',
  'radius_std',
])
const maxCount = 2 ** 31 - 1

/** Returns the session's behavior with that of another batch added. */
export function addBehavior(total: Behavior | null, added: Behavior): Behavior {
  if (!total) return added
  const channels = Object.entries(added).map(([name, channel]) => [
    name,
    addChannel(channelOf(total, name), channel),
  ])
  return behaviorSchema.parse(Object.fromEntries(channels))
}

export function hasBehavior(behavior: Behavior | null): boolean {
  return behavior !== null && Object.values(behavior).some((channel) => channel.events > 0)
}

/** Returns the number of trusted key, pointer and touch events, which scripts in the page can't create. */
export function countTrustedInputs({ mouse, keyboard, touch }: Behavior): number {
  const trusted = ({ events, untrusted }: Behavior['mouse' | 'keyboard' | 'touch']) =>
    Math.max(0, events - untrusted)
  return trusted(mouse) + trusted(keyboard) + trusted(touch) + mouse.activations
}

function channelOf(behavior: Behavior, name: string): Channel {
  return Object.entries(behavior).find(([channel]) => channel === name)?.[1] ?? {}
}

function addChannel(total: Channel, added: Channel): Channel {
  const events = { total: total.events ?? 0, added: added.events ?? 0 }
  const names = Object.keys({ ...total, ...added })
  return Object.fromEntries(
    names.map((name) => [name, addMember(name, total[name] ?? null, added[name] ?? null, events)]),
  )
}

function addMember(
  name: string,
  total: number | null,
  added: number | null,
  events: { total: number; added: number },
): number | null {
  if (total === null) return added
  if (added === null) return total
  if (name === 'time_to_submit_ms') return Math.min(total, added)
  if (!averagedMembers.has(name)) return Math.min(total + added, maxCount)
  const eventCount = events.total + events.added
  return eventCount === 0 ? total : (total * events.total + added * events.added) / eventCount
}
