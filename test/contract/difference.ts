import { z } from 'zod'
import { type Shape, shapeReader } from './shape.ts'
import { compareValue, createComparison, type Pair, union } from './shape-difference.ts'

const content = z.record(z.string(), z.object({ schema: z.unknown() }))
const parameter = z.object({
  name: z.string(),
  in: z.string(),
  required: z.boolean().default(false),
  schema: z.unknown(),
})
const operation = z.object({
  operationId: z.string().optional(),
  parameters: z.array(z.unknown()).default([]),
  requestBody: z.object({ required: z.boolean().default(false), content }).optional(),
  responses: z.record(z.string(), z.object({ content: content.optional() })),
})
const items = z.record(z.string(), z.record(z.string(), operation))
const document = z.object({
  paths: items,
  webhooks: items.default({}),
  components: z.object({ schemas: z.record(z.string(), z.unknown()) }),
})
type Operation = z.output<typeof operation>

interface Side {
  operation: Operation
  reader: ReturnType<typeof shapeReader>
}

/** Every difference in structure between two OpenAPI documents (paths, webhooks, components that both have), one line each. */
export function differences({ ours, theirs }: Pair<unknown>): string[] {
  const readers = { ours: shapeReader(ours), theirs: shapeReader(theirs) }
  const [mine, published] = [operationsOf(ours), operationsOf(theirs)]
  const comparison = createComparison()
  const ofOperations = union(mine.keys(), published.keys()).flatMap((name) => {
    const [a, b] = [mine.get(name), published.get(name)]
    if (!a) return [`${name}: not here`]
    if (!b) return [`${name}: added`]
    const sides = {
      ours: { operation: a, reader: readers.ours },
      theirs: { operation: b, reader: readers.theirs },
    }
    return compareOperation(name, sides, comparison)
  })
  const alike = namedAlike({ ours, theirs }).flatMap((name) => {
    const schema = { $ref: `#/components/schemas/${name}` }
    const pair = { ours: readers.ours.shapeOf(schema), theirs: readers.theirs.shapeOf(schema) }
    return comparison.compare(`component ${name}`, pair)
  })
  return [...ofOperations, ...alike, ...comparison.components()]
}

/** Some are met in no operation: parts of an allOf are one with it there. */
function namedAlike({ ours, theirs }: Pair<unknown>): string[] {
  const published = document.parse(theirs).components.schemas
  return Object.keys(document.parse(ours).components.schemas).filter((name) => name in published)
}

const methods = ['get', 'post', 'put', 'patch', 'delete']

function operationsOf(given: unknown): Map<string, Operation> {
  const { paths, webhooks } = document.parse(given)
  const named = (all: z.output<typeof items>, nameOf: (method: string, name: string) => string) =>
    Object.entries(all).flatMap(([name, item]) =>
      Object.entries(item)
        .filter(([method]) => methods.includes(method))
        .map(([method, one]) => [nameOf(method.toUpperCase(), name), one] as const),
    )
  return new Map([
    ...named(paths, (method, path) => `${method} ${path}`),
    ...named(webhooks, (method, type) => `webhook ${method} ${type}`),
  ])
}

function compareOperation(
  name: string,
  { ours, theirs }: Pair<Side>,
  { compare }: ReturnType<typeof createComparison>,
): string[] {
  const ids = compareValue(`${name} operationId`, {
    ours: ours.operation.operationId,
    theirs: theirs.operation.operationId,
  })
  const parts = { ours: partsOf(ours), theirs: partsOf(theirs) }
  const compared = union(Object.keys(parts.ours), Object.keys(parts.theirs)).flatMap((part) =>
    compare(`${name} ${part}`, { ours: parts.ours[part], theirs: parts.theirs[part] }),
  )
  return [...ids, ...compared]
}

/** An operation's parameters, bodies and responses by name; a parameter or body that may be left out is nullable. */
function partsOf({ operation, reader }: Side): Record<string, Shape> {
  const nothing: Shape = { types: [], nullable: false, limits: {} }
  const parameters = operation.parameters.map((given) => {
    const { name, in: place, required, schema } = parameter.parse(reader.resolve(given))
    return [`${place} ${name}`, optional(reader.shapeOf(schema), required)] as const
  })
  const { requestBody, responses } = operation
  const bodies = Object.entries(requestBody?.content ?? {}).map(
    ([type, { schema }]) =>
      [`body ${type}`, optional(reader.shapeOf(schema), requestBody?.required)] as const,
  )
  const answers = Object.entries(responses).flatMap(([status, { content }]) => {
    const types = Object.entries(content ?? {})
    if (types.length === 0) return [[status, nothing] as const]
    return types.map(([type, { schema }]) => [`${status} ${type}`, reader.shapeOf(schema)] as const)
  })
  return Object.fromEntries([...parameters, ...bodies, ...answers])
}

function optional(shape: Shape, required: boolean | undefined): Shape {
  return required ? shape : { ...shape, nullable: true }
}
