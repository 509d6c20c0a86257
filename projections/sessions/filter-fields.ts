import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { z } from 'zod'
import { idPattern } from '../../infra/ids.ts'
import { keysOf } from '../../infra/postgres/table.ts'
import { isPlainText } from '../../infra/text.ts'
import { userTextId } from './apply-visitors.ts'
import {
  agentStatus,
  attributionKind,
  clientUserIdInput,
  markLabel,
  verdict,
} from './decision-schemas.ts'
import { networkKinds } from './facts.ts'
import type { DataScope } from './scope.ts'
import { signalCode } from './signal-codes.ts'

/** Adds a parameter to the statement, and returns its name. */
export type Bind = (value: unknown) => string

/** Something that sessions have one or several values of. */
interface FilterField<Value> {
  /** A value as queries have it. */
  schema: z.ZodType<Value>
  description?: string
  /** SQL: the session `s` has one of the values. */
  hasOne: (values: Value[], bind: Bind, scope: DataScope) => string
  /** SQL: it has none; null where every session has one. */
  isEmpty: string | null
  /** The value stays when the session's decisions have ended. */
  isLasting: boolean
}

function filter<Value>(
  schema: z.ZodType<Value>,
  column: string,
  exceptions: Partial<FilterField<Value>> = {},
): FilterField<Value> {
  return {
    schema,
    hasOne: anyOf(column),
    isEmpty: `${column} is null`,
    isLasting: false,
    ...exceptions,
  }
}

/** A name to search for, in whatever case it was written. */
export const inLowerCase = (name: string): string =>
  name.replace(/[A-Z]+/g, (some) => some.toLowerCase())

const name = z
  .string()
  .refine((value) => value !== '' && value.length <= 100 && isPlainText(value), { error: 'a name' })
  .transform(inLowerCase)

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
  return (
    bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128))
  )
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

const country = z
  .string()
  .regex(/^[a-z]{2}$/i, { error: 'two letters of ISO 3166-1' })
  .transform((code) => code.toUpperCase())

const signal = z.string().regex(/^[a-z0-9_]{1,100}$/, { error: 'a signal, as webdriver_detected' })

const labelPattern = new RegExp(`^(?:(?:${attributionKind.options.join('|')}):)?[^\\s:]{1,100}$`)
const label = z
  .string()
  .regex(labelPattern, { error: 'a value, or kind:value' })
  .refine(isPlainText)

const idOf = (prefix: 'vid' | 'key', expected: string) =>
  z
    .string()
    .toLowerCase()
    .regex(new RegExp(idPattern(prefix)), { error: expected })

// In the order in which the interface description lists the parameters.
const fields = {
  // Not the registered schema itself: the description would list it twice, as input and as output.
  verdict: filter(z.enum(verdict.options), 's.verdict', { isEmpty: null, isLasting: true }),
  signal: filter(signal, 's.signal_codes', {
    description: 'A signal that fired.',
    hasOne: hasSignal,
    isEmpty: `s.signal_codes = ''`,
  }),
  attribution: filter(label, 's.attribution', {
    description:
      'A value that the session is attributed to, or `kind:value`, as `tool:playwright`.',
    hasOne: hasLabel,
    isEmpty: `coalesce(s.attribution, '{}') = '{}'`,
  }),
  agent_status: filter(agentStatus, 's.agent_status'),
  agent_provider: filter(name, 's.agent_provider', {
    description: 'Who runs the agent, as `openai`, in any case.',
  }),
  country: filter(country, 's.country'),
  asn: filter(asn, 's.asn', {
    description: '64500 or AS64500.',
    hasOne: (numbers, bind) => `s.asn = ${oneOf(numbers, 'bigint', bind)}`,
  }),
  network: filter(z.enum(networkKinds), 's.network'),
  ip: filter(network, 's.ip_address', {
    description: 'An address, or a CIDR as 203.0.113.0/24.',
    hasOne: (networks, bind) => `s.ip_address <<= ${oneOf(networks, 'inet', bind)}`,
  }),
  page_host: filter(host, 's.page_host'),
  visitor_id: filter(idOf('vid', 'a visitor id'), 's.visitor_id', { isLasting: true }),
  client_user_id: filter(clientUserIdInput, 's.client_user_id', {
    hasOne: isOfUser,
    isLasting: true,
  }),
  key_id: filter(idOf('key', 'the id of a key'), 's.key_id', {
    description: 'Of the publishable key that opened the session.',
    isLasting: true,
  }),
  browser: filter(name, 's.browser', {
    description: 'By name without its maker, as `chrome`; A to Z in any case.',
    hasOne: anyOf(lowerCase('s.browser')),
  }),
  os: filter(name, 's.os', {
    description: 'By name; A to Z in any case.',
    hasOne: anyOf(lowerCase('s.os')),
  }),
  mark: filter(z.enum([...markLabel.options, 'none']), `coalesce(s.mark, 'none')`, {
    description: 'The newest mark; `none` for sessions without one.',
    isEmpty: null,
    isLasting: true,
  }),
}

export type FilterName = keyof typeof fields
export const filterNames = keysOf(fields)

type FilterValue = { [Name in FilterName]: z.output<(typeof fields)[Name]['schema']> }
export type FilterValues = { [Name in FilterName]?: FilterValue[Name][] | undefined }

export const filterFields: { [Name in FilterName]: FilterField<FilterValue[Name]> } = fields

/** Fields that a session may have no value of. */
export const emptyFields = filterNames.filter((name) => filterFields[name].isEmpty !== null)

// The collation "C" lowers A to Z alone, which takes half as long and is the same in every database.
function lowerCase(sql: string): string {
  return `lower(${sql} collate "C")`
}

function anyOf(sql: string) {
  return (values: unknown[], bind: Bind): string => `${sql} = ${oneOf(values, 'text', bind)}`
}

// With one value Postgres walks an index in its order, and compares each row in less time.
function oneOf(values: unknown[], type: string, bind: Bind): string {
  return values.length === 1 ? `${bind(values[0])}::${type}` : `any(${bind(values)}::${type}[])`
}

function hasSignal(slugs: string[], bind: Bind): string {
  return `(${slugs.map((slug) => `strpos(s.signal_codes, ${bind(signalCode(slug))}) > 0`).join(' or ')})`
}

// Most sessions have no label, which is seen at once. One without a kind is of any.
function hasLabel(values: string[], bind: Bind): string {
  const labels = values.flatMap((value) =>
    value.includes(':') ? [value] : attributionKind.options.map((kind) => `${kind}:${value}`),
  )
  return `s.attribution <> '{}' and s.attribution && ${bind(labels)}::text[]`
}

// The text's id has the scope in it and finds the rows. Case and normalization form are lost there.
function isOfUser(ids: string[], bind: Bind, scope: DataScope): string {
  const texts = ids.map((id) => userTextId(scope, id))
  const found = texts.length === 1 ? `= ${bind(texts[0])}` : `= any(${bind(texts)}::bytea[])`
  return `s.user_text ${found} and ${anyOf('s.client_user_id')(ids, bind)}`
}
