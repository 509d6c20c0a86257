import { afterEach, describe, expect, it } from 'vitest'
import { openRaceWorld } from '../../support/gate-races.ts'
import { accept } from '../../support/webhook-behaviours.ts'
import { startWebhookReceiver } from '../../support/webhook-receiver.ts'
import { openWebhookWorld, sessionIds, type WebhookWorld } from '../../support/webhook-world.ts'
import { documentedFlows } from './documented.ts'
import { createRecorder } from './recorder.ts'
import { openDocument, shows } from './steps.ts'

const page = documentedFlows()

describe('what docs/internals/architecture.md lists of a flow is what the flow runs', () => {
  let undo = new AsyncDisposableStack()
  afterEach(async () => {
    await undo.disposeAsync()
    undo = new AsyncDisposableStack()
  })

  async function world(
    roles: string,
  ): Promise<{ world: WebhookWorld; record: ReturnType<typeof createRecorder>['record'] }> {
    const recorder = createRecorder()
    undo.defer(recorder.close)
    const opened = await openWebhookWorld({ log: 'postgres', roles, env: recorder.env })
    undo.defer(opened.close)
    return { world: opened, record: recorder.record }
  }

  it('a batch, to its row', async () => {
    const { world: opened, record } = await world('collect,api,scoring,projections')
    const { cluster, pool, tenant } = opened
    const document = async (seed: string) => openDocument(cluster.baseUrls[0] ?? '', tenant, seed)
    const decided = shows((text, values) => pool.query(text, values))
    const decisions = 'select count(*)::int from read.decisions where session_id = $1'
    const run = async ({ sessionId, send }: Awaited<ReturnType<typeof document>>) => {
      await send()
      await decided(decisions, [sessionId], '1')
    }
    await run(await document('warm'))
    const measured = await document('measured')
    const ran = await record(() => run(measured))
    judge('A batch, to its row', ran)
    judge(
      'A visitor, known again',
      ran.filter((file) => file.startsWith('services/scoring/visitors/')),
    )
  }, 180_000)

  it('a rotation of a key', async () => {
    const { world: opened, record } = await world('api,projections')
    const { cluster, pool, tenant } = opened
    const shown = shows((text, values) => pool.query(text, values))
    const rotate = async () => {
      const keys = `/v1/organizations/${tenant.organizationId}/api-keys`
      const { id } = await cluster.read<{ id: string }>(keys, { body: { name: 'Old' } })
      return async () => {
        await cluster.read(`${keys}/${id}/rotations`, { method: 'POST' })
        await shown('select status from read.api_keys where key_id = $1', [id], 'rotating')
      }
    }
    await (await rotate())()
    expect(cluster.baseUrls).toHaveLength(1)
    judge('A rotation of a key', await record(await rotate()))
  }, 180_000)

  it('a webhook, from the decision to the delivery', async () => {
    const { world: opened, record } = await world('api,projections,webhooks')
    const receiver = await startWebhookReceiver({ choose: () => accept })
    undo.defer(receiver.close)
    const shown = shows((text, values) => opened.pool.query(text, values))
    await opened.createEndpoint(receiver.url('/'), ['session.result.persisted'])
    const delivered = 'select count(*)::int from read.webhook_deliveries where status = $1'
    const deliver = async (name: string, count: number) => {
      await opened.score(opened.tenant, sessionIds(name, 1))
      await shown(delivered, ['succeeded'], String(count))
    }
    await deliver('warm', 1)
    judge(
      'A webhook, from the decision to the delivery',
      await record(() => deliver('measured', 2)),
    )
  }, 180_000)

  it('an approval of a signup', async () => {
    const recorder = createRecorder()
    undo.defer(recorder.close)
    const races = await openRaceWorld({ log: 'postgres', processes: 1, env: recorder.env })
    undo.defer(races.stop)
    const prepare = async () => {
      const { id } = await races.open()
      const body = await races.approval(id)
      return async () => {
        const { outcome } = await races.ask(`sessions/${id}/approve`, { body })
        expect(outcome).toBe('200')
      }
    }
    await (await prepare())()
    judge('An approval of a signup', await recorder.record(await prepare()))
  }, 180_000)
})

/** Compares what ran with the flow's list, outside of which nothing may run, and prints how many files that are. */
function judge(title: string, ran: string[]): void {
  const flow = page.flows.find((documented) => documented.title === title)
  if (!flow)
    throw new Error(
      `docs/internals/architecture.md has no flow "${title}"; it runs\n${ran.join('\n')}`,
    )
  const common = ran.filter((file) => page.common.includes(file))
  console.log(
    `${title}: ${ran.length} files run, ${flow.files.length} listed, ${common.length} of the common ground's ${page.common.length}`,
  )
  const known = new Set([...page.common, ...flow.files, ...flow.elsewhere])
  const outside = ran.filter((file) => !known.has(file))
  expect(outside, `${title}: files that run and are not listed`).toEqual([])
}
