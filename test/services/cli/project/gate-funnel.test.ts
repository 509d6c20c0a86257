import { afterAll, expect, test } from 'vitest'
import { generateDeliveryKeys } from '../../../../infra/wire/delivery-envelope.ts'
import { eventTopics } from '../../../../schemas/events.ts'
import { loadView } from '../../../../services/cli/project/view.ts'
import { startWorld } from '../../../authorization/world.ts'
import { eventually } from '../../../support/eventually.ts'
import { startView } from './start-view.ts'

const world = await startWorld()
afterAll(() => world.stop())

async function post(path: string, token: string, payload: object) {
  const headers = { ...(token && { authorization: `Bearer ${token}` }) }
  const url = `/v1/gate/${path}`
  const { statusCode, body } = await world.app.inject({ method: 'POST', url, headers, payload })
  expect(statusCode, body).toBeLessThan(300)
  return JSON.parse(body).data
}

// The status of a signup whose credentials were retrieved is an error code.
async function statusOf({ id, pollToken }: { id: string; pollToken: string }): Promise<string> {
  const headers = { authorization: `Bearer ${pollToken}` }
  const { body } = await world.app.inject({ url: `/v1/gate/sessions/${id}`, headers })
  const { data, error } = JSON.parse(body)
  return data?.status ?? error.code
}

/** Opens a signup whose agent must send the code from the consent page. */
async function openClaim(service_id: string) {
  const { delivery } = generateDeliveryKeys()
  const request = { service_id, account_name: 'Robin', delivery, claim: 'supported' }
  const { id, poll_token: pollToken } = await post('sessions', '', request)
  return { id, pollToken }
}

test('counts signups and logins with the statuses that the API returns', async () => {
  const { gate } = world
  const organizationId = await world.organization('Funnel')
  const serviceId = await world.service(organizationId)
  const key = await world.issue({ organizationId, type: 'secret', scopes: ['*'] })
  const [opened, claiming] = [await gate.open(serviceId), await openClaim(serviceId)]
  await gate.approve(claiming.id)
  const declined = await gate.open(serviceId)
  const cancelled = { approve_token: await gate.approveToken(declined.id), reason: 'declined' }
  await post(`sessions/${declined.id}/cancel`, declined.pollToken, cancelled)
  const [kept, waiting] = [await gate.signUp(serviceId), await gate.signUp(serviceId)]
  await post(`sessions/${kept.id}/ack`, kept.pollToken, { ack_token: kept.ackToken })
  await gate.openLogin(serviceId, kept.agentToken ?? '')
  await gate.loginCode(serviceId, kept.agentToken ?? '')
  const code = await gate.loginCode(serviceId, kept.agentToken ?? '')
  await post('login-sessions/consume', key.revealedKey, { code })

  const statuses = await Promise.all([opened, claiming, declined, kept, waiting].map(statusOf))
  expect(statuses).toEqual(['pending', 'pending', 'rejected', 'gate.delivery_consumed', 'approved'])
  const columns = 'kind opened consented asked approved used rejected expired'
  expect(await funnel(columns.split(' '))).toEqual([
    ['login', 3, 2, 0, 2, 1, 0, 0],
    ['signup', 5, 3, 2, 2, 1, 1, 0],
  ])
})

async function funnel(columns: string[]) {
  const { pool, codec } = world.deps
  const { log } = world
  const view = await loadView('docs/examples/views/gate-funnel.ts')
  const { projection, running } = await startView({ pool, log, codec }, view)
  expect(projection.topics).toEqual([eventTopics.GateSessionOpened, eventTopics.VisitorErased])
  const ends = await log.endPositions(eventTopics.GateSessionOpened)
  await eventually(() => {
    const at = new Map(
      running
        .status()
        .map(({ topic, partition, nextOffset }) => [`${topic}/${partition}`, nextOffset]),
    )
    for (const { topic, partition, offset } of ends)
      expect(at.get(`${topic}/${partition}`) ?? 0).toBeGreaterThanOrEqual(offset)
  })
  const { rows } = await pool.query('select * from view_gate_funnel.funnel order by kind')
  await running.stop()
  return rows.map((row) => columns.map((column) => row[column]))
}
