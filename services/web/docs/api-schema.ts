import { escapeHtml } from '../../../infra/text.ts'
import type { Schema } from './api-document.ts'

type Schemas = Record<string, Schema>

/** Renders the members of an object as a list, with nested objects collapsed. Returns '' for other types. */
export function membersHtml(schema: Schema, schemas: Schemas, ancestors: string[] = []): string {
  const { properties = {}, required = [] } = objectIn(schema, schemas) ?? {}
  const names = Object.keys(properties)
  if (names.length === 0) return ''
  const items = names.map((name) => {
    const member = properties[name] ?? {}
    const optional = required.includes(name) ? '' : '<small>optional</small>'
    return `<li><code>${escapeHtml(name)}</code> ${typeHtml(member, schemas)}${optional}${aboutHtml(member, schemas)}${nestedHtml(member, schemas, ancestors)}</li>`
  })
  return `<ul class="members">${items.join('')}</ul>`
}

/** Renders the type with its bounds, such as `integer, 1–200, default 50`. */
export function typeHtml(schema: Schema, schemas: Schemas): string {
  return `<span class="type">${escapeHtml(typeOf(schema, schemas))}</span>`
}

export function aboutHtml(schema: Schema, schemas: Schemas): string {
  const description = schema.description ?? resolve(schema, schemas).description
  return description ? `<p>${inlineHtml(description)}</p>` : ''
}

/** Renders text, with backticks as code, as HTML. */
export const inlineHtml = (text: string): string =>
  escapeHtml(text).replace(/`([^`]+)`/g, '<code>$1</code>')

function nestedHtml(schema: Schema, schemas: Schemas, ancestors: string[]): string {
  const name = refIn(schema, schemas)
  // Stops at recursive schemas.
  if (name !== undefined && ancestors.includes(name)) return ''
  const inner = membersHtml(schema, schemas, name === undefined ? ancestors : [...ancestors, name])
  return inner && `<details><summary>Members</summary>${inner}</details>`
}

function resolve(schema: Schema, schemas: Schemas): Schema {
  const name = schema.$ref?.split('/').at(-1)
  return name === undefined ? schema : (schemas[name] ?? {})
}

/** Returns the alternatives of a schema without null. */
function alternatives(schema: Schema, schemas: Schemas): Schema[] {
  const { anyOf, oneOf } = resolve(schema, schemas)
  const options = anyOf ?? oneOf
  return options ? options.filter(({ type }) => type !== 'null') : [schema]
}

/** Returns the object that a schema, its items or its only alternative describe. */
function objectIn(schema: Schema, schemas: Schemas): Schema | undefined {
  const [only, ...others] = alternatives(schema, schemas)
  if (!only || others.length > 0) return undefined
  const resolved = resolve(only, schemas)
  if (resolved.items) return objectIn(resolved.items, schemas)
  if (resolved.allOf) return mergeObjects(resolved.allOf.map((part) => resolve(part, schemas)))
  if (resolved.properties) return resolved
  const { additionalProperties: values } = resolved
  return typeof values === 'object' ? objectIn(values, schemas) : undefined
}

const mergeObjects = (parts: Schema[]): Schema => ({
  properties: Object.assign({}, ...parts.map(({ properties }) => properties)),
  required: parts.flatMap(({ required = [] }) => required),
})

function refIn(schema: Schema, schemas: Schemas): string | undefined {
  const [only] = alternatives(schema, schemas)
  return only?.$ref ?? (only?.items && refIn(only.items, schemas))
}

function typeOf(schema: Schema, schemas: Schemas): string {
  const { anyOf, oneOf, type } = resolve(schema, schemas)
  const isNullable =
    (anyOf ?? oneOf)?.some((one) => one.type === 'null') ||
    (Array.isArray(type) && type.includes('null'))
  const names = alternatives(schema, schemas).map((option) =>
    plainType(resolve(option, schemas), schemas),
  )
  return [...new Set(names), ...(isNullable ? ['null'] : [])].join(' or ')
}

function plainType(schema: Schema, schemas: Schemas): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  if (schema.items) return `array of ${typeOf(schema.items, schemas)}`
  const type = [schema.type ?? 'object']
    .flat()
    .filter((name) => name !== 'null')
    .join(' or ')
  return [type, ...boundsOf(schema)].join(', ')
}

function boundsOf(schema: Schema): string[] {
  const { format, minimum, maximum, maxLength, default: defaultValue } = schema
  return [
    ...(format ? [format] : []),
    ...rangeOf(minimum, maximum),
    ...(maxLength === undefined ? [] : [`at most ${maxLength} characters`]),
    ...(defaultValue === undefined ? [] : [`default ${JSON.stringify(defaultValue)}`]),
  ]
}

function rangeOf(minimum: number | undefined, maximum: number | undefined): string[] {
  const max = maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum
  const min = minimum === Number.MIN_SAFE_INTEGER ? undefined : minimum
  if (min === undefined) return max === undefined ? [] : [`at most ${max}`]
  return [max === undefined ? `at least ${min}` : `${min}–${max}`]
}
