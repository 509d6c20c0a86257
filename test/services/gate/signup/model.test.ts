import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { DecidedEvent } from '../../../../infra/event-store/decide.ts'
import type { GateSessionRow } from '../../../../projections/gate/tables.ts'
import { pendingSession } from '../../../../services/gate/sessions.ts'
import {
  checkDeclinable,
  decideAcknowledgement,
  decideClosedPage,
  decideDecline,
  decideDeliveryExpiry,
  decideOpening,
  decideSessionExpiry,
} from '../../../../services/gate/signup/decide.ts'
import type { PageRow } from '../../../support/gate-page-row.ts'
import { now as begin } from '../../../support/gate-rows.ts'
import { amount } from '../../../support/long.ts'
import {
  after,
  approvedAt,
  command,
  failedAt,
  opening,
  outcome,
  start,
  startedAt,
} from './given.ts'

const minute = 60_000
const hour = 60 * minute

/** What a signup is, written down a second time and without events: how it stands, and until when. */
interface Model {
  stage:
    | 'waiting'
    | 'started'
    | 'delivering'
    | 'declined'
    | 'closed'
    | 'failed'
    | 'expired'
    | 'acknowledged'
    | 'gone'
  /** When the stage ends by itself. */
  until: number
  page: { token: number; closedAt: number | null } | undefined
}

const isWaiting = ({ stage, until }: Model, now: number) => stage === 'waiting' && now < until
/** What is said to those who would decide about it. */
function refusal({ stage, until }: Model, now: number): string | undefined {
  if (stage === 'expired' || (stage === 'waiting' && now >= until)) return 'gate.session_expired'
  if (stage !== 'waiting' && stage !== 'started') return 'gate.session_already_resolved'
  return undefined
}

interface World {
  now: number
  model: Model
  session: GateSessionRow
  page: PageRow | undefined
  tokens: number
}

/** Carries a decision out, and says what it was. */
function apply(world: World, decide: () => DecidedEvent[]): string {
  const result = outcome(() => {
    const decisions = decide()
    world.session = after(world.session, decisions)
    return decisions
  })
  return result === 'nothing' || result.includes('.') ? result : 'done'
}

/** The same commands to the server and to the model: what each answers, after it has changed its side of the world. */
interface Command {
  real: (world: World) => string
  model: (world: World) => string
}

const hash = (token: number) => `approve ${token}`
const nothing = () => []

const commands: Record<string, Command> = {
  consent: {
    real(world) {
      return apply(world, () => {
        pendingSession(world.session, world.now)
        world.tokens++
        world.page = {
          approve_token_hash: hash(world.tokens),
          issued_at: world.now,
          closed_at: null,
        }
        return nothing()
      })
    },
    model({ model, now, tokens }) {
      const refused = refusal(model, now)
      if (!refused) model.page = { token: tokens, closedAt: null }
      return refused ?? 'nothing'
    },
  },
  close: {
    real(world) {
      return apply(world, () => {
        const { status } = checkDeclinable(world.session, { now: world.now })
        if (status === 'pending' && world.page) world.page.closed_at ??= world.now
        return nothing()
      })
    },
    model({ model, now }) {
      if (['declined', 'closed', 'failed'].includes(model.stage)) return 'nothing'
      const refused =
        refusal(model, now) ?? (model.stage === 'started' ? 'gate.approval_in_progress' : undefined)
      if (!refused && model.page) model.page.closedAt ??= now
      return refused ?? 'nothing'
    },
  },
  cancel: {
    real: (world) => apply(world, () => decideDecline(world.session, { now: world.now })),
    model({ model, now }) {
      if (['declined', 'closed', 'failed'].includes(model.stage)) return 'nothing'
      const refused =
        refusal(model, now) ?? (model.stage === 'started' ? 'gate.approval_in_progress' : undefined)
      if (!refused) model.stage = 'declined'
      return refused ?? 'done'
    },
  },
  approve: {
    real(world) {
      return apply(world, () => startWith(world.tokens, world))
    },
    model: ({ model, now, tokens }) => approval(model, { now, token: tokens }),
  },
  approveWithOldToken: {
    real(world) {
      return apply(world, () => startWith(world.tokens - 1, world))
    },
    model: ({ model, now, tokens }) => approval(model, { now, token: tokens - 1 }),
  },
  serviceAnswers: {
    real: (world) => apply(world, () => approvedAt(world.session, world.now)),
    model({ model, now }) {
      if (model.stage !== 'started') return 'nothing'
      Object.assign(model, { stage: 'delivering', until: now + 24 * hour })
      return 'done'
    },
  },
  serviceFails: {
    real: (world) => apply(world, () => failedAt(world.session, world.now)),
    model({ model }) {
      if (model.stage !== 'started') return 'nothing'
      model.stage = 'failed'
      return 'done'
    },
  },
  ack: {
    real: (world) => apply(world, () => acknowledgeAs('another', world)),
    model: acknowledge,
  },
  ackOfOneClient: {
    real: (world) => apply(world, () => acknowledgeAs('one', world)),
    model(world) {
      const { model } = world
      if (acknowledgedByOne.has(model)) return 'nothing'
      const answer = acknowledge(world)
      if (answer === 'done') acknowledgedByOne.add(model)
      return answer
    },
  },
  scheduler: {
    real(world) {
      const at = { now: world.now }
      const { session, page, now } = world
      const closedAt = page?.closed_at ?? null
      const closingForMs = closedAt === null ? null : now - closedAt
      const results = [
        apply(world, () => decideClosedPage({ session, closingForMs }, at)),
        apply(world, () => decideDeliveryExpiry(world.session, at)),
        apply(world, () => decideSessionExpiry(world.session, at)),
      ]
      return results.includes('done') ? 'done' : 'nothing'
    },
    model({ model, now }) {
      const closedAt = model.page?.closedAt ?? null
      if (isWaiting(model, now) && closedAt !== null && now >= closedAt + 3000)
        model.stage = 'closed'
      else if (model.stage === 'delivering' && now >= model.until) model.stage = 'gone'
      else if (model.stage === 'waiting' && now >= model.until) model.stage = 'expired'
      else return 'nothing'
      return 'done'
    },
  },
}

/** Where it was the client that repeats itself. */
const acknowledgedByOne = new WeakSet<Model>()
let requests = 0

/** Another is so each time. */
function acknowledgeAs(who: 'one' | 'another', { session, now }: World): DecidedEvent[] {
  const acknowledgementId = who === 'one' ? who : `${who} ${requests++}`
  const isAckToken = session.ack_token_hash !== null
  return decideAcknowledgement({ session, isAckToken }, { acknowledgementId, now })
}

function acknowledge({ model, now }: World): string {
  if (model.stage === 'expired') return 'gate.session_expired'
  if (!['delivering', 'acknowledged', 'gone'].includes(model.stage))
    return 'gate.delivery_ack_invalid'
  if (model.stage !== 'delivering' || now >= model.until) return 'gate.delivery_consumed'
  model.stage = 'acknowledged'
  return 'done'
}

/** Which page's token started the approval. */
const decidedBy = new WeakMap<Model, number>()

/** Every token of the page is good; without one there is nothing to ask with. */
function startWith(
  token: number,
  { session, now }: Pick<World, 'session' | 'now'>,
): DecidedEvent[] {
  if (token < 1) return []
  return startedAt(session, now, {
    ...start,
    approveTokenHashes: [hash(token)],
  })
}

function approval(model: Model, { now, token }: { now: number; token: number }): string {
  if (token < 1 || decidedBy.get(model) === token) return 'nothing'
  const refused = refusal(model, now)
  if (refused || model.stage === 'started') return refused ?? 'nothing'
  model.stage = 'started'
  decidedBy.set(model, token)
  return 'done'
}

/** How the row says what the model says. */
const rows: Record<Model['stage'], Partial<GateSessionRow>> = {
  waiting: { status: 'pending', approval_started_at: null },
  started: { status: 'pending', approval_started_at: expect.any(Number) },
  delivering: { status: 'approved', delivery: 'waiting', delivery_sealed: expect.any(Buffer) },
  declined: { status: 'rejected', rejection: 'declined' },
  closed: { status: 'rejected', rejection: 'closed' },
  failed: { status: 'rejected', rejection: 'integrator_failed' },
  expired: { status: 'expired', delivery: null },
  acknowledged: { status: 'approved', delivery: 'acknowledged', delivery_sealed: null },
  gone: { status: 'approved', delivery: 'expired', delivery_sealed: null },
}

const step = fc.record({
  name: fc.constantFrom(...Object.keys(commands)),
  ms: fc.oneof(
    fc.constantFrom(0, 1, 2999, 3000, 3001, 15 * minute - 1, 15 * minute, 24 * hour),
    fc.integer({ min: 0, max: 2 * minute }),
  ),
  waits: fc.nat(3),
})

const at = (name: string) => ({ name, ms: 0, waits: 1 })
const afterADay = (name: string) => ({ name, ms: 24 * hour, waits: 0 })
/** Few random sequences come as far as these do. */
const beginnings = [
  [],
  [at('consent'), at('close')],
  [at('consent'), at('approve')],
  [at('consent'), at('approve'), at('serviceAnswers')],
  [at('consent'), at('approve'), at('serviceAnswers'), afterADay('scheduler')],
]
const sequence = fc
  .tuple(fc.constantFrom(...beginnings), fc.array(step, { maxLength: 25 }))
  .map(([first, rest]) => [...first, ...rest])

test('whatever is asked in whatever order, a signup is what the model says', () => {
  const seed = Number(process.env.SEED ?? Date.now() % 2 ** 31)
  console.log(`fast-check seed ${seed}`)
  const seen = new Set<string>()
  const property = fc.property(sequence, (steps) => {
    const session = after(undefined, decideOpening(opening, command))
    const model: Model = { stage: 'waiting', until: begin + 15 * minute, page: undefined }
    const world: World = { now: begin, model, session, page: undefined, tokens: 0 }
    for (const { name, ms, waits } of steps) {
      // Mostly at once: most of it is over after a long wait.
      if (waits === 0) world.now += ms
      const answer = commands[name]?.real(world)
      expect(answer, name).toBe(commands[name]?.model(world))
      expect(world.session, name).toMatchObject(rows[model.stage])
      expect(world.page?.closed_at ?? null).toBe(model.page?.closedAt ?? null)
      seen.add(`${name} ${answer}`).add(model.stage)
    }
  })
  fc.assert(property, { seed, numRuns: amount({ few: 500, many: 3000 }), endOnFailure: true })
  // Or else it would say little.
  for (const stage of Object.keys(rows)) expect([...seen]).toContain(stage)
})
