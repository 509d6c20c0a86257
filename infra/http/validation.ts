import { hasZodFastifySchemaValidationErrors } from 'fastify-type-provider-zod'
import { type ApiError, type ErrorDetails, type FieldIssue, filledError } from './errors.ts'

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

/** 422 for a request part that its schema refused; undefined for any other error. Never repeats what was sent. */
export function validationError(error: unknown, parameterSet?: string): ApiError | undefined {
  if (!hasZodFastifySchemaValidationErrors(error)) return undefined
  const part = partNames[error.validationContext ?? ''] ?? 'body'
  const issues = error.validation.flatMap((issue) => fieldIssues(issue, part))
  const [first] = issues
  const { name: field, issue } = first ?? { name: part, issue: 'invalid' }
  const allowed = error.validation.map(allowedValues).find(Boolean)
  const details: ErrorDetails = {
    fields: issues,
    ...(allowed && { allowed_values: allowed }),
    ...(parameterSet && { parameter_set: parameterSet }),
  }
  return filledError('request.validation_failed', { field, issue }, { details })
}

function fieldIssues(
  { keyword, instancePath, message = '', params }: SchemaIssue,
  part: string,
): FieldIssue[] {
  const name = instancePath.slice(1).replaceAll('/', '.') || part
  if (keyword === 'unrecognized_keys' && Array.isArray(params.keys)) {
    const prefix = name === part ? '' : `${name}.`
    return params.keys.map((key) => ({ name: `${prefix}${key}`, issue: 'not_allowed' }))
  }
  return [{ name, issue: issueOf(keyword, message), expected: expectedBy({ keyword, message, params }) }]
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

function expectedBy({
  keyword,
  message,
  params,
}: Omit<SchemaIssue, 'instancePath'> & { message: string }): string {
  if (keyword === 'invalid_type' && typeof params.expected === 'string') return params.expected
  if (keyword === 'too_small') return `at least ${params.minimum}`
  if (keyword === 'too_big') return `at most ${params.maximum}`
  return message
}

function allowedValues({ keyword, params }: SchemaIssue): string[] | undefined {
  if (keyword !== 'invalid_value' || !Array.isArray(params.values)) return undefined
  return params.values.map(String)
}
