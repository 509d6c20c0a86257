import { expect, test } from 'vitest'
import type { SessionDetailRow } from '../../../projections/sessions/queries.ts'
import type { DecisionSummary } from '../../../projections/sessions/tables.ts'
import type { SessionScored } from '../../../schemas/events.ts'
import { sessionDetail } from '../../../services/readback/responses.ts'
import { sessionScored } from '../../support/session-scored.ts'

const decision: DecisionSummary = {
  event_id: 'evt_2',
  verdict: 'inconclusive',
  risk_score: 60,
  phase: 'snapshot',
  is_provisional: true,
  evaluated_at: 1_760_000_001_000,
}

function rendered(event: Partial<SessionScored> = {}, row: Partial<SessionDetailRow> = {}) {
  const detail = sessionScored(event)
  const base = {
    id: 'sid_1',
    created_at: 1_760_000_000_000,
    client_user_id: null,
    decision,
    detail,
  }
  const logPosition = { partition: 0, offset: 0 }
  const fullRow = {
    ...base,
    logPosition,
    mark: null,
    previous_decisions: [],
    visitor: null,
    lifecycle: null,
    ...row,
  }
  return JSON.parse(JSON.stringify(sessionDetail(fullRow, { identification: null })))
}

test('decisions have the values of the API', () => {
  const data = rendered({}, { previous_decisions: [{ ...decision, verdict: 'bot' }] })
  expect(data).toMatchObject({
    object: 'session',
    id: 'sid_1',
    created_at: '2025-10-09T08:53:20.000Z',
  })
  const words = {
    automation_status: 'uncertain',
    evaluation_phase: 'snapshot',
    decision_status: 'preliminary',
  }
  expect(data.decision).toEqual({
    event_id: 'evt_2',
    risk_score: 60,
    evaluated_at: '2025-10-09T08:53:21.000Z',
    ...words,
  })
  expect(data.previous_decisions).toEqual([{ ...data.decision, automation_status: 'automated' }])
})

test('members of the event are returned unchanged, with any characters in strings', () => {
  const url = 'https://a.example/",\n"network":{},\u2028\0'
  const event = sessionScored({
    install_id: 'a",\n"b,',
    native_app: {
      bundle_id: 'com.example.app',
      app_version: '1.2',
      app_build: null,
      install_time_epoch_ms: 1_760_000_000_000,
      provisioning_team: null,
    },
    request: { ...sessionScored().request, url },
  })
  const data = rendered(event)
  expect([data.install_id, data.native_app]).toEqual([event.install_id, event.native_app])
  expect(data.request).toEqual({
    url,
    referrer: event.request.referrer,
    user_agent: event.request.user_agent,
  })
  expect(data.device).toEqual(event.device)
  expect(data.network).toEqual({ ...event.network, evaluated_at: null })
})

test('members that the SDK of an app could not read are omitted', () => {
  const boot = { detected: true, su_on_path: false, verified_boot_state: null }
  const native_runtime_integrity = JSON.parse(JSON.stringify({ jailbreak_or_root: boot }))
  expect(rendered({ native_runtime_integrity }).native_runtime_integrity).toStrictEqual({
    jailbreak_or_root: { detected: true, su_on_path: false },
  })
})

test('a highlight without evidence omits the member', () => {
  const highlight = {
    key: 'k',
    effect: 'context',
    importance: 'low',
    summary: 's',
    evidence: null,
  } as const
  const data = rendered({ highlights: [highlight] })
  expect(data.highlights).toEqual([
    { key: 'k', effect: 'context', importance: 'low', summary: 's' },
  ])
  expect(data.native_runtime_integrity).toBeNull()
})

test('a session returns its evidence', () => {
  const evidence = {
    sources: ['snapshot'],
    unchecked: ['verified_bot_identity'],
    missing: [],
    withheld: [{ group: 'webgl', reason: 'blocked' }],
    impossible: [],
    claimed: [],
  }
  expect(rendered({ evidence }).evidence).toEqual(evidence)
})
