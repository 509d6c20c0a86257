export interface FieldIssue {
  name: string
  issue: string
  expected?: string
  received?: string | number | boolean | null
}

export interface ErrorDetails {
  fields?: FieldIssue[]
  allowed_values?: string[]
  header_name?: string
  parameter_set?: string
  /** Id of the visitor into which the one in the path was merged. */
  merged_into?: string
  /** Receipt of the erasure of the visitor in the path. */
  erasure?: { id: string; erased_at: string }
  next_action?: 'retry' | 'new_session' | 'reload_bundle' | 'contact_support'
}

const typeTexts: Record<string, string> = {
  string: 'a string',
  number: 'a number',
  boolean: 'true or false',
  int: 'a whole number',
  array: 'a list',
  object: 'an object',
  record: 'an object',
}

const issueTexts: Record<string, string> = {
  required: 'is required',
  not_allowed: 'is not allowed',
  not_found: 'has an unknown id',
  reserved: 'is reserved',
  taken: 'is taken',
  repeated: 'is repeated',
  reused: 'was used before',
  too_short: 'is too short',
  too_many: 'has too many items',
  unreadable: 'cannot be read',
  unknown_version: 'has an unknown version',
}

// Longer lists of allowed values appear only in `details.allowed_values`.
const maxListedValues = 12

/** Returns what is wrong with the first field, and how many more are wrong. */
export function fieldsMessage(details: ErrorDetails): string {
  const [first, ...others] = fieldSentences(details)
  if (first === undefined) return 'The request is invalid.'
  return others.length > 0 ? `${first} (and ${others.length} more)` : first
}

/** Returns what is wrong with each field: its name, and what it must be. */
export const fieldSentences = ({ fields = [], allowed_values = [] }: ErrorDetails): string[] =>
  fields.map((field) => field.name + problemOf(field, allowed_values))

function problemOf({ issue, expected }: FieldIssue, allowed: string[]): string {
  const issueText = issueTexts[issue]
  if (expected === undefined || (issue === 'required' && typeTexts[expected]))
    return ` ${issueText ?? (/^(is|has|must|leaves) /.test(issue) ? issue : `is ${issue.replaceAll('_', ' ')}`)}`
  // With `not_allowed`, `expected` is a reason or names the value that is allowed instead.
  if (issue === 'not_allowed' && /^(an?|one of) /.test(expected)) return ` must be ${expected}`
  if (issueText) return ` ${issueText}: ${expected}`
  if (expected === 'one of allowed_values')
    return ` must be one of ${allowed.length > maxListedValues ? 'details.allowed_values' : allowed.join(', ')}`
  if (/^Invalid input/.test(expected)) return ' is invalid'
  const pattern = /^Invalid string: (must .*)$/.exec(expected)?.[1]
  if (pattern) return ` ${pattern}`
  if (/^(must|is|has|needs) /.test(expected)) return ` ${expected}`
  // A full sentence, such as "The port must be 80, 443, or 1024 and above."
  if (/^[A-Z].*\.$/.test(expected)) return `: ${expected.slice(0, -1)}`
  if (/^(no |at (least|most) \d+ (character|item)s?)/.test(expected))
    return ` must have ${expected}`
  return ` must be ${typeTexts[expected] ?? expected}`
}
