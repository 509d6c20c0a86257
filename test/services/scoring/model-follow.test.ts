import { afterAll, afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createLogger } from '../../../infra/telemetry.ts'
import { noLearnedAnswers } from '../../../projections/answers/learned.ts'
import { organizationsProjection } from '../../../projections/organizations/projection.ts'
import { policiesProjection } from '../../../projections/policies/projection.ts'
import type { SessionScored } from '../../../schemas/events.ts'
import { revertModel, switchModel } from '../../../services/scoring/model/commands.ts'
import { followModels } from '../../../services/scoring/model/follow.ts'
import { modelId, type ScoringModel, standardModel } from '../../../services/scoring/model/model.ts'
import { createMemoryLog, type MemoryLog } from '../../support/memory-log.ts'
import { openServiceWorld } from '../../support/service-world.ts'
import { batch, opened, organizationId, testSession } from './support/events.ts'
import { naturalInput } from './support/natural-input.ts'
import { decisionsOn, loseScoring, recordsOf, startScoring } from './support/scoring.ts'
import { signalsOf } from './support/sessions.ts'
import { desktopChrome, withParts } from './support/snapshots.ts'

// A client with a risk signal that no trust signal offsets.
const client = withParts(desktopChrome, { automation: { globals: ['emit'] } })
const strict: ScoringModel = {
  ...standardModel,
  name: 'strict',
  caps: { ...standardModel.caps, weak: 60, trust: 0 },
  signals: {
    ...standardModel.signals,
    ambiguous_driver_globals: { ...signal('ambiguous_driver_globals'), points: 55 },
  },
}

function signal(slug: string) {
  const found = standardModel.signals[slug]
  if (!found) throw new Error(slug)
  return found
}

let log: MemoryLog
let stops: (() => Promise<void>)[] = []

const world = await openServiceWorld({ projections: [organizationsProjection, policiesProjection] })
const of = { organizationId, environment: 'live' } as const
const data = { organization_id: organizationId, name: 'Acme', slug: 'acme', created_at: 1 }
await world.append(organizationsProjection, of, { type: 'OrganizationCreated', data })
beforeEach(() => {
  log = createMemoryLog({ now: world.base.clock })
})
afterEach(async () => {
  for (const stop of stops) await stop()
  stops = []
  await loseScoring(world.pool)
})
afterAll(() => world.close())

const request = { organizationId, reason: 'a test' }
let sessions = 0

async function follow(overrides: Partial<Parameters<typeof followModels>[0]> = {}) {
  const models = await followModels({ ...world.base, applied: world.applied, ...overrides })
  stops.push(models.stop)
  return models
}

async function scoring({ clock = world.base.clock }: { clock?: () => number } = {}) {
  const { modelsAt } = await follow({ clock })
  const parts = { log, pool: world.pool, learned: noLearnedAnswers, clock, modelsAt }
  stops.push((await startScoring(parts)).stop)
}

async function decisionOfNew(): Promise<SessionScored> {
  const session = testSession(`model ${sessions++}`, { client, openedAt: world.now.ms })
  const observations = { snapshot: client.snapshot, behavior: naturalInput }
  await log.append(recordsOf(...opened(session), batch(session, { observations })))
  await log.settled()
  const last = decisionsOn(log, session.id).at(-1)
  if (!last) throw new Error('nothing was decided')
  return last
}

test('a decision uses the model in force, also after a revert', async () => {
  await scoring()
  const before = await decisionOfNew()
  expect(before).toMatchObject({ model: 'tidegate-6', verdict: 'human' })
  const changed = await switchModel(world.deps, { ...request, model: strict })
  expect(changed).toEqual({ modelId: modelId(strict), effectiveAt: world.now.ms + 30_000 })
  expect(await switchModel(world.deps, { ...request, model: strict })).toBeUndefined()
  world.now.ms += 29_999
  const asBefore = { model: 'tidegate-6', risk_score: before.risk_score }
  expect(await decisionOfNew()).toMatchObject(asBefore)
  world.now.ms += 1
  const after = await decisionOfNew()
  expect(after).toMatchObject({ model: modelId(strict), verdict: 'inconclusive' })
  expect(signalsOf(after)).toEqual(signalsOf(before))
  expect(await revertModel(world.deps, request)).toMatchObject({ modelId: null })
  world.now.ms += 30_000
  expect(await decisionOfNew()).toMatchObject(asBefore)
})

test('a decision that finishes after a change is dated within the period of its model', async () => {
  const moment = world.now.ms + 60_000
  const organization = { ...request, model: { ...strict, name: 'stricter' } }
  await switchModel(world.deps, { ...organization, effectiveAt: moment })
  // Each read of the clock advances it.
  await scoring({ clock: () => (world.now.ms += 5) })
  world.now.ms = moment - 6
  const decisions = [await decisionOfNew(), await decisionOfNew()]
  expect(decisions.map(({ evaluated_at }) => evaluated_at)).toEqual([
    moment - 1,
    expect.any(Number),
  ])
  for (const { model, evaluated_at } of decisions)
    expect(model).toBe(evaluated_at < moment ? 'tidegate-6' : modelId(organization.model))
})

test('a process that missed a notification rereads the models before they are too old', async () => {
  const noNotifications = { onChange: () => () => {} }
  const models = await follow({ applied: noNotifications })
  const defaultModel = {
    organizationId: null,
    reason: 'a test',
    model: { ...strict, name: 'default' },
  }
  await switchModel(world.deps, defaultModel)
  const modelOf = async (at: number) => (await models.modelsAt(at, world.pool))('org_of_nobody')
  world.now.ms += 30_000
  const { model } = await modelOf(world.now.ms)
  expect(modelId(model)).toBe(modelId(defaultModel.model))
  expect(await modelOf(world.now.ms - 1)).toEqual({ model: standardModel, until: world.now.ms })
})

test('warns at startup about models based on the standard model of another release', async () => {
  const warn = vi.fn()
  const logger = Object.assign(createLogger('silent'), { warn })
  const old = JSON.stringify({
    ...strict,
    version: '3',
    signals: { webdriver_detected: signal('webdriver_detected') },
  })
  const data = {
    event_id: 'evt_old',
    organization_id: organizationId,
    model_id: 'mdl_0123456789ab',
    document: old,
    effective_at: world.now.ms,
    reason: 'a test',
    changed_at: world.now.ms,
  }
  const of = { organizationId, environment: 'live' } as const
  await world.append(policiesProjection, of, { type: 'ScoringModelChanged', data })
  const models = await follow({ logger })
  expect(warn).toHaveBeenCalledExactlyOnceWith(
    { models: ['mdl_0123456789ab'], standard: 'tidegate-6' },
    expect.stringContaining('keeping them unchanged'),
  )
  // Signals that it lacks come from the standard model.
  const { model } = (await models.modelsAt(world.now.ms, world.pool))(organizationId)
  expect(model).toEqual({ ...strict, version: '3', signals: standardModel.signals })
})
