import { type Answer, json, type Request } from './http.ts'
import { createMask } from './mask.ts'
import { type Receiver, startReceiver } from './receiver.ts'
import { createRecorder, type Named } from './recorder.ts'
import { type DevelopmentServer, startDevelopmentServer } from './server.ts'

export type Headers = Record<string, string>

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
  const { record, quiet } = recorder

  const own = `/v1/organizations/${credentials.organization_id}`
  const live = bearer(credentials.live.secret_key)

  /** An organization of the other tenants, with a key that may do everything. */
  async function organization(slug: string) {
    const body = { name: slug, slug }
    const { id } = json(
      await quiet({ method: 'POST', path: '/v1/organizations', headers: live, body }),
    ).data
    const key = await cli(
      'keys',
      'create',
      slug,
      '--name',
      'All',
      '--type',
      'secret',
      '--scopes',
      '*',
    )
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
    async key(body: object, { path = own, headers = live } = {}): Promise<Headers> {
      const answer = await quiet({ method: 'POST', path: `${path}/api-keys`, headers, body })
      return bearer(json(answer).data.revealed_key)
    },
    /** Records a request and reads its answer. */
    read: async (request: Named) => json(await record(request)).data,
    /** Repeats a request until its answer is the wanted one; nothing is recorded. */
    async until(request: Request, wanted: (answer: Answer) => boolean): Promise<Answer> {
      for (let attempt = 0; attempt < 300; attempt++) {
        const answer = await quiet(request)
        if (wanted(answer)) return answer
        await new Promise((resolve) => setTimeout(resolve, 100))
      }
      const { status, body } = await quiet(request)
      throw new Error(`${request.method} ${request.path} stays at ${status} ${body}`)
    },
  }
}
