import { type FieldRules, refused } from './refused.ts'

const pattern = /^[a-z0-9][a-z0-9_-]{1,30}[a-z0-9]$/
/** Words of Gate's own paths and commands. */
const reserved = ['gate', 'registry', 'services', 'webhook']

/** Whether a service can have the id, or could if the word were not Gate's own. */
export const isServiceId = (text: string): boolean => pattern.test(text)

/** The id; 422 when no service can have it. */
export function checkedServiceId(id: string, { parameterSet }: FieldRules): string {
  if (!isServiceId(id)) {
    const expected = '3-32 lower-case letters, digits, - and _, with a letter or digit at both ends'
    throw refused({ field: 'id', parameterSet }, { issue: 'invalid', expected })
  }
  if (!reserved.includes(id)) return id
  throw refused(
    { field: 'id', parameterSet },
    { issue: 'reserved', expected: `none of ${reserved.join(', ')}` },
  )
}
