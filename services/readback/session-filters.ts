import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { z } from 'zod'
import { idPattern } from '../../infra/ids.ts'
import { isPlainText } from '../../infra/text.ts'
import { agentStatus, verdict } from '../../projections/sessions/decision-schemas.ts'
import { networkKinds } from '../../projections/sessions/facts.ts'
import {
  attributionKinds,
  emptyFields,
  type FilterField,
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

const values = {
  // Not the registered schema itself: the description would list it twice, as input and as output.
  verdict: either(z.enum(verdict.options)),
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
  mark: either(z.enum(markFilters)).describe('The newest mark; `none` for sessions without one.'),
} satisfies Record<FilterField, z.ZodType>

const noneOf = <T extends z.ZodType>(some: T): T =>
  some.describe('None of these values. Sessions without a value are among those that meet it.')

const negatedValues = {
  'verdict[not]': noneOf(values.verdict),
  'signal[not]': noneOf(values.signal),
  'attribution[not]': noneOf(values.attribution),
  'agent_status[not]': noneOf(values.agent_status),
  'agent_provider[not]': noneOf(values.agent_provider),
  'country[not]': noneOf(values.country),
  'asn[not]': noneOf(values.asn),
  'network[not]': noneOf(values.network),
  'ip[not]': noneOf(values.ip),
  'page_host[not]': noneOf(values.page_host),
  'visitor_id[not]': noneOf(values.visitor_id),
  'client_user_id[not]': noneOf(values.client_user_id),
  'key_id[not]': noneOf(values.key_id),
  'browser[not]': noneOf(values.browser),
  'os[not]': noneOf(values.os),
  'mark[not]': noneOf(values.mark),
} satisfies Record<`${FilterField}[not]`, z.ZodType>

/** Parameters of lists and counts. Names and forms are those of `SessionFilters`, and `x[not]` is its `not.x`. */
export const filterQuery = {
  since: either(time).describe('Sessions whose newest decision was then or later.'),
  until: either(time).describe('Sessions whose newest decision was earlier.'),
  score_min: either(score),
  score_max: either(score),
  handed_off: either(z.enum(['true', 'false']).transform((value) => value === 'true')),
  ...values,
  ...negatedValues,
  without: either(z.enum(emptyFields)).describe(
    'Fields of which sessions have no value. With values of the same field, either of these or none.',
  ),
  'without[not]': either(z.enum(emptyFields)).describe('Fields of which sessions have a value.'),
}

export type FilterQuery = { [Name in keyof typeof filterQuery]?: z.output<(typeof filterQuery)[Name]> }

/** Of several times or scores the widest holds: either of them is enough. */
export function filtersOf(sent: FilterQuery): SessionFilters {
  const { verdictNot, not, others } = negationsIn(sent)
  const { since, until, score_min, score_max, verdict: verdicts } = others
  return {
    ...others,
    since: since && Math.min(...since),
    until: until && Math.max(...until),
    score_min: score_min && Math.min(...score_min),
    score_max: score_max && Math.max(...score_max),
    // The other verdicts are what indexes and roll-ups know, and every session has one.
    verdict: verdictNot ? (verdicts ?? verdict.options).filter((one) => !verdictNot.includes(one)) : verdicts,
    not,
  }
}

function negationsIn(sent: FilterQuery) {
  const {
    'verdict[not]': verdictNot,
    'signal[not]': signal,
    'attribution[not]': attribution,
    'agent_status[not]': agent_status,
    'agent_provider[not]': agent_provider,
    'country[not]': country,
    'asn[not]': asn,
    'network[not]': network,
    'ip[not]': ip,
    'page_host[not]': page_host,
    'visitor_id[not]': visitor_id,
    'client_user_id[not]': client_user_id,
    'key_id[not]': key_id,
    'browser[not]': browser,
    'os[not]': os,
    'mark[not]': mark,
    'without[not]': without,
    ...others
  } = sent
  const not = {
    ...{ signal, attribution, agent_status, agent_provider, country, asn, network, ip, page_host },
    ...{ visitor_id, client_user_id, key_id, browser, os, mark, without },
  }
  return { verdictNot, not, others }
}

/** The header that names the parameters that narrowed the answer down: those of a later version, or misspelt, are missing. */
export const filtersHeader = 'x-filters-applied'

export function appliedFilters(sent: Record<string, unknown>): string {
  return Object.keys(sent)
    .filter((name) => sent[name] !== undefined && sent[name] !== '')
    .sort()
    .join(', ')
}
