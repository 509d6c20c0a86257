import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { z } from 'zod'
import { idPattern } from '../../infra/ids.ts'
import { isPlainText } from '../../infra/text.ts'
import { agentStatus, verdict } from '../../projections/sessions/decision-schemas.ts'
import { networkKinds } from '../../projections/sessions/facts.ts'
import {
  attributionKinds,
  inLowerCase,
  markFilters,
  type SessionFilters,
} from '../../projections/sessions/filters.ts'
import { clientUserIdInput } from './client-user.ts'

const maxValues = 50

/** A parameter that may come several times, to mean either of its values. */
const either = <T extends z.ZodType>(one: T) =>
  z.preprocess(
    (sent) => (sent === undefined ? undefined : [sent].flat()),
    z.array(one).min(1).max(maxValues).optional(),
  )

const text = (expected: string) =>
  z.string().refine((value) => value !== '' && value.length <= 100 && isPlainText(value), { error: expected })

const time = z.iso
  .datetime({ offset: true, error: 'ISO 8601 with a zone, as 2026-11-26T08:00:00Z' })
  .transform((value) => Date.parse(value))

const score = z.preprocess(
  (value) => (typeof value === 'string' && /^\d{1,3}$/.test(value) ? Number(value) : value),
  z.int().min(0).max(100),
)

const maxAsn = 2 ** 32 - 1
const asn = z
  .string()
  .regex(/^(?:AS)?\d{1,10}$/i, { error: 'a number, as 64500 or AS64500' })
  .transform((value) => Number(value.replace(/^AS/i, '')))
  .refine((number) => number <= maxAsn, { error: `at most ${maxAsn}` })

const network = z
  .string()
  .refine(isNetwork, { error: 'an IP address or a CIDR' })
  .transform((value) => (isIP(value) ? ipaddr.process(value).toString() : value))

function isNetwork(value: string): boolean {
  const [address = '', bits, ...rest] = value.split('/')
  const version = address.includes('%') ? 0 : isIP(address)
  if (version === 0 || rest.length > 0) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128))
}

const host = z
  .string()
  .refine((value) => hostOf(value) !== undefined, { error: 'a host name' })
  .transform((value) => hostOf(value) ?? value)

// As it is in the address of a page: in lower case, and in ASCII.
function hostOf(value: string): string | undefined {
  const url = URL.parse(`http://${value}/`)
  return url && url.href === `http://${url.hostname}/` ? url.hostname : undefined
}

const kinds = attributionKinds.join('|')
const label = new RegExp(`^(?:(?:${kinds}):)?[^\\s:]{1,100}$`)

/** Parameters of lists and counts. Names and forms are those of `SessionFilters`. */
export const filterQuery = {
  since: either(time).describe('Sessions whose newest decision was then or later.'),
  until: either(time).describe('Sessions whose newest decision was earlier.'),
  // Not the registered schema itself: the description would list it twice, as input and as output.
  verdict: either(z.enum(verdict.options)),
  score_min: either(score),
  score_max: either(score),
  signal: either(
    z.string().regex(/^[a-z0-9_]{1,100}$/, { error: 'a signal, as webdriver_detected' }),
  ).describe('A signal that fired.'),
  attribution: either(
    z.string().regex(label, { error: 'a value, or kind:value' }).refine(isPlainText),
  ).describe('A value that the session is attributed to, or `kind:value`, as `tool:playwright`.'),
  agent_status: either(agentStatus),
  agent_provider: either(text('a name').transform(inLowerCase)).describe(
    'Who runs the agent, as `openai`, in any case.',
  ),
  country: either(
    z
      .string()
      .regex(/^[a-z]{2}$/i, { error: 'two letters of ISO 3166-1' })
      .transform((code) => code.toUpperCase()),
  ),
  asn: either(asn).describe('64500 or AS64500.'),
  network: either(z.enum(networkKinds)),
  ip: either(network).describe('An address, or a CIDR as 203.0.113.0/24.'),
  page_host: either(host),
  visitor_id: either(
    z
      .string()
      .toLowerCase()
      .regex(new RegExp(idPattern('vid')), { error: 'a visitor id' }),
  ),
  client_user_id: either(clientUserIdInput),
  key_id: either(
    z
      .string()
      .toLowerCase()
      .regex(new RegExp(idPattern('key')), { error: 'the id of a key' }),
  ).describe('Of the publishable key that opened the session.'),
  browser: either(text('a name').transform(inLowerCase)).describe(
    'By name without its maker, as `chrome`; A to Z in any case.',
  ),
  os: either(text('a name').transform(inLowerCase)).describe('By name; A to Z in any case.'),
  handed_off: either(z.enum(['true', 'false']).transform((value) => value === 'true')),
  mark: either(z.enum(markFilters)).describe('The newest mark; `none` for sessions without one.'),
}

export type FilterQuery = { [Name in keyof typeof filterQuery]?: z.output<(typeof filterQuery)[Name]> }

/** Of several times or scores the widest holds: either of them is enough. */
export function filtersOf({ since, until, score_min, score_max, ...others }: FilterQuery): SessionFilters {
  return {
    ...others,
    since: since && Math.min(...since),
    until: until && Math.max(...until),
    score_min: score_min && Math.min(...score_min),
    score_max: score_max && Math.max(...score_max),
  }
}

/** The header that names the parameters that narrowed the answer down: those of a later version, or misspelt, are missing. */
export const filtersHeader = 'x-filters-applied'

export function appliedFilters(sent: Record<string, unknown>): string {
  return Object.keys(sent)
    .filter((name) => sent[name] !== undefined && sent[name] !== '')
    .sort()
    .join(', ')
}
