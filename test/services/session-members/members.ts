import { z } from 'zod'

/** A part of a JSON Schema, as far as the session detail needs. */
interface Schema {
  const?: unknown
  $ref?: string
  anyOf?: Schema[]
  properties?: Record<string, Schema>
  items?: Schema
  additionalProperties?: Schema | boolean
  $defs?: Record<string, Schema>
}

/** A member that holds a value and no further members: `network.routing.asn`, `highlights[].key`. */
export interface Member {
  path: string
  /** The type has one value only. */
  isLiteral: boolean
}

export function membersOf(schema: z.ZodType): Member[] {
  const root: Schema = JSON.parse(JSON.stringify(z.toJSONSchema(schema)))
  return leaves(root, '', root.$defs ?? {})
}

function leaves(schema: Schema, path: string, named: Record<string, Schema>): Member[] {
  const inner = (part: Schema, at: string) => leaves(part, at, named)
  const { $ref, anyOf, properties, items, additionalProperties } = schema
  if ($ref) return inner(named[$ref.slice($ref.lastIndexOf('/') + 1)] ?? {}, path)
  if (anyOf) return distinct(anyOf.flatMap((part) => inner(part, path)))
  if (properties) {
    const below = (name: string) => (path ? `${path}.${name}` : name)
    return Object.entries(properties).flatMap(([name, part]) => inner(part, below(name)))
  }
  if (items) return inner(items, `${path}[]`)
  if (typeof additionalProperties === 'object') return inner(additionalProperties, `${path}{}`)
  return [{ path, isLiteral: schema.const !== undefined }]
}

function distinct(members: Member[]): Member[] {
  return [...new Map(members.map((member) => [member.path, member])).values()]
}

/** Of all answers, what they have at a member's path; an empty list has one value, too. */
export function valuesOf(member: string, answers: unknown[]): Set<string> {
  const found = member
    .split('.')
    .reduce((values, step) => values.flatMap((value) => below(value, step)), answers)
  return new Set(found.map((value) => (isObject(value) ? 'object' : JSON.stringify(value))))
}

function below(value: unknown, step: string): unknown[] {
  const name = step.replace(/\[\]$|\{\}$/, '')
  if (!isObject(value) || !Object.hasOwn(value, name)) return []
  const one: unknown = Reflect.get(value, name)
  if (name === step) return [one]
  const inner = isObject(one) ? Object.values(one) : []
  return inner.length > 0 ? inner : ['none']
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

/** A row of the table in docs/reference/session.md. */
export interface DocumentedMembers {
  /** Paths; one that ends in `.*` stands for the member itself and all below it. */
  paths: string[]
  filledBy: string
}

export function documentedMembers(page: string): DocumentedMembers[] {
  const table = /<!-- members -->\n([\s\S]*?)<!-- \/members -->/.exec(page)?.[1] ?? ''
  return table
    .split('\n')
    .slice(2, -1)
    .map((row) => {
      const [, members = '', filledBy = ''] = row.split('|').map((cell) => cell.trim())
      return {
        paths: [...members.matchAll(/`([^`]+)`/g)].flatMap(([, path = '']) => expanded(path)),
        filledBy,
      }
    })
}

/** `a.{b, c}.d` is `a.b.d` and `a.c.d`. */
function expanded(path: string): string[] {
  const choice = /\{([^{}]+)\}/.exec(path)
  if (!choice) return [path]
  const [whole = '', names = ''] = choice
  return names.split(',').flatMap((name) => expanded(path.replace(whole, name.trim())))
}

export function covers(path: string, member: string): boolean {
  if (!path.endsWith('.*')) return path === member
  const whole = path.slice(0, -'.*'.length)
  return member === whole || member.startsWith(`${whole}.`)
}
