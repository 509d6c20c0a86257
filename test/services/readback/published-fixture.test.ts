import { expect, test } from 'vitest'
import { z } from 'zod'
import type { SessionScored } from '../../../schemas/events.ts'
import interfaces from '../../fixtures/contract/openapi.json' with { type: 'json' }
import fixture from '../../fixtures/contract/session-detail.json' with { type: 'json' }
import { noAgent, visitorLink } from '../../support/session-scored.ts'
import { useReadback } from './support.ts'

/** Schema from which clients in five languages are generated. */
const detailSchema = () => {
  const text = JSON.stringify(interfaces.components.schemas)
  const $defs = JSON.parse(text.replaceAll('#/components/schemas/', '#/$defs/'))
  return z.fromJSONSchema({ $ref: '#/$defs/SessionDetailResponse', $defs })
}
const published = fixture.data
const ms = (time: string) => Date.parse(time)

const integrity: SessionScored['runtime_integrity'] = {
  tampering_detected: 'high_risk',
  developer_tools_detected: 'high_risk',
  emulation_suspected: 'clean',
  virtualization_suspected: 'high_risk',
  privacy_hardening_suspected: 'notice',
  identity_spoofing_suspected: 'clean',
  replay_suspected: 'clean',
  outdated_environment: 'clean',
  verified_bot_identity: 'notice',
}

const request = {
  ...published.request,
  ip_address: '203.0.113.9',
  screen_size: '1440x900',
  is_touch_capable: false,
}

/** Decision of the published example, as an event. */
const scored: Partial<SessionScored> = {
  evidence: {
    sources: ['snapshot'],
    unchecked: ['verified_bot_identity'],
    missing: [],
    withheld: [],
    impossible: [],
    claimed: [],
  },
  session_id: published.id,
  event_id: published.decision.event_id,
  created_at: ms(published.created_at),
  evaluated_at: ms(published.decision.evaluated_at),
  verdict: 'bot',
  risk_score: published.decision.risk_score,
  phase: 'behavioral',
  is_provisional: false,
  request,
  visitor: visitorLink({
    id: 'vid_456789abcdefghjkmnpqrstvwx',
    identified_at: ms(published.visitor_fingerprint.identified_at),
  }),
  highlights: [
    {
      key: 'browser_automation',
      effect: 'increases_risk',
      importance: 'high',
      summary: 'Browser automation markers were detected.',
      evidence: [{ signal: 'webdriver_detected', name: 'WebDriver detected' }],
    },
    {
      key: 'browser_profile_consistent',
      effect: 'reduces_risk',
      importance: 'medium',
      summary: 'Has no "evidence":[], "lifecycle":null or "previous_decisions":[] of its own.',
      evidence: null,
    },
  ],
  attribution: {
    labels: [{ kind: 'tool', value: 'playwright', label: 'Playwright', confidence: 89 }],
    behaviors: [
      { channel: 'typing', value: 'synthetic-typing', label: 'Synthetic Typing', confidence: 86 },
    ],
  },
  web_bot_auth: published.web_bot_auth,
  network: {
    ...published.network,
    ip_version: 'ipv4',
    status: 'ready',
    evaluated_at: ms(published.network.evaluated_at),
  },
  runtime_integrity: integrity,
  connection_fingerprint: { ...published.connection_fingerprint, user_agent_alignment: 'match' },
  browser: published.browser,
  device: published.device,
  analysis_coverage: { ...published.analysis_coverage, attestation: null },
  signals_fired: published.signals_fired.map((signal) => ({ ...signal, channel: 'a channel' })),
  client_telemetry: published.client_telemetry,
}

const earlier: Partial<SessionScored> = {
  ...scored,
  event_id: published.previous_decisions[0]?.event_id ?? '',
  verdict: 'inconclusive',
  risk_score: 41,
  phase: 'snapshot',
  is_provisional: true,
  evaluated_at: ms('2026-03-24T20:00:01.000Z'),
}

const readback = await useReadback()
await readback.score(earlier, scored)

test('the published example matches the published schema', () => {
  expect(detailSchema().safeParse(fixture).error).toBeUndefined()
})

test('the published example is what scoring the same session returns', async () => {
  const url = `/v1/sessions/${published.id}`
  await readback.send({
    url,
    method: 'PATCH',
    body: { client_user_id: published.client_user_id },
  })
  const { body } = await readback.send({ url })
  const [automation, consistent] = scored.highlights ?? []
  expect(body.data).toEqual({
    ...published,
    runtime_integrity: integrity,
    highlights: [automation, { ...consistent, evidence: undefined }],
    attribution: scored.attribution,
    visitor_fingerprint: {
      ...published.visitor_fingerprint,
      lifecycle: {
        first_seen_at: '2026-03-24T20:00:01.000Z',
        last_seen_at: '2026-03-24T20:00:05.000Z',
        seen_count: 1,
      },
    },
    behavior: null,
    mark: null,
    agent: noAgent,
    evidence: scored.evidence,
    scoring: { version: '1', model: 'tidegate-test' },
    repeats: null,
    analysis_coverage: scored.analysis_coverage,
  })
})
