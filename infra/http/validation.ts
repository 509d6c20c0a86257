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
 * Creates the `checkValidMembers` of a route. `members` is the body's schema with every member optional. `check` gets
 * the members that match it and throws if any is invalid.
 */
export function validMembersCheck<Members>(
  members: z.ZodType<Members>,
  check: (valid: Members, request: FastifyRequest) => void,
): (request: FastifyRequest) => void {
  return (request) => {
    const { data, error } = members.safeParse(withoutInvalid(members, request.body))
    if (!error) check(data, request)
  }
}

function withoutInvalid(members: z.ZodType, body: unknown): unknown {
  if (typeof body !== 'object' || body === null) return body
  const invalid = new Set(members.safeParse(body).error?.issues.map(({ path }) => path[0]))
  return Object.fromEntries(Object.entries(body).filter(([name]) => !invalid.has(name)))
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

export interface ValidationOptions {
  parameterSet?: string | undefined
  /** Error code for an invalid body. Other parts always get request.validation_failed. */
  bodyErrorCode?: ValidationCode | undefined
  /** Throws for further problems of an invalid body. */
  checkValidMembers?: (() => void) | undefined
}

/** Returns the 422 for an error of schema validation; undefined for other errors. Never quotes the request. */
export function validationError(
  error: unknown,
  { checkValidMembers: check, ...options }: ValidationOptions = {},
): ApiError | undefined {
  if (!hasZodFastifySchemaValidationErrors(error)) return undefined
  const refused = schemaError(error, options)
  return error.validationContext === 'body' && check ? mergeErrors(refused, check) : refused
}

function mergeErrors(refused: ApiError, check: () => void): ApiError {
  const refuse = () => {
    throw refused
  }
  try {
    checkEach([refuse, check], (run) => run())
  } catch (error) {
    if (error instanceof ApiError) return error
  }
  return refused
}

function schemaError(
  error: { validation: SchemaIssue[]; validationContext?: string | undefined },
  { parameterSet, bodyErrorCode }: Omit<ValidationOptions, 'checkValidMembers'>,
): ApiError {
  const part = partNames[error.validationContext ?? ''] ?? 'body'
  const allowed = commonAllowedValues(error.validation)
  const issues = error.validation.flatMap((issue) => fieldIssues(issue, { part, allowed }))
  const details: ErrorDetails = {
    fields: issues.length > 0 ? issues : [{ name: part, issue: 'invalid' }],
    ...(allowed && { allowed_values: allowed }),
    ...(parameterSet && { parameter_set: parameterSet }),
  }
  const code = part === 'body' ? bodyErrorCode : undefined
  return invalidFields(details, code)
}

function fieldIssues(
  { keyword, instancePath, message = '', params }: SchemaIssue,
  { part, allowed }: { part: string; allowed: string[] | undefined },
): FieldIssue[] {
  const path = instancePath.slice(1).replaceAll('/', '.') || part
  // A repeated query parameter is parsed as a list, so drop the index.
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

// Longer lists appear only in `allowed_values`, not in a field's `expected`.
const maxListed = 5

function expectedOf(values: string[], allowed: string[] | undefined): string {
  const isListed = values.length > 1 && areEqual(values, allowed)
  return isListed ? 'one of allowed_values' : joinWithOr(values)
}

function joinWithOr(values: string[]): string {
  return [values.slice(0, -1).join(', '), ...values.slice(-1)].filter(Boolean).join(' or ')
}

// Returns the `allowed_values`: those that all fields share, otherwise the first long list.
function commonAllowedValues(issues: SchemaIssue[]): string[] | undefined {
  const lists = issues
    .flatMap((issue) => [allowedValues(issue) ?? []])
    .filter((list) => list.length > 0)
  const [first] = lists
  if (lists.every((list) => areEqual(list, first))) return first
  return lists.find((list) => list.length > maxListed)
}

function areEqual(values: string[], others: string[] | undefined): boolean {
  return JSON.stringify(values) === JSON.stringify(others)
}

function allowedValues({
  keyword,
  params,
}: Pick<SchemaIssue, 'keyword' | 'params'>): string[] | undefined {
  if (keyword !== 'invalid_value' || !Array.isArray(params.values)) return undefined
  return params.values.map(String)
}
