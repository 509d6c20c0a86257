import { expect } from 'vitest'
import { z } from 'zod'
import { list, single } from '../../../infra/http/schemas.ts'
import {
  visitorDetailSchema,
  visitorSummarySchema,
} from '../../../services/readback/schemas/fingerprints.ts'
import {
  sessionDetailSchema,
  sessionSummarySchema,
} from '../../../services/readback/schemas/sessions.ts'
import published from '../../fixtures/contract/openapi.json' with { type: 'json' }

/** A schema of the published interface that clients in five languages are generated from. */
export function publishedSchema(name: keyof typeof published.components.schemas): z.ZodType {
  const text = JSON.stringify(published.components.schemas)
  const $defs = JSON.parse(text.replaceAll('#/components/schemas/', '#/$defs/'))
  return z.fromJSONSchema({ $ref: `#/$defs/${name}`, $defs })
}

const ours = {
  SessionListResponse: list(sessionSummarySchema),
  SessionDetailResponse: single(sessionDetailSchema),
  VisitorFingerprintListResponse: list(visitorSummarySchema),
  VisitorFingerprintDetailResponse: single(visitorDetailSchema),
}
const theirs = {
  SessionListResponse: publishedSchema('SessionListResponse'),
  SessionDetailResponse: publishedSchema('SessionDetailResponse'),
  VisitorFingerprintListResponse: publishedSchema('VisitorFingerprintListResponse'),
  VisitorFingerprintDetailResponse: publishedSchema('VisitorFingerprintDetailResponse'),
}
const publishedError = publishedSchema('ApiErrorEnvelope')

/** Where our description adds to the published one on purpose: what is left then. */
const known: Partial<Record<keyof typeof theirs, (body: unknown) => unknown>> = {
  SessionDetailResponse: withPublishedNames,
  SessionListResponse: withoutAdded,
}

/** Checks a response against our own description and the published one. */
export function expectShape(name: keyof typeof ours, body: unknown): void {
  expect(ours[name].safeParse(body).error).toBeUndefined()
  expect(theirs[name].safeParse(known[name]?.(body) ?? body).error).toBeUndefined()
}

/** Checks the envelope; its request id is the header's. */
export function expectError(
  response: { status: number; headers: object; body: unknown },
  code: string,
) {
  expect(publishedError.safeParse(response.body).error).toBeUndefined()
  expect(response.body).toMatchObject({ error: { code, status: response.status } })
  expect(response.headers).toMatchObject({
    'x-request-id': expect.stringMatching(/^req_[0-9a-f]{32}$/),
  })
}

const integrityNames = {
  tampering_detected: 'tampering',
  developer_tools_detected: 'developer_tools',
  emulation_suspected: 'emulation',
  virtualization_suspected: 'virtualization',
  privacy_hardening_suspected: 'privacy_hardening',
  identity_spoofing_suspected: 'identity_spoofing',
  replay_suspected: 'replay',
  outdated_environment: 'outdated_environment',
} as const

const detail = z.looseObject({
  data: z.looseObject({
    runtime_integrity: z.record(z.string(), z.string()),
    behavior: z.unknown(),
    evidence: z.unknown(),
    identification: z.unknown().optional(),
    repeats: z.unknown().optional(),
    mark: z.unknown(),
    agent: z.unknown(),
    scoring: z.strictObject({ version: z.string(), model: z.string().nullable() }),
    analysis_coverage: z.looseObject({ attestation: z.unknown() }),
  }),
})

const sessionList = z.looseObject({
  data: z.array(z.looseObject({ mark: z.unknown(), facts: z.unknown() })),
})

function withoutAdded(body: unknown): unknown {
  const { data, ...rest } = sessionList.parse(body)
  return { ...rest, data: data.map(({ mark: _, facts: __, ...published }) => published) }
}

/** Added are nine integrity names, `behavior`, `identification`, `mark` and what follows. */
function withPublishedNames(body: unknown): unknown {
  const { data, ...rest } = detail.parse(body)
  const { behavior, evidence: _, repeats: __, identification: ___, ...more } = data
  const { mark: _____, scoring: ______, agent: _______, ...published } = more
  const { analysis_coverage, runtime_integrity, ...others } = published
  const { attestation: ____, ...coverage } = analysis_coverage
  expect(behavior).toBeNull()
  expect(Object.keys(runtime_integrity)).toEqual([
    ...Object.keys(integrityNames),
    'verified_bot_identity',
  ])
  const renamed = Object.entries(integrityNames).map(([name, old]) => [
    old,
    runtime_integrity[name],
  ])
  return {
    ...rest,
    data: {
      ...others,
      analysis_coverage: coverage,
      runtime_integrity: Object.fromEntries(renamed),
    },
  }
}
