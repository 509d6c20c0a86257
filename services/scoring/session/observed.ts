import { inflateRawSync } from 'node:zlib'
import { maxDeflatedBytes, maxObservationBytes } from '../../../infra/wire/collect/protocol.ts'
import {
  type Behavior,
  behaviorSchema,
  type Observations,
  observationsSchema,
  type Snapshot,
} from '../../../schemas/observations.ts'

// An honest snapshot has some 300 members, four levels deep. What has more is made to cost time, not to be read.
const maxMembers = 20_000
const maxDepth = 32
// Most are smaller, and allocating zlib's 16 KB takes as long as inflating them.
const chunkSize = 8192

/** The observations in a batch's payload (raw-deflated JSON); undefined when it cannot be read. Never throws. */
export function readObservations(payload: Buffer): Observations | undefined {
  // Empty blocks cost time as well, although they inflate to nothing.
  if (payload.length > maxDeflatedBytes) return undefined
  try {
    const json = inflateRawSync(payload, { maxOutputLength: maxObservationBytes, chunkSize })
    return isModest(json) ? observationsSchema.parse(JSON.parse(json.toString('utf8'))) : undefined
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

// Whether parsing the JSON is cheap, without parsing it: brackets, commas and colons outside of strings are few.
function isModest(json: Buffer): boolean {
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
 * The newest snapshot, with every automation marker that an earlier one of the session showed: a driver does not
 * stop being one because the next page hides it.
 */
export function mergeSnapshot(known: Snapshot | null, next: Snapshot): Snapshot {
  return known ? { ...next, automation: mergeAutomation(known.automation, next.automation) } : next
}

function mergeAutomation(known: Automation, next: Automation): Automation {
  return {
    webdriver: either(known.webdriver, next.webdriver),
    webdriver_iframe: either(known.webdriver_iframe, next.webdriver_iframe),
    webdriver_worker: either(known.webdriver_worker, next.webdriver_worker),
    webdriver_own_property: either(known.webdriver_own_property, next.webdriver_own_property),
    cdp_runtime: either(known.cdp_runtime, next.cdp_runtime),
    console_readers: union(known.console_readers, next.console_readers),
    sequentum: either(known.sequentum, next.sequentum),
    electron: either(known.electron, next.electron),
    globals: union(known.globals, next.globals),
    document_attributes: union(known.document_attributes, next.document_attributes),
  }
}

function either(known: boolean | null, next: boolean | null): boolean | null {
  return known || next || (next ?? known)
}

function union(known: string[], next: string[]): string[] {
  return [...new Set([...known, ...next])].slice(0, 100)
}

export function identityChanged(known: Snapshot | null, next: Snapshot): boolean {
  if (!known) return false
  return (
    differ(known.navigator.user_agent, next.navigator.user_agent) ||
    differ(known.navigator.platform, next.navigator.platform) ||
    differ(known.webgl.renderer, next.webgl.renderer)
  )
}

/** Whether another device goes on with the session: its platform, its graphics card and what it draws are others. */
export function deviceChanged(known: Snapshot | null, next: Snapshot): boolean {
  if (!known) return false
  return (
    differ(known.navigator.platform, next.navigator.platform) &&
    differ(known.webgl.renderer, next.webgl.renderer) &&
    differ(known.canvas.hash, next.canvas.hash)
  )
}

function differ<T extends string | number>(known: T | null, next: T | null): boolean {
  return known !== null && next !== null && known !== next
}

type Channel = Record<string, number | null>

// Members that are means or spreads: weighted by the number of events. Everything else adds up.
const averaged = new Set([
  'interval_mean',
  'interval_std',
  'straightness',
  'speed_std',
  'hold_mean',
  'hold_std',
  'radius_std',
])
const maxCount = 2 ** 31 - 1

/** The behaviour of a whole session: what was known, and what one more batch reports. */
export function addBehavior(known: Behavior | null, more: Behavior): Behavior {
  if (!known) return more
  const channels = Object.entries(more).map(([name, channel]) => [
    name,
    addChannel(channelOf(known, name), channel),
  ])
  return behaviorSchema.parse(Object.fromEntries(channels))
}

export function hasBehavior(behavior: Behavior | null): boolean {
  return behavior !== null && Object.values(behavior).some((channel) => channel.events > 0)
}

/** Events of keys, pointers and fingers that a script of the page cannot make. */
export function trustedInputs({ mouse, keyboard, touch }: Behavior): number {
  const trusted = ({ events, untrusted }: Behavior['mouse' | 'keyboard' | 'touch']) =>
    Math.max(0, events - untrusted)
  return trusted(mouse) + trusted(keyboard) + trusted(touch) + mouse.activations
}

function channelOf(behavior: Behavior, name: string): Channel {
  return Object.entries(behavior).find(([known]) => known === name)?.[1] ?? {}
}

function addChannel(known: Channel, more: Channel): Channel {
  const weights = { known: known.events ?? 0, more: more.events ?? 0 }
  const names = Object.keys({ ...known, ...more })
  return Object.fromEntries(
    names.map((name) => [name, addMember(name, known[name] ?? null, more[name] ?? null, weights)]),
  )
}

function addMember(
  name: string,
  known: number | null,
  more: number | null,
  weights: { known: number; more: number },
): number | null {
  if (known === null) return more
  if (more === null) return known
  if (name === 'time_to_submit_ms') return Math.min(known, more)
  if (!averaged.has(name)) return Math.min(known + more, maxCount)
  const total = weights.known + weights.more
  return total === 0 ? known : (known * weights.known + more * weights.more) / total
}
