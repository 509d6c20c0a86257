import { type Answer, type Headers, json } from './http.ts'
import { createMask } from './mask.ts'
import { type Receiver, startReceiver } from './receiver.ts'
import { createRecorder } from './recorder.ts'
import { type DevelopmentServer, startDevelopmentServer } from './server.ts'

export const bearer = (token: string): Headers => ({ authorization: `Bearer ${token}` })

/** An address of its own for each call: some limits are by address. */
function addresses() {
  let count = 0
  return (): Headers => {
    count++
    return { 'x-forwarded-for': `62.1.${count >> 8}.${count & 255}` }
  }
}

/** A server of a checkout, a receiver for its webhooks, and the organizations that requests are about. */
export async function startWorld(checkout: string) {
  const receiver = await startReceiver()
  const server = await startDevelopmentServer(checkout)
  const stop = async () => {
    await receiver.close()
    await server.stop()
  }
  try {
    return { ...(await prepareWorld(server, receiver)), stop }
  } catch (error) {
    await stop()
    throw error
  }
}

export type World = Awaited<ReturnType<typeof startWorld>>

async function prepareWorld(server: DevelopmentServer, receiver: Receiver) {
  const { baseUrl, credentials, cli } = server
  const places = {
    [baseUrl]: 'http://<server>',
    [receiver.host]: '<receiver>',
    [new URL(baseUrl).host]: '<server>',
  }
  const recorder = createRecorder({ baseUrl, mask: createMask(places) })
  const { record, ask } = recorder

  const own = `/v1/organizations/${credentials.organization_id}`
  const live = bearer(credentials.live.secret_key)

  /** An organization of the other tenants, with a key that may do everything. */
  async function organization(slug: string) {
    const { id } = json(await ask('POST /v1/organizations', live, { name: slug, slug })).data
    const options = ['--name', 'All', '--type', 'secret', '--scopes', '*']
    const key = await cli('keys', 'create', slug, ...options)
    return { id, secret: bearer(key.data.revealed_key) }
  }

  const [foreign, suspended, deleted, exhausted] = await Promise.all([
    organization('foreign'),
    organization('suspended'),
    organization('deleted'),
    organization('exhausted'),
  ])
  await Promise.all([
    cli('org', 'limits', 'exhausted', '--secret', '10', '--publishable', '1'),
    cli('org', 'enable', 'development', 'ip_rotation'),
  ])

  return {
    ...recorder,
    ...server,
    receiver,
    freshAddress: addresses(),
    organizations: { foreign, suspended, deleted, exhausted },
    own,
    live,
    test: bearer(credentials.test.secret_key),
    /** A key of the organization, by default the own one; nothing is recorded. */
    key: async (body: object, { path = own, headers = live } = {}): Promise<Headers> =>
      bearer(json(await ask(`POST ${path}/api-keys`, headers, body)).data.revealed_key),
    /** Records a request and reads its answer. */
    read: async (...request: Parameters<typeof record>) => json(await record(...request)).data,
    /** Repeats a request until its answer is the wanted one; nothing is recorded. */
    async until(line: string, headers: Headers, wanted: (answer: Answer) => boolean) {
      for (let attempt = 0; attempt < 300; attempt++) {
        const answer = await ask(line, headers)
        if (wanted(answer)) return answer
        await new Promise((resolve) => setTimeout(resolve, 100))
      }
      const { status, body } = await ask(line, headers)
      throw new Error(`${line} stays at ${status} ${body}`)
    },
  }
}
