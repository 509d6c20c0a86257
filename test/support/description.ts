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

/** One response as somebody saw it. */
export interface Seen {
  method: string
  /** Of the document, as `/v1/sessions/{sessionId}`, or the path of a URL. */
  path: string
  status: number
  /** By lower-case name. */
  headers: Readonly<Record<string, unknown>>
  /** null where the response has none, or where it was not kept. */
  body: string | null
}

/** Refused before any operation is known: no operation can list them. */
const beforeRouting = ['request.malformed', 'request.timeout', 'request.headers_too_large']
const errorEnvelope = ['components', 'schemas', 'ApiErrorEnvelope']

const compiled = new Map<string, Description>()

/** Compares responses with an OpenAPI 3.1 document. The apps of many tests have the same: it is compiled once. */
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
    /** What differs from the description, in words; empty = nothing. */
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

/** Pages and preflights are not described; a failure is an envelope all the same. */
function unroutedProblems({ status, body, method }: Seen, validate: Validate): string[] {
  if (status < 400 || body === null || method === 'HEAD') return []
  return validate(errorEnvelope, parse(body))
}

/** Validates by the schemas inside of a document, whose references lead through the whole of it. */
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
