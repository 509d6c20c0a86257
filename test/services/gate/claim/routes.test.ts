import { describe, expect, test } from 'vitest'
import { freshAddress, type OpenedSession } from '../../../support/gate-flow.ts'
import type { GateOwner } from '../../../support/gate-world.ts'
import { useGateApi } from '../gate-api.ts'

const gate = await useGateApi()
const owner = await gate.owner()

const nearby = '198.51.100.250'
let agents = 0
/** A signup of an agent that can be told a code, in a network of its own. */
const supporting = ({ serviceId } = owner) =>
  gate.flow.open(serviceId, { ip: `198.51.100.${++agents}`, claim: 'supported' })
const approve = (id: string, body: object, from = freshAddress()) =>
  gate.post(`sessions/${id}/approve`, body, { ip: from })

async function approvedElsewhere({ id }: OpenedSession) {
  const body = await gate.flow.approval(id)
  const { outcome, data } = await approve(id, body)
  const code: string = data.claim_code
  const wrong = String((Number(code.replace(' ', '')) + 1) % 1_000_000).padStart(6, '0')
  return { body, outcome, data, code, wrong }
}
const tell = ({ id, pollToken: key }: OpenedSession, code: string) =>
  gate.post(`sessions/${id}/claim`, { code }, { key })
const poll = async ({ id, pollToken: key }: OpenedSession) =>
  (await gate.ask(`sessions/${id}`, { key })).data
const wrongCode = '403 gate.claim_code_invalid'

describe('where the person is in another network', () => {
  test('the page shows a code, and the service is asked once the agent has told it', async () => {
    const signup = await supporting()
    const { body, data, code } = await approvedElsewhere(signup)
    expect(data).toMatchObject({ status: 'pending' })
    expect(code).toMatch(/^\d{3} \d{3}$/)
    expect(await poll(signup)).toMatchObject({ status: 'pending', claim: 'waiting' })
    expect((await approve(signup.id, body)).data).toEqual(data)
    expect(gate.sentTo(signup.id)).toEqual([])
    expect((await tell(signup, code)).outcome).toBe('200')
    expect((await approve(signup.id, body)).data).toMatchObject({ status: 'approved' })
    expect(await poll(signup)).toMatchObject({ status: 'approved' })
    expect((await tell(signup, code.replace(' ', ''))).outcome).toBe('200')
    expect(gate.sentTo(signup.id)).toHaveLength(1)
  })

  test('whoever else has the link is not shown the code', async () => {
    const signup = await supporting()
    await approvedElsewhere(signup)
    const consent = await gate.ask(`sessions/${signup.id}/consent`)
    expect(consent.data).toMatchObject({ status: 'pending', claim: 'waiting' })
    const theirs = await approve(signup.id, await gate.flow.approval(signup.id))
    const nothing = { object: 'gate_session', id: signup.id, status: 'pending' }
    expect([theirs.status, theirs.data]).toEqual([200, nothing])
  })

  test('five wrong codes end it, also at once, and the service is never asked', async () => {
    const signup = await supporting()
    const { code, wrong } = await approvedElsewhere(signup)
    const answers = await Promise.all(Array.from({ length: 12 }, () => tell(signup, wrong)))
    const outcomes = answers.map(({ outcome }) => outcome).toSorted()
    const over = '409 gate.session_already_resolved'
    expect(outcomes).toEqual([...Array(5).fill(wrongCode), ...Array(7).fill(over)])
    expect(await gate.count('GateSessionClaimFailed', signup.id)).toBe(5)
    expect((await tell(signup, code)).outcome).toBe(over)
    expect(await poll(signup)).toMatchObject({ status: 'rejected', reason: 'claim_failed' })
    expect(gate.sentTo(signup.id)).toEqual([])
  })

  test('what is no code is not counted, nor what is told before somebody has approved', async () => {
    const signup = await supporting()
    for (let i = 0; i < 6; i++) expect((await tell(signup, '123456')).outcome).toBe(wrongCode)
    const { code } = await approvedElsewhere(signup)
    for (let i = 0; i < 6; i++)
      expect((await tell(signup, 'K7QF-M2XD')).outcome).toBe('422 gate.validation_failed code')
    expect((await tell(signup, code)).outcome).toBe('200')
  })
})

test('in the network of the agent a person needs no code, unless the service demands it', async () => {
  const approvedNearby = async (of: GateOwner) => {
    const { id } = await supporting(of)
    return (await approve(id, await gate.flow.approval(id), nearby)).data.status
  }
  const demanding = await gate.owner({ fields: { claim_required: true } })
  expect([await approvedNearby(owner), await approvedNearby(demanding)]).toEqual([
    'approved',
    'pending',
  ])
})

describe('where the verdict is not human', () => {
  const unsure = { verdict: 'inconclusive' } as const

  test('the name of the account is needed, and lacking it takes none of the three tries', async () => {
    const { id } = await gate.flow.open(owner.serviceId, { account_name: 'Robin  Ł.' })
    const body = await gate.flow.approval(id, unsure)
    for (const account_name of [undefined, 'Robin', undefined, 'robin', undefined])
      expect((await approve(id, { ...body, account_name }, nearby)).outcome).toBe(
        '422 gate.validation_failed account_name',
      )
    const named = await approve(id, { ...body, account_name: ' robin ł.' }, nearby)
    expect(named.outcome).toBe('200')
  })

  test('a service that takes people alone takes no such approval', async () => {
    const strict = await gate.owner({ fields: { minimum_verdict: 'human' } })
    const { id } = await gate.flow.open(strict.serviceId)
    const body = { ...(await gate.flow.approval(id, unsure)), account_name: 'Robin' }
    expect((await approve(id, body)).outcome).toBe('403 gate.svc_proof_invalid verdict')
    expect((await approve(id, await gate.flow.approval(id))).outcome).toBe('200')
  })
})

test('the code is nowhere in the database', async () => {
  const { code } = await approvedElsewhere(await supporting())
  const { rows } = await gate.pool.query<{ table: string }>(
    `select format('%I.%I', schemaname, tablename) as table from pg_tables
     where schemaname not in ('pg_catalog', 'information_schema')`,
  )
  for (const { table } of rows) {
    const found = await gate.pool.query(
      `select from ${table} t where t::text like any(array['%' || $1 || '%', '%"' || $2 || '"%'])`,
      [code, code.replace(' ', '')],
    )
    expect(found.rowCount, table).toBe(0)
  }
})
