import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Cluster, startCluster } from '../support/cluster.ts'
import { dumpDatabase, dumpDatabaseFiles } from '../support/dump.ts'
import { eventually } from '../support/eventually.ts'
import { approveOverHttp, askGate, requestSignup } from '../support/gate-approve.ts'
import { type Integrator, startIntegrator } from '../support/gate-integrator.ts'
import { openedRecords, placesOf } from '../support/people.ts'

/** Person who signed up, and marks that only that person sent. */
interface Marked {
  n: number
  marks: string[]
  id: string
  pollToken: string
  accountId: string
  receiptUrl: string | undefined
  proofSession: string | undefined
}

const mark = (n: number) => `marked-${String(n).padStart(4, '0')}q`

describe('people are forgotten by Gate', () => {
  let cluster: Cluster
  let integrator: Integrator
  const all: Marked[] = []
  // By the service, by the operator, by the person; two of whom nothing was decided, and two who stay.
  const [byService, byOperator, byPerson, undecided, claiming, stay, stayUndecided] = [
    0, 1, 2, 3, 4, 5, 6,
  ]
  const erased = [byService, byOperator, byPerson, undecided, claiming]
  const of = (n: number) => {
    const found = all[n]
    if (!found) throw new Error(`there is no signup ${n}`)
    return found
  }
  const marksOf = (numbers: number[]) => numbers.flatMap((n) => of(n).marks)

  beforeAll(async () => {
    const env = { TRUSTED_PROXIES: '127.0.0.0/8', WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8' }
    cluster = await startCluster({ env })
    integrator = await startIntegrator()
    await cluster.createGateService(integrator.url('/'), { id: 'acme-mail' })
    for (const n of [...erased, stay, stayUndecided]) all.push(await opened(n))
    for (const n of [byService, byOperator, byPerson, claiming, stay]) await approve(of(n))
  }, 180_000)
  afterAll(async () => {
    await cluster?.stop()
    await integrator?.close()
  })

  async function opened(n: number): Promise<Marked> {
    const address = `198.18.77.${100 + n}`
    const headers = { 'x-forwarded-for': address, 'user-agent': `Agent/${mark(n)}` }
    const signup = {
      service_id: 'acme-mail',
      account_name: `Name ${mark(n)}`,
      metadata: { team: `Team ${mark(n)}` },
      ...(n === claiming && { claim: 'supported' as const }),
    }
    const { id, pollToken } = await requestSignup(cluster.baseUrl, signup, headers)
    const unknown = { accountId: '', receiptUrl: undefined, proofSession: undefined }
    return { n, marks: [mark(n), address], id, pollToken, ...unknown }
  }

  async function approve(one: Marked): Promise<void> {
    const { status, data, proofSession } = await approveOverHttp({
      baseUrl: cluster.baseUrl,
      gateSessionId: one.id,
      account_name: `Name ${mark(one.n)}`,
    })
    expect([status, data.status]).toEqual([200, one.n === claiming ? 'pending' : 'approved'])
    one.proofSession = proofSession
    one.receiptUrl = data.receipt_url
    one.accountId = integrator.accounts.get(one.id)?.gateAccountId ?? ''
  }

  async function places() {
    const { DATABASE_URL: url = '' } = cluster.settings
    return [...(await dumpDatabase(url)), ...(await openedRecords(cluster))]
  }

  it('everybody is in what the server has', async () => {
    const found = await places()
    for (const one of all) expect(placesOf(one.marks, found)).not.toEqual([])
    // Readable in the read models, and nowhere on the log.
    const raw = found.filter(({ name }) => /tidegate_log/.test(name))
    expect(placesOf(marksOf([byService, stay]), raw)).toEqual([])
  }, 120_000)

  it('the service erases an account, and gets the same receipt again', async () => {
    const { accountId, id, proofSession } = of(byService)
    const path = `/v1/organizations/${cluster.owner.organizationId}/gate-accounts/${accountId}`
    const receipt = await cluster.read(path, { method: 'DELETE' })
    expect(receipt).toMatchObject({
      object: 'erasure',
      session_ids: [id],
      counts: { webhook_events: 1 },
    })
    expect(await cluster.read(path, { method: 'DELETE' })).toEqual(receipt)
    expect(proofSession).toMatch(/^sid_/)
  }, 60_000)

  it('the operator erases a signup, whether or not it was decided', async () => {
    for (const n of [byOperator, undecided, claiming])
      expect(await cluster.operate('gate', 'erase', of(n).id)).toMatchObject({
        gate_session_ids: [of(n).id],
      })
    const poll = (n: number) =>
      askGate(cluster.baseUrl, `sessions/${of(n).id}`, { token: of(n).pollToken })
    for (const n of [undecided, claiming])
      expect(await poll(n)).toMatchObject({ status: 410, code: 'gate.session_expired' })
    expect(await poll(byOperator)).toMatchObject({ status: 410, code: 'gate.delivery_consumed' })
    expect(await poll(stay)).toMatchObject({
      status: 200,
      data: { account_name: `Name ${mark(stay)}` },
    })
  }, 120_000)

  it('who approved erases with the link, and nobody without', async () => {
    const url = new URL(of(byPerson).receiptUrl ?? '')
    expect(url.pathname).toBe(`/gate/receipt/${of(byPerson).id}`)
    const erase = (id: string, receipt_token: string) =>
      askGate(cluster.baseUrl, `sessions/${id}/erase`, { body: { receipt_token } })
    expect(await erase(of(stay).id, url.hash.slice(1))).toMatchObject({ status: 404 })
    for (const _time of [1, 2])
      expect(await erase(of(byPerson).id, url.hash.slice(1))).toMatchObject({ status: 200 })
  }, 60_000)

  it.each(['gate', 'webhooks', 'sessions', 'erasures', 'audit'])(
    'a rebuild of %s is equal',
    async (name) => {
      const { code, stdout, stderr } = await cluster.cli(['rebuild', name])
      expect({ code, stdout, stderr }).toMatchObject({ code: 0 })
    },
    120_000,
  )

  it('no byte of them is in tables or topics, opened by every key that there is', async () => {
    const found = await places()
    expect(placesOf(marksOf(erased), found)).toEqual([])
    expect(placesOf(marksOf([stay]), found)).not.toEqual([])
    expect(placesOf(marksOf([stayUndecided]), found)).not.toEqual([])
  }, 120_000)

  it('nor in the files of the database, once its tables are made anew', async () => {
    const { pool } = cluster
    // A vacuum keeps rows that an older transaction may still see.
    await eventually(async () => {
      await pool.query('vacuum (full, analyze) tidegate_keys.session_keys')
      await pool.query('vacuum full pg_catalog.pg_statistic')
      const files = await dumpDatabaseFiles(pool)
      expect(placesOf(marksOf([stay]), files)).not.toEqual([])
      expect(placesOf(marksOf(erased), files)).toEqual([])
    })
    const proofs = [byService, byOperator, byPerson, claiming].map((n) => of(n).proofSession)
    const { rows } = await pool.query<{ id: string }>(
      `select session_id as id from tidegate_keys.session_keys
       where session_id = any($1) and sealed_key is null`,
      [[...erased.map((n) => of(n).id), ...proofs]],
    )
    expect(rows).toHaveLength(erased.length + proofs.length)
  }, 120_000)
})
