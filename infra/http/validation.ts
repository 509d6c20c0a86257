import type { FastifyRequest } from 'fastify'
import { hasZodFastifySchemaValidationErrors } from 'fastify-type-provider-zod'
import type { z } from 'zod'
import { checkEach } from '../errors/check-all.ts'
import {
  ApiError,
  type ErrorDetails,
  type FieldIssue,
  invalidFields,
  type ValidationCode,
} from '../errors/errors.ts'

/**
 * For `checkFitting` of a route. `members` has all members of the body, each optional; `check` gets those that fit it
 * and throws for what it refuses of them.
 */
export function fittingCheck<Fitting>(
  members: z.ZodType<Fitting>,
  check: (fitting: Fitting, request: FastifyRequest) => void,
): (request: FastifyRequest) => void {
  return (request) => {
    const { data, error } = members.safeParse(withoutRefused(members, request.body))
    if (!error) check(data, request)
  }
}

function withoutRefused(members: z.ZodType, body: unknown): unknown {
  if (typeof body !== 'object' || body === null) return body
  const refused = new Set(members.safeParse(body).error?.issues.map(({ path }) => path[0]))
  return Object.fromEntries(Object.entries(body).filter(([name]) => !refused.has(name)))
}

interface SchemaIssue {
  keyword: string
  instancePath: string
  message?: string
  params: Record<string, unknown>
}

const partNames: Record<string, string> = {
  querystring: 'query',
  params: 'path',
  headers: 'headers',
  body: 'body',
}

export interface Refusal {
  parameterSet?: string | undefined
  /** For a body. Other parts always get request.validation_failed. */
  bodyCode?: ValidationCode | undefined
  /** Refuses what else is wrong with a body. */
  checkRest?: (() => void) | undefined
}

/** undefined for an error that is no refusal by a schema. The 422 never repeats what was sent. */
export function validationError(
  error: unknown,
  { checkRest, ...refusal }: Refusal = {},
): ApiError | undefined {
  if (!hasZodFastifySchemaValidationErrors(error)) return undefined
  const refused = schemaRefusal(error, refusal)
  return error.validationContext === 'body' && checkRest ? withRest(refused, checkRest) : refused
}

function withRest(refused: ApiError, checkRest: () => void): ApiError {
  const refuse = () => {
    throw refused
  }
  try {
    checkEach([refuse, checkRest], (check) => check())
  } catch (error) {
    if (error instanceof ApiError) return error
  }
  return refused
}

function schemaRefusal(
  error: { validation: SchemaIssue[]; validationContext?: string | undefined },
  { parameterSet, bodyCode }: Omit<Refusal, 'checkRest'>,
): ApiError {
  const part = partNames[error.validationContext ?? ''] ?? 'body'
  const allowed = listedOnce(error.validation)
  const issues = error.validation.flatMap((issue) => fieldIssues(issue, { part, allowed }))
  const details: ErrorDetails = {
    fields: issues.length > 0 ? issues : [{ name: part, issue: 'invalid' }],
    ...(allowed && { allowed_values: allowed }),
    ...(parameterSet && { parameter_set: parameterSet }),
  }
  const code = part === 'body' ? bodyCode : undefined
  return invalidFields(details, code)
}

function fieldIssues(
  { keyword, instancePath, message = '', params }: SchemaIssue,
  { part, allowed }: { part: string; allowed: string[] | undefined },
): FieldIssue[] {
  const path = instancePath.slice(1).replaceAll('/', '.') || part
  // A parameter that came twice is a list for us only.
  const name = part === 'query' ? path.replace(/\.\d+$/, '') : path
  if (keyword === 'unrecognized_keys' && Array.isArray(params.keys)) {
    const prefix = name === part ? '' : `${name}.`
    return params.keys.map((key) => ({ name: `${prefix}${key}`, issue: 'not_allowed' }))
  }
  return [
    {
      name,
      issue: issueOf(keyword, message),
      expected: expectedBy({ keyword, message, params, allowed }),
    },
  ]
}

const issueNames: Record<string, string> = {
  invalid_type: 'invalid_type',
  invalid_value: 'invalid_value',
  invalid_format: 'invalid_format',
  too_small: 'too_small',
  too_big: 'too_large',
}

function issueOf(keyword: string, message: string): string {
  if (keyword === 'invalid_type' && message.endsWith('received undefined')) return 'required'
  return issueNames[keyword] ?? 'invalid'
}

const units: Record<string, string> = { string: ' character', array: ' item' }

function unitOf({ origin }: Record<string, unknown>, count: unknown): string {
  const unit = units[String(origin)]
  return unit === undefined ? '' : `${unit}${count === 1 ? '' : 's'}`
}

function expectedBy({
  keyword,
  message,
  params,
  allowed,
}: Omit<SchemaIssue, 'instancePath'> & { message: string; allowed: string[] | undefined }): string {
  if (keyword === 'invalid_type' && typeof params.expected === 'string') return params.expected
  if (keyword === 'too_small') return `at least ${params.minimum}${unitOf(params, params.minimum)}`
  if (keyword === 'too_big') return `at most ${params.maximum}${unitOf(params, params.maximum)}`
  const values = allowedValues({ keyword, params })
  return values && /^Invalid (option|input)\b/.test(message) ? expectedOf(values, allowed) : message
}

// More values than these are a list.
const fewValues = 5

function expectedOf(values: string[], allowed: string[] | undefined): string {
  const inList = values.length > 1 && same(values, allowed)
  return inList ? 'one of allowed_values' : inWords(values)
}

function inWords(values: string[]): string {
  return [values.slice(0, -1).join(', '), ...values.slice(-1)].filter(Boolean).join(' or ')
}

// An answer has one list of `allowed_values`: the one of all the fields, or else the first that is long.
function listedOnce(issues: SchemaIssue[]): string[] | undefined {
  const lists = issues
    .flatMap((issue) => [allowedValues(issue) ?? []])
    .filter((list) => list.length > 0)
  const [first] = lists
  if (lists.every((list) => same(list, first))) return first
  return lists.find((list) => list.length > fewValues)
}

function same(values: string[], others: string[] | undefined): boolean {
  return JSON.stringify(values) === JSON.stringify(others)
}

function allowedValues({
  keyword,
  params,
}: Pick<SchemaIssue, 'keyword' | 'params'>): string[] | undefined {
  if (keyword !== 'invalid_value' || !Array.isArray(params.values)) return undefined
  return params.values.map(String)
}
