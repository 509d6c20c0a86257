import { randomBytes } from 'node:crypto'
import { openSecretHash } from '../../infra/crypto/api-keys.ts'
import { createKeyring } from '../../infra/crypto/keyring.ts'
import { type DeliveryKeys, openEnvelope } from '../../infra/wire/delivery-envelope.ts'
import { sealToken } from '../../infra/wire/sealed-token.ts'
import { recipientKeys } from '../../projections/organizations/queries.ts'
import { bundleSchema } from '../../services/gate/vault.ts'
import { jsonLines } from './cli.ts'
import { type Cluster, type ClusterOptions, startCluster } from './cluster.ts'
import { askGate, requestSignup } from './gate-approve.ts'
import { freshAddress, proofOf } from './gate-flow.ts'
import { type Choose, startIntegrator } from './gate-integrator.ts'
import { pageKey } from './gate-proof.ts'

/** Response with its outcome: `200`, or the status and error code. */
export interface Answer {
  outcome: string
  /** `data` of a 2xx response. */
  data: Record<string, unknown>
}

export interface Ask {
  /** Index of the server. Default: the first. */
  server?: number
  method?: 'GET' | 'POST'
  token?: string
  body?: object
  /** Default: an unused address. */
  ip?: string
}

export interface Signup {
  id: string
  pollToken: string
  keys: DeliveryKeys
}

const publicUrl = 'https://gate.example'
const unknownSession = `gate_${'0'.repeat(26)}`

interface RaceOptions extends Pick<ClusterOptions, 'log' | 'env' | 'processes'> {
  /** Default: the service responds correctly. */
  choose?: Choose
}

/** Starts two servers with the same public URL, and a service that agents sign up for. */
export async function openRaceWorld({ log, env, choose, processes = 2 }: RaceOptions) {
  const integrator = await startIntegrator(choose ? { choose } : {})
  const cluster = await startCluster({
    log,
    processes,
    env: {
      PUBLIC_URL: publicUrl,
      TRUSTED_PROXIES: '127.0.0.1/32',
      WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
      ...env,
    },
  })

  /** Sends a request to a path below /v1/gate. */
  async function ask(
    path: string,
    { server = 0, ip = freshAddress(), method = 'POST', ...request }: Ask = {},
  ): Promise<Answer> {
    const headers = { 'x-forwarded-for': ip }
    const asked = { method, headers, ...request }
    const { status, data, code } = await askGate(cluster.baseUrls[server] ?? '', path, asked)
    return { outcome: code ? `${status} ${code}` : String(status), data: data ?? {} }
  }

  /** Returns the `data` of a request that must succeed. */
  async function get(path: string, request?: Ask) {
    const { outcome, data } = await ask(path, request)
    if (!outcome.startsWith('2')) throw new Error(`${path} answered ${outcome}`)
    return data
  }

  const serviceId = await cluster.createGateService(integrator.url('/'))

  const open = ({
    ip = freshAddress(),
    ...members
  }: {
    ip?: string
    claim?: 'supported'
  } = {}): Promise<Signup> =>
    requestSignup(cluster.baseUrl, { service_id: serviceId, ...members }, { 'x-forwarded-for': ip })

  // The first request creates the keys of the page.
  await pageKey(cluster.baseUrls[0] ?? '', unknownSession)
  const secretHashes = await consentSecrets(cluster)

  return {
    cluster,
    integrator,
    serviceId,
    ask,
    /** Sends a trivial request and waits for the response. */
    async roundTrip(server: number) {
      await (await fetch(`${cluster.baseUrls[server]}/livez`)).text()
    },
    get,
    open,
    /** Returns the body that a consent page posts when a person approves. */
    async approval(gateSessionId: string) {
      const { approve_token, account_name } = await get(`sessions/${gateSessionId}/consent`, {
        method: 'GET',
      })
      const asked = { publicUrl, id: gateSessionId, token: String(approve_token), now: Date.now() }
      const payload = proofOf(asked)
      const sealed_token = sealToken({ payload, secretHashes, random: randomBytes })
      return { approve_token, account_name, sealed_token }
    },
    /** Returns the delivered tokens of an approved signup, and the credentials of the service. */
    async delivered({ id, pollToken, keys }: Signup, server = 0) {
      const polled = await get(`sessions/${id}`, { server, method: 'GET', token: pollToken })
      const { integrator: theirs, gate } = bundleSchema.parse(polled.delivery_bundle)
      const { ack_token: ackToken = '', outputs } = openEnvelope(gate, keys.privateKey)
      const [agentToken = '', ...more] = Object.values(outputs)
      if (more.length > 0) throw new Error('one agent token was expected')
      return { ackToken, agentToken, outputs: openEnvelope(theirs, keys.privateKey).outputs }
    },
    /** Returns the number of events by type and session: `${type} ${gate session id}`. */
    async history(): Promise<Map<string, number>> {
      const { code, stdout } = await cluster.cli(['events', '--topic', 'tidegate.gate.v1'])
      if (code !== 0) throw new Error(`tidegate events ended with ${code}`)
      const counts = new Map<string, number>()
      type Recorded = { type: string; data: { gate_session_id: string } }
      for (const { type, data } of jsonLines<Recorded>(stdout)) {
        const name = `${type} ${data.gate_session_id}`
        counts.set(name, (counts.get(name) ?? 0) + 1)
      }
      return counts
    },
    async stop() {
      await cluster.stop()
      await integrator.close()
    },
  }
}

export type RaceWorld = Awaited<ReturnType<typeof openRaceWorld>>

/** Returns the secret keys of the server's own organization, which open the proofs. */
async function consentSecrets({ settings, pool }: Cluster): Promise<string[]> {
  const keyring = createKeyring(settings.TIDEGATE_MASTER_KEYS ?? '')
  const { rows } = await pool.query<{ id: string }>(
    `select organization_id as id from read.organizations where slug like 'tidegate-consent%'`,
  )
  const keys = await recipientKeys(pool, rows[0]?.id ?? '', 'live', Date.now())
  return keys.flatMap(
    ({ keyId, secretHashSealed }) => openSecretHash(secretHashSealed, { keyring, keyId }) ?? [],
  )
}
