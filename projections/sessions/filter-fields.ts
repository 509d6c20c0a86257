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
import { maxPath, networkKinds } from './facts.ts'
import type { DataScope } from './scope.ts'
import { signalCode } from './signal-codes.ts'

/** Adds a parameter to the statement and returns its placeholder, such as `$3`. */
export type Bind = (value: unknown) => string

interface FilterField<Value> {
  /** Schema of a value in query strings. */
  schema: z.ZodType<Value>
  description?: string
  /** Returns SQL that is true if the session `s` has any of the values. */
  matchesAny: (values: Value[], bind: Bind, scope: DataScope) => string
  /** SQL that is true if the session has no value; null if every session has one. */
  emptySql: string | null
  /** True if the value is kept when the session's decisions expire. */
  survivesExpiry: boolean
}

function filter<Value>(
  schema: z.ZodType<Value>,
  column: string,
  overrides: Partial<FilterField<Value>> = {},
): FilterField<Value> {
  return {
    schema,
    matchesAny: equalsAny(column),
    emptySql: `${column} is null`,
    survivesExpiry: false,
    ...overrides,
  }
}

/** Lowercases only A to Z, like the collation "C". */
export const inLowerCase = (name: string): string =>
  name.replace(/[A-Z]+/g, (capitals) => capitals.toLowerCase())

const name = z
  .string()
  .refine((value) => value !== '' && value.length <= 100 && isPlainText(value), { error: 'a name' })
  .transform(inLowerCase)

const maxAsn = 2 ** 32 - 1
const asn = z
  .string()
  .regex(/^(?:AS)?\d{1,10}$/i, { error: 'a number such as 64500 or AS64500' })
  .transform((value) => Number(value.replace(/^AS/i, '')))
  .refine((number) => number <= maxAsn, { error: `at most ${maxAsn}` })

const addressRange = z
  .string()
  .refine(isAddressRange, { error: 'an IP address or CIDR range' })
  .transform((value) => (isIP(value) ? ipaddr.process(value).toString() : value))

function isAddressRange(value: string): boolean {
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

// Returns the host as in a URL, in lower case and ASCII; undefined if invalid.
function hostOf(value: string): string | undefined {
  const url = URL.parse(`http://${value}/`)
  return url && url.href === `http://${url.hostname}/` ? url.hostname : undefined
}

const path = z
  .string()
  .startsWith('/', { error: 'a path that begins with /' })
  .refine(isPlainText, { error: 'a path without control characters' })
  .transform((value) => URL.parse(`http://host${value}`)?.pathname.slice(0, maxPath) ?? value)

const country = z
  .string()
  .regex(/^[a-z]{2}$/i, { error: 'a two-letter ISO 3166-1 code' })
  .transform((code) => code.toUpperCase())

const signal = z
  .string()
  .regex(/^[a-z0-9_]{1,100}$/, { error: 'a signal such as webdriver_detected' })

const valuePattern = new RegExp(`^(?:(?:${attributionKind.options.join('|')}):)?[^\\s:]{1,100}$`)
const attributionValue = z
  .string()
  .regex(valuePattern, { error: 'a value, or kind:value' })
  .refine(isPlainText)

const idSchema = (prefix: 'vid' | 'key', expected: string) =>
  z
    .string()
    .toLowerCase()
    .regex(new RegExp(idPattern(prefix)), { error: expected })

// The API description lists the filters in this order.
const fields = {
  // Copies the registered schema, which the API description would otherwise list twice, as input and as output.
  verdict: filter(z.enum(verdict.options), 's.verdict', { emptySql: null, survivesExpiry: true }),
  signal: filter(signal, 's.signal_codes', {
    description: 'Signal that fired, such as `webdriver_detected`.',
    matchesAny: hasSignal,
    emptySql: `s.signal_codes = ''`,
  }),
  attribution: filter(attributionValue, 's.attribution', {
    description: 'Attribution by value, or by `kind:value` such as `tool:playwright`.',
    matchesAny: hasAttribution,
    emptySql: `coalesce(s.attribution, '{}') = '{}'`,
  }),
  agent_status: filter(agentStatus, 's.agent_status'),
  agent_provider: filter(name, 's.agent_provider', {
    description: 'Operator of the agent, such as `openai`. Case is ignored.',
  }),
  country: filter(country, 's.country'),
  asn: filter(asn, 's.asn', {
    description: 'Autonomous system number: `64500` or `AS64500`.',
    matchesAny: (numbers, bind) => `s.asn = ${anyOf(numbers, 'bigint', bind)}`,
  }),
  network: filter(z.enum(networkKinds), 's.network'),
  ip: filter(addressRange, 's.ip_address', {
    description: 'IP address or CIDR range, such as `203.0.113.0/24`.',
    matchesAny: (networks, bind) => `s.ip_address <<= ${anyOf(networks, 'inet', bind)}`,
  }),
  page_host: filter(host, 's.page_host'),
  page_path: filter(path, 's.page_path', {
    description: 'Path of the newest page, such as `/login`, without query.',
  }),
  visitor_id: filter(idSchema('vid', 'a visitor id'), 's.visitor_id', { survivesExpiry: true }),
  client_user_id: filter(clientUserIdInput, 's.client_user_id', {
    matchesAny: isOfUser,
    survivesExpiry: true,
  }),
  key_id: filter(idSchema('key', 'an API key id'), 's.key_id', {
    description: 'Id of the publishable key that opened the session.',
    survivesExpiry: true,
  }),
  browser: filter(name, 's.browser', {
    description: 'Browser name without the vendor, such as `chrome`. ASCII case is ignored.',
    matchesAny: equalsAny(lowerCase('s.browser')),
  }),
  os: filter(name, 's.os', {
    description: 'Name of the operating system. ASCII case is ignored.',
    matchesAny: equalsAny(lowerCase('s.os')),
  }),
  mark: filter(z.enum([...markLabel.options, 'none']), `coalesce(s.mark, 'none')`, {
    description: 'Label of the newest mark; `none` for sessions without a mark.',
    emptySql: null,
    survivesExpiry: true,
  }),
}

export type FilterName = keyof typeof fields
export const filterNames = keysOf(fields)

type FilterValue = { [Name in FilterName]: z.output<(typeof fields)[Name]['schema']> }
export type FilterValues = { [Name in FilterName]?: FilterValue[Name][] | undefined }

export const filterFields: { [Name in FilterName]: FilterField<FilterValue[Name]> } = fields

/** Fields that can be empty. */
export const emptyFields = filterNames.filter((name) => filterFields[name].emptySql !== null)

// The collation "C" lowercases only A to Z, which is twice as fast and the same in every database.
function lowerCase(sql: string): string {
  return `lower(${sql} collate "C")`
}

function equalsAny(sql: string) {
  return (values: unknown[], bind: Bind): string => `${sql} = ${anyOf(values, 'text', bind)}`
}

// With a single value, Postgres can scan an index in order and compares faster.
function anyOf(values: unknown[], type: string, bind: Bind): string {
  return values.length === 1 ? `${bind(values[0])}::${type}` : `any(${bind(values)}::${type}[])`
}

function hasSignal(slugs: string[], bind: Bind): string {
  return `(${slugs.map((slug) => `strpos(s.signal_codes, ${bind(signalCode(slug))}) > 0`).join(' or ')})`
}

// The first condition skips sessions without labels, which are frequent. A value without a kind matches every kind.
function hasAttribution(values: string[], bind: Bind): string {
  const labels = values.flatMap((value) =>
    value.includes(':') ? [value] : attributionKind.options.map((kind) => `${kind}:${value}`),
  )
  return `s.attribution <> '{}' and s.attribution && ${bind(labels)}::text[]`
}

// Finds sessions by the indexed search text, which ignores case and Unicode normalization, then compares the exact id.
function isOfUser(ids: string[], bind: Bind, scope: DataScope): string {
  const texts = ids.map((id) => userTextId(scope, id))
  const textMatch = texts.length === 1 ? `= ${bind(texts[0])}` : `= any(${bind(texts)}::bytea[])`
  return `s.user_text ${textMatch} and ${equalsAny('s.client_user_id')(ids, bind)}`
}
