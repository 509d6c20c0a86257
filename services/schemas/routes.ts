import fastify, { type FastifyInstance, type FastifyReply } from 'fastify'
import { constantTimeEqual } from '../../infra/crypto/constant-time.ts'
import type { ServedSchema } from './served.ts'

interface SchemasOptions {
  schemas: ServedSchema[]
  /** `user:password` for basic authentication; undefined: no authentication. */
  credentials: string | undefined
}

// Error codes of Confluent's Schema Registry (docs.confluent.io, "Schema Registry API Reference").
const registryErrors = {
  unauthorized: {
    status: 401,
    error_code: 401,
    message: 'User and password are missing or wrong.',
  },
  path: { status: 404, error_code: 404, message: 'HTTP 404 Not Found' },
  subject: { status: 404, error_code: 40401, message: 'Subject not found.' },
  version: { status: 404, error_code: 40402, message: 'The subject has no such version.' },
  schema: { status: 404, error_code: 40403, message: 'There is no schema with this id.' },
  readOnly: {
    status: 405,
    error_code: 405,
    message: 'This registry is read-only.',
  },
  invalidVersion: {
    status: 422,
    error_code: 42202,
    message: 'The version must be a positive integer or latest.',
  },
  internal: { status: 500, error_code: 50001, message: 'The schema could not be read.' },
}

class RegistryError extends Error {
  readonly kind: keyof typeof registryErrors
  constructor(kind: keyof typeof registryErrors) {
    super(kind)
    this.kind = kind
  }
}

/** Creates a read-only Schema Registry with the endpoints that consumers of the topics call. */
export function createSchemasApp({ schemas, credentials }: SchemasOptions): FastifyInstance {
  const app = fastify()
  app.addHook('onRequest', async ({ method, headers }) => {
    if (!canRead(credentials, headers.authorization)) throw new RegistryError('unauthorized')
    if (method !== 'GET' && method !== 'HEAD') throw new RegistryError('readOnly')
  })
  app.addHook('onSend', async (_request, reply) => {
    reply.type('application/vnd.schemaregistry.v1+json')
  })
  app.setNotFoundHandler((_request, reply) => sendError(reply, 'path'))
  app.setErrorHandler((error, _request, reply) =>
    sendError(reply, error instanceof RegistryError ? error.kind : 'internal'),
  )
  metadataRoutes(app)
  idRoutes(app, schemas)
  subjectRoutes(app, schemas)
  return app
}

function canRead(credentials: string | undefined, authorization = ''): boolean {
  if (credentials === undefined) return true
  const [, encoded = ''] = /^basic +(\S+)$/i.exec(authorization) ?? []
  return constantTimeEqual(credentials, Buffer.from(encoded, 'base64').toString())
}

function sendError(reply: FastifyReply, kind: keyof typeof registryErrors): FastifyReply {
  const { status, ...body } = registryErrors[kind]
  if (kind === 'unauthorized') reply.header('www-authenticate', 'Basic realm="schemas"')
  return reply.code(status).send(body)
}

function metadataRoutes(app: FastifyInstance): void {
  const compatibility = async () => ({ compatibilityLevel: 'FULL_TRANSITIVE' })
  app.get('/', async () => ({}))
  app.get('/mode', async () => ({ mode: 'READONLY' }))
  app.get('/config', compatibility)
  app.get('/config/:subject', compatibility)
  app.get('/schemas/types', async () => ['AVRO'])
}

// The `subject` query parameter is ignored, because an id has only one schema.
function idRoutes(app: FastifyInstance, schemas: ServedSchema[]): void {
  const schemaById = ({ id }: { id: string }) => {
    const schema = schemas.find((candidate) => String(candidate.id) === id)
    if (!schema) throw new RegistryError('schema')
    return schema
  }
  type ById = { Params: { id: string } }
  app.get<ById>('/schemas/ids/:id', async ({ params }) => ({ schema: schemaById(params).schema }))
  app.get<ById>('/schemas/ids/:id/schema', async ({ params }) => schemaById(params).schema)
  app.get<ById>('/schemas/ids/:id/subjects', async ({ params }) => [schemaById(params).subject])
  app.get<ById>('/schemas/ids/:id/versions', async ({ params }) => {
    const { subject, version } = schemaById(params)
    return [{ subject, version }]
  })
}

function subjectRoutes(app: FastifyInstance, schemas: ServedSchema[]): void {
  const bySubject = Map.groupBy(schemas, ({ subject }) => subject)
  const versionsOf = (subject: string) => {
    const versions = bySubject.get(subject)
    if (!versions) throw new RegistryError('subject')
    return versions
  }
  const versionBy = ({ subject, version }: { subject: string; version: string }) => {
    const versions = versionsOf(subject)
    if (!/^(latest|-1|[1-9]\d{0,8})$/.test(version)) throw new RegistryError('invalidVersion')
    const isLatest = version === 'latest' || version === '-1'
    const schema = versions.at(isLatest ? -1 : Number(version) - 1)
    if (!schema) throw new RegistryError('version')
    return schema
  }
  type BySubject = { Params: { subject: string } }
  type ByVersion = { Params: { subject: string; version: string } }
  app.get('/subjects', async () => [...bySubject.keys()].sort())
  app.get<BySubject>('/subjects/:subject/versions', async ({ params }) =>
    versionsOf(params.subject).map(({ version }) => version),
  )
  app.get<ByVersion>('/subjects/:subject/versions/:version', async ({ params }) =>
    versionBy(params),
  )
  app.get<ByVersion>(
    '/subjects/:subject/versions/:version/schema',
    async ({ params }) => versionBy(params).schema,
  )
}
