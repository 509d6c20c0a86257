import { describe, expect, test } from 'vitest'
import { freshAddress, type OpenedSession } from '../../../support/gate-flow.ts'
import type { GateOwner } from '../../../support/gate-world.ts'
import { useGateApi } from '../gate-api.ts'

const gate = await useGateApi()
const owner = await gate.owner()

const nearby = '198.51.100.250'
let agents = 0
/** Creates a signup by an agent that supports claims, in a network of its own. */
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

describe('with a person in another network', () => {
  test('the page shows a code, and the service is called once the agent has sent it', async () => {
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

  test("other holders of the link don't see the code", async () => {
    const signup = await supporting()
    await approvedElsewhere(signup)
    const consent = await gate.ask(`sessions/${signup.id}/consent`)
    expect(consent.data).toMatchObject({ status: 'pending', claim: 'waiting' })
    const theirs = await approve(signup.id, await gate.flow.approval(signup.id))
    const nothing = { object: 'gate_session', id: signup.id, status: 'pending' }
    expect([theirs.status, theirs.data]).toEqual([200, nothing])
  })

  test('five wrong codes reject the signup, even if sent at once, and the service is never called', async () => {
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

  test('malformed codes, and codes sent before an approval, are not counted', async () => {
    const signup = await supporting()
    for (let i = 0; i < 6; i++) expect((await tell(signup, '123456')).outcome).toBe(wrongCode)
    const { code } = await approvedElsewhere(signup)
    for (let i = 0; i < 6; i++)
      expect((await tell(signup, 'K7QF-M2XD')).outcome).toBe('422 gate.validation_failed code')
    expect((await tell(signup, code)).outcome).toBe('200')
  })
})

test("a person in the agent's network needs no code, unless the service requires it", async () => {
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

describe('with a verdict that is not human', () => {
  const unsure = { verdict: 'inconclusive' } as const

  test('the account name is required, and leaving it out does not count as an attempt', async () => {
    const { id } = await gate.flow.open(owner.serviceId, { account_name: 'Robin  Ł.' })
    const body = await gate.flow.approval(id, unsure)
    for (const account_name of [undefined, 'Robin', undefined, 'robin', undefined])
      expect((await approve(id, { ...body, account_name }, nearby)).outcome).toBe(
        '422 gate.validation_failed account_name',
      )
    const named = await approve(id, { ...body, account_name: ' robin ł.' }, nearby)
    expect(named.outcome).toBe('200')
  })

  test('a service that requires the verdict human rejects the approval', async () => {
    const strict = await gate.owner({ fields: { minimum_verdict: 'human' } })
    const { id } = await gate.flow.open(strict.serviceId)
    const body = { ...(await gate.flow.approval(id, unsure)), account_name: 'Robin' }
    expect((await approve(id, body)).outcome).toBe('403 gate.svc_proof_invalid verdict')
    expect((await approve(id, await gate.flow.approval(id))).outcome).toBe('200')
  })
})

test('the code is not stored anywhere in the database', async () => {
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
