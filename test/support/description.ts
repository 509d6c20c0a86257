import { Ajv2020, type AnySchema, type ErrorObject } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { z } from 'zod'

const header = z.looseObject({ required: z.boolean().optional(), $ref: z.string().optional() })
const response = z.looseObject({
  description: z.string(),
  headers: z.record(z.string(), header).default({}),
  content: z.record(z.string(), z.unknown()).optional(),
})
const operation = z.looseObject({ responses: z.record(z.string(), response) })
const documentSchema = z.looseObject({
  openapi: z.string(),
  paths: z.record(z.string(), z.record(z.string(), operation)),
  components: z.looseObject({ headers: z.record(z.string(), header) }),
})

/** Response to compare with the API description. */
export interface Seen {
  method: string
  /** Path in the description, such as `/v1/sessions/{sessionId}`, or path of a URL. */
  path: string
  status: number
  /** Headers by lower-case name. */
  headers: Readonly<Record<string, unknown>>
  /** null if the response has no body, or it was not recorded. */
  body: string | null
}

/** Errors before routing, which no operation can list. */
const beforeRouting = ['request.malformed', 'request.timeout', 'request.headers_too_large']
const errorEnvelope = ['components', 'schemas', 'ApiErrorEnvelope']

const compiled = new Map<string, Description>()

/** Compares responses with an OpenAPI 3.1 document. Compiles equal documents once. */
export function createDescription(given: unknown): Description {
  const text = JSON.stringify(given)
  const known = compiled.get(text) ?? compile(given)
  compiled.set(text, known)
  return known
}

function compile(given: unknown) {
  const document = documentSchema.parse(given)
  const validate = createValidator(given)
  const templates = Object.keys(document.paths)
    .sort((a, b) => parameters(a) - parameters(b))
    .map((path) => ({ path, pattern: patternOf(path) }))

  function operationOf({ method, path }: Seen) {
    const known = document.paths[path]
      ? path
      : templates.find(({ pattern }) => pattern.test(path))?.path
    const name = method.toLowerCase() === 'head' ? 'get' : method.toLowerCase()
    const found = known === undefined ? undefined : document.paths[known]?.[name]
    return known === undefined || !found
      ? undefined
      : { path: known, name, responses: found.responses }
  }

  function bodyProblems(
    seen: Seen,
    described: z.output<typeof response>,
    pointer: string[],
  ): string[] {
    const { body, status, method, headers } = seen
    if (!described.content) return body ? [`a body, where ${status} is described without one`] : []
    if (body === null || method === 'HEAD') return []
    const type = String(headers['content-type'] ?? '').split(';', 1)[0] ?? ''
    if (!(type in described.content)) return [`content type ${type || 'none'}`]
    return validate(
      [...pointer, 'content', type, 'schema'],
      type === 'application/json' ? parse(body) : body,
    )
  }

  function headerProblems(seen: Seen, described: z.output<typeof response>): string[] {
    return Object.entries(described.headers).flatMap(([name, { $ref = '' }]) => {
      const component = $ref.split('/').at(-1) ?? ''
      const value = seen.headers[name.toLowerCase()]
      const required = document.components.headers[component]?.required
      if (value === undefined) return required ? [`no header ${name}`] : []
      const number = /^\d+$/.test(String(value)) ? Number(value) : String(value)
      return validate(['components', 'headers', component, 'schema'], number).map(
        (one) => `${name} ${one}`,
      )
    })
  }

  return {
    /** Returns the differences from the description. */
    problemsOf(seen: Seen): string[] {
      const { method, path, status } = seen
      const code = errorCodeOf(seen)
      const found = operationOf(seen)
      const edge = !found || (code !== undefined && beforeRouting.includes(code))
      const problems = edge ? unroutedProblems(seen, validate) : problemsOfOperation(found)
      return problems.map((problem) => `${method} ${path} ${status}: ${problem}`)

      function problemsOfOperation({ path, name, responses }: NonNullable<typeof found>): string[] {
        const described = responses[status]
        if (!described) return [`the status is not described (${code ?? 'no error code'})`]
        const pointer = ['paths', path, name, 'responses', String(status)]
        const known = code === undefined || described.description.includes(`\`${code}\``)
        return [
          ...(known ? [] : [`${code} is not described`]),
          ...bodyProblems(seen, described, pointer),
          ...headerProblems(seen, described),
        ]
      }
    },
  }
}

export type Description = ReturnType<typeof compile>
type Validate = (pointer: string[], value: unknown) => string[]

/** Checks responses without an operation. Only failures, which have an envelope, are described. */
function unroutedProblems({ status, body, method }: Seen, validate: Validate): string[] {
  if (status < 400 || body === null || method === 'HEAD') return []
  return validate(errorEnvelope, parse(body))
}

/** Creates a validator for schemas within a document, with references to its other parts. */
function createValidator(document: unknown): Validate {
  const ajv = new Ajv2020({ strict: false, validateSchema: false, logger: false, allErrors: true })
  addFormats.default(ajv)
  const root: AnySchema = z.record(z.string(), z.unknown()).parse(document)
  ajv.addSchema(root, 'document')
  return (pointer, value) => {
    const path = pointer.map((part) =>
      encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1')),
    )
    const validate = ajv.getSchema(`document#/${path.join('/')}`)
    if (!validate) return [`no schema at ${pointer.join(' ')}`]
    return validate(value) ? [] : (validate.errors ?? []).map(describeError)
  }
}

function describeError({ instancePath, message = 'is invalid', params }: ErrorObject): string {
  return `${instancePath || '(whole)'} ${message} ${JSON.stringify(params)}`
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

const envelope = z.looseObject({ error: z.looseObject({ code: z.string() }) })

function errorCodeOf({ status, body }: Seen): string | undefined {
  return status < 400 || body === null
    ? undefined
    : envelope.safeParse(parse(body)).data?.error.code
}

const parameters = (path: string) => path.split('{').length

function patternOf(path: string): RegExp {
  const source = path.replace(/[.+?^$()|[\]\\*]/g, '\\$&').replace(/\{[^}]+\}/g, '[^/]+')
  return new RegExp(`^${source}$`)
}
