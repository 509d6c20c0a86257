import { once } from 'node:events'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createCodec } from '../../../infra/event-store/codec.ts'
import { registerSchemas } from '../../../infra/event-store/registry.ts'
import { readSchemaFiles } from '../../../schemas/generate.ts'

const logger = pino({ level: 'silent' })

interface Call {
  request: string
  authorization: string | undefined
  body: Record<string, string>
}

/** A fake of Confluent's Schema Registry: ids start at 100, and equal schemas get the same id. */
function fakeRegistry() {
  const calls: Call[] = []
  const ids = new Map<string, number>()
  const server = createServer(async (request, response) => {
    const body = JSON.parse(await text(request))
    const { method, url, headers } = request
    calls.push({ request: `${method} ${url}`, authorization: headers.authorization, body })
    const refused = request.url?.includes('refuse')
    if (body.schema && !ids.has(body.schema)) ids.set(body.schema, 100 + ids.size)
    const reply = refused
      ? { error_code: 42201, message: 'Invalid schema' }
      : body.schema
        ? { id: ids.get(body.schema) }
        : body
    response.writeHead(refused ? 422 : 200, {
      'content-type': 'application/vnd.schemaregistry.v1+json',
    })
    response.end(JSON.stringify(reply))
  })
  return { server, calls }
}

let registry: ReturnType<typeof fakeRegistry>
let host: string
beforeEach(async () => {
  registry = fakeRegistry()
  registry.server.listen(0, '127.0.0.1')
  await once(registry.server, 'listening')
  const address = registry.server.address()
  host = typeof address === 'object' ? `127.0.0.1:${address?.port}` : ''
})
afterEach(() => {
  registry.server.close()
})

test('registers each schema under its topic and name, and returns its id', async () => {
  const committed = readSchemaFiles()
  const [first] = committed.filter(({ name }) => name === 'OrganizationRenamed')
  if (!first) throw new Error('no such event')
  const second = { ...first, version: 2, key: first.key.replace('v1', 'v2') }
  const files = [...committed, second]
  const ids = await registerSchemas({ url: `http://${host}`, logger, files })
  expect(Object.keys(ids).sort()).toEqual(files.map((file) => file.key).sort())
  const subject = 'tidegate.organizations.v1-tidegate.organizations.OrganizationRenamed'
  const subjectCalls = registry.calls.filter((call) => call.request.includes(`${subject}`))
  expect(subjectCalls.map((call) => call.request)).toEqual([
    `PUT /config/${subject}`,
    `POST /subjects/${subject}/versions`,
    `POST /subjects/${subject}/versions`,
  ])
  expect(subjectCalls[0]?.body).toEqual({ compatibility: 'FULL_TRANSITIVE' })
  const versions = files
    .filter((file) => file.name === 'OrganizationRenamed')
    .map(({ schema }) => schema)
  expect(subjectCalls.slice(1).map(({ body }) => JSON.parse(body.schema ?? ''))).toEqual(versions)
  const renamed = { organization_id: 'org_1', name: 'New', renamed_at: 1, event_id: 'e' }
  const cause = { actor: { type: 'key', id: 'key_1' }, request_id: null } as const
  const bytes = createCodec(ids).encode({ type: 'OrganizationRenamed', data: renamed }, cause)
  expect(bytes.readUInt32BE(1)).toBe(ids['organizations/OrganizationRenamed.v1'])
})

test('sends user and password of the URL as basic authentication', async () => {
  await registerSchemas({ url: `http://me:p%40ss@${host}`, logger })
  const expected = `Basic ${Buffer.from('me:p@ss').toString('base64')}`
  expect(new Set(registry.calls.map((call) => call.authorization))).toEqual(new Set([expected]))
})

test('an error names the subject but not the password', async () => {
  const registering = registerSchemas({
    url: `http://me:secret@${host}`,
    logger,
    topicPrefix: 'refuse.',
  })
  const error = await registering.catch((reason: Error) => reason)
  expect(String(error)).toMatch(/refuse\.tidegate\.\S+: HTTP 422 42201 Invalid schema/)
  expect(String(error)).not.toContain('secret')
})
