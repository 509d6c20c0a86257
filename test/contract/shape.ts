import { z } from 'zod'

const record = z.record(z.string(), z.unknown())
type Json = z.output<typeof record>

/** Normalized JSON Schema with resolved references. */
export interface Shape {
  /** The name of the component that this is. */
  component?: string
  /** Sorted; without null. */
  types: string[]
  nullable: boolean
  enum?: unknown[]
  properties?: Record<string, Shape>
  required?: string[]
  /** True if unlisted members are allowed. */
  open?: boolean
  /** Shape of unlisted members. */
  values?: Shape
  items?: Shape
  /** More than one alternative. */
  anyOf?: Shape[]
  /** Bounds, patterns and formats. */
  limits: Json
}

const limitNames = [
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'minProperties',
  'maxProperties',
  'uniqueItems',
  'pattern',
  'format',
  'default',
]

/** Reads schemas of one OpenAPI document. */
export function shapeReader(document: unknown) {
  const root = record.parse(document)
  /** Shapes by reference, because many references repeat. */
  const shapes = new Map<string, Shape>()

  function resolve(schema: unknown, seen: string[] = []): Json {
    const { $ref, ...siblings } = record.parse(schema)
    if (typeof $ref !== 'string') return siblings
    if (seen.includes($ref)) throw new Error(`${$ref} refers to itself`)
    const target = $ref
      .slice(2)
      .split('/')
      .reduce<unknown>((at, part) => record.parse(at)[part], root)
    return { ...resolve(target, [...seen, $ref]), ...siblings }
  }

  function merged(schema: unknown): Json {
    const { allOf, ...rest } = resolve(schema)
    if (allOf === undefined) return rest
    // Keywords beside allOf narrow its parts, so they come last.
    return [...z.array(z.unknown()).parse(allOf).map(merged), rest].reduce<Json>(mergeTwo, {})
  }

  function shapeOf(schema: unknown): Shape {
    const { $ref, ...siblings } = record.parse(schema)
    if (typeof $ref !== 'string') return plainShapeOf(schema)
    const key = JSON.stringify([$ref, siblings])
    const shape = shapes.get(key) ?? {
      ...plainShapeOf(schema),
      component: $ref.split('/').at(-1) ?? '',
    }
    shapes.set(key, shape)
    return shape
  }

  function plainShapeOf(schema: unknown): Shape {
    const { anyOf, oneOf, ...own } = merged(schema)
    const alternatives = z
      .array(z.unknown())
      .optional()
      .parse(anyOf ?? oneOf)
    if (alternatives) return alternativesOf(alternatives.map(shapeOf))
    const values = 'const' in own ? [own.const] : z.array(z.unknown()).optional().parse(own.enum)
    const types = [own.type ?? typesOf(values)].flat().map(String)
    return {
      types: types.filter((type) => type !== 'null').sort(),
      nullable: types.includes('null') || (values?.includes(null) ?? false),
      ...(values && { enum: values.filter((value) => value !== null).sort() }),
      ...(types.includes('object') && members(own)),
      ...(own.items !== undefined && { items: shapeOf(own.items) }),
      limits: limitsOf(own),
    }
  }

  function members({
    properties,
    required,
    additionalProperties,
    patternProperties,
  }: Json): Partial<Shape> {
    const listed = Object.entries(record.default({}).parse(properties))
    const rest = additionalProperties ?? patternProperties
    const values = typeof rest === 'object' && rest !== null ? shapeOf(rest) : undefined
    return {
      properties: Object.fromEntries(listed.map(([name, schema]) => [name, shapeOf(schema)])),
      required: z.array(z.string()).default([]).parse(required).sort(),
      open: rest !== false,
      ...(values && values.types.length > 0 && { values }),
    }
  }

  return { resolve, shapeOf }
}

/** Without what says nothing: the bounds of exact integers, and a date's pattern beside its format. */
function limitsOf(schema: Json): Json {
  const given = limitNames
    .filter((name) => name in schema)
    .map((name) => [name, schema[name]] as const)
  const telling = given.filter(([name, value]) => {
    if (name === 'pattern' && schema.format === 'date-time') return false
    return !(schema.type === 'integer' && Math.abs(Number(value)) === Number.MAX_SAFE_INTEGER)
  })
  return Object.fromEntries(
    telling.map(([name, value]) => [name, name === 'pattern' ? plainPattern(value) : value]),
  )
}

/** Base32 without i, l, o and u, spelled out. */
function plainPattern(pattern: unknown): string {
  return String(pattern).replace('0-9a-hjkmnp-tv-z', '0123456789abcdefghjkmnpqrstvwxyz')
}

const isScalar = ({ types, enum: values, anyOf, limits }: Shape) =>
  types.length === 1 &&
  !types.includes('object') &&
  !types.includes('array') &&
  !values &&
  !anyOf &&
  Object.keys(limits).length === 0

function alternativesOf(shapes: Shape[]): Shape {
  const nullable = shapes.some((shape) => shape.nullable)
  const real = shapes.filter((shape) => shape.types.length > 0 || !shape.nullable || shape.anyOf)
  const [only, second] = real
  if (only && !second) return { ...only, nullable }
  const types = [...new Set(real.flatMap(({ types }) => types))].sort()
  return real.every(isScalar)
    ? { types, nullable, limits: {} }
    : { types, nullable, anyOf: real, limits: {} }
}

/** Returns the intersection of both, where `b` has the narrower values. */
function mergeTwo(a: Json, b: Json): Json {
  const both = (name: string) => ({
    ...record.default({}).parse(a[name]),
    ...record.default({}).parse(b[name]),
  })
  const lists = [a.required, b.required].flatMap((list) =>
    z.array(z.string()).default([]).parse(list),
  )
  const closed = [a, b].some(({ additionalProperties }) => additionalProperties === false)
  const required = [...new Set(lists)]
  return {
    ...a,
    ...b,
    properties: both('properties'),
    required,
    ...(closed && { additionalProperties: false }),
  }
}

function typesOf(values: unknown[] | undefined): string[] {
  const names = (values ?? []).map((value) => (value === null ? 'null' : typeof value))
  return [...new Set(names)]
}
