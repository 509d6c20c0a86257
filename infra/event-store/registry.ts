import type { Logger } from 'pino'
import { z } from 'zod'
import { readFactsSchemas, readSchemaFiles, type SchemaFile } from '../../schemas/generate.ts'
import type { SchemaIds } from './event-schemas.ts'

export interface RegistryOptions {
  /** May contain a user and password, which are sent with HTTP basic authentication. */
  url: string
  logger: Logger
  topicPrefix?: string
  /** Default: all committed schemas. */
  files?: SchemaFile[]
}

const contentType = 'application/vnd.schemaregistry.v1+json'
const timeoutMs = 10_000
const registered = z.object({ id: z.number().int() })
const errorBody = z.object({ error_code: z.number(), message: z.string() })

/**
 * Registers every version of every schema with a Confluent Schema Registry, and returns the ids for createCodec.
 * Idempotent: for an existing schema the registry returns its id.
 */
export async function registerSchemas({
  url,
  logger,
  topicPrefix = '',
  files = [...readSchemaFiles(), ...readFactsSchemas()],
}: RegistryOptions): Promise<SchemaIds> {
  const call = createRegistryCall(url)
  const bySubject = Map.groupBy(files, (file) => registrySubject(file, topicPrefix))
  const subjects = [...bySubject].map(([subject, versions]) =>
    registerSubject(call, subject, versions),
  )
  const ids: SchemaIds = Object.fromEntries((await Promise.all(subjects)).flat())
  logger.info({ schemas: Object.keys(ids).length }, 'registered schemas')
  return ids
}

/** Returns the subject by topic and event (TopicRecordNameStrategy), because a topic contains several event types. */
export const registrySubject = ({ topic, name }: SchemaFile, prefix: string): string =>
  `${prefix}tidegate.${topic}.v1-tidegate.${topic}.${name}`

// Registers versions in order, oldest first, because the registry checks each one against the previous ones.
async function registerSubject(
  call: ReturnType<typeof createRegistryCall>,
  subject: string,
  files: SchemaFile[],
): Promise<[string, number][]> {
  const name = encodeURIComponent(subject)
  await call('PUT', `config/${name}`, { compatibility: 'FULL_TRANSITIVE' })
  const ids: [string, number][] = []
  for (const { key, schema } of files) {
    const response = await call('POST', `subjects/${name}/versions`, {
      schema: JSON.stringify(schema),
    })
    ids.push([key, registered.parse(response).id])
  }
  return ids
}

function createRegistryCall(url: string) {
  const base = new URL(url.endsWith('/') ? url : `${url}/`)
  const headers = new Headers({ 'content-type': contentType, accept: contentType })
  if (base.username) {
    const credentials = `${decodeURIComponent(base.username)}:${decodeURIComponent(base.password)}`
    headers.set('authorization', `Basic ${Buffer.from(credentials).toString('base64')}`)
    base.username = ''
    base.password = ''
  }
  return async (method: string, path: string, body: unknown): Promise<unknown> => {
    const signal = AbortSignal.timeout(timeoutMs)
    const response = await fetch(new URL(path, base), {
      method,
      headers,
      body: JSON.stringify(body),
      signal,
    })
    if (response.ok) return response.json()
    const { data } = errorBody.safeParse(await response.json().catch(() => undefined))
    const reason = data ? `${data.error_code} ${data.message}` : ''
    throw new Error(
      `the schema registry refused ${method} ${path}: HTTP ${response.status} ${reason}`,
    )
  }
}
