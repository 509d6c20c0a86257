import { describe, expect, it } from 'vitest'
import { ApiError } from '../../../../infra/errors/errors.ts'
import type {
  DeliveryRow,
  EndpointRow,
  WebhookEventRow,
} from '../../../../projections/webhooks/tables.ts'
import {
  decideRedelivery,
  type RedeliveryState,
} from '../../../../services/webhooks/deliveries/redeliver.ts'
import { organization } from '../../../support/organization-rows.ts'

const about = { organization_id: `org_${'1'.repeat(26)}`, environment: 'test' } as const
const eventId = `evt_${'2'.repeat(26)}`
const command = { requestId: `evt_${'9'.repeat(26)}`, now: 5000 }

const event: WebhookEventRow = {
  ...about,
  id: eventId,
  type: 'session.result.persisted',
  subject_type: 'session',
  subject_id: `sid_${'3'.repeat(26)}`,
  data: '{}',
  created_at: 1000,
}

function endpoint(digit: string, status: EndpointRow['status'] = 'active'): EndpointRow {
  return {
    ...about,
    id: `we_${digit.repeat(32)}`,
    name: 'Hooks',
    url: 'https://hooks.example.com/',
    event_types: ['session.result.persisted'],
    status,
    disabled_reason: status === 'active' ? null : 'failing',
    flagged_reason: null,
    secrets: [],
    created_at: 1,
    updated_at: 1,
    target_since: 1,
  }
}

function delivery(digit: string, status: DeliveryRow['status']): DeliveryRow {
  return {
    ...about,
    id: `wdlv_${digit.repeat(32)}`,
    event_id: eventId,
    endpoint_id: `we_${digit.repeat(32)}`,
    event_type: event.type,
    status,
    attempts: 10,
    attempts_in_round: 10,
    next_attempt_at: null,
    response_status: 500,
    response_body: null,
    error: null,
    created_at: 1000,
    updated_at: 2000,
  }
}

function given(changes: Partial<RedeliveryState> = {}): RedeliveryState {
  const [a, b, c] = [endpoint('a'), endpoint('b'), endpoint('c')]
  return {
    event,
    organization,
    deliveries: [delivery('a', 'succeeded'), delivery('b', 'failed'), delivery('c', 'skipped')],
    endpoints: new Map([a, b, c].map((row) => [row.id, row])),
    ...changes,
  }
}

function refusal(state: RedeliveryState, endpointId?: string): { code: string; message: string } {
  try {
    decideRedelivery(state, { ...command, endpointId })
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
  throw new Error('nothing was refused')
}

const idOf = (digit: string) => `we_${digit.repeat(32)}`

describe('redelivery', () => {
  it('given deliveries that failed and were skipped, then these are due again and no other', () => {
    const decisions = decideRedelivery(given(), command)
    expect(decisions.map((decision) => decision.event)).toEqual(
      ['b', 'c'].map((digit) => ({
        type: 'WebhookRedeliveryRequested',
        data: {
          ...about,
          event_id: eventId,
          delivery_id: `wdlv_${digit.repeat(32)}`,
          endpoint_id: idOf(digit),
          requested_at: 5000,
        },
      })),
    )
    const metas = decisions.map((decision) => decision.meta)
    expect(new Set(metas.map((meta) => meta.eventId)).size).toBe(2)
    expect(metas[0]).toMatchObject({
      time: 5000,
      organizationId: about.organization_id,
      environment: 'test',
    })
  })

  it('has another id each time it is asked for, and the same when one request is repeated', () => {
    const ids = (requestId: string) =>
      decideRedelivery(given(), { ...command, requestId }).map((decision) => decision.meta.eventId)
    expect(ids(command.requestId)).toEqual(ids(command.requestId))
    expect(ids(`evt_${'8'.repeat(26)}`)).not.toEqual(ids(command.requestId))
  })

  it('given a named endpoint, then its delivery is made again even though it had succeeded', () => {
    const decisions = decideRedelivery(given(), { ...command, endpointId: idOf('a') })
    expect(decisions.map(({ event: { data } }) => data)).toMatchObject([{ endpoint_id: idOf('a') }])
  })

  it('is 404 for an event that there is not, and for an endpoint that it was not for', () => {
    expect(refusal(given({ event: undefined })).code).toBe('request.not_found')
    expect(refusal(given(), idOf('d')).code).toBe('request.not_found')
  })

  it('is 409 while the delivery is being made', () => {
    const deliveries = [delivery('a', 'pending')]
    for (const id of [undefined, idOf('a')])
      expect(refusal(given({ deliveries }), id)).toMatchObject({
        code: 'request.conflict',
        message: expect.stringContaining('still being delivered'),
      })
  })

  it('leaves what is pending alone where another endpoint failed', () => {
    const deliveries = [delivery('a', 'pending'), delivery('b', 'failed')]
    expect(decideRedelivery(given({ deliveries }), command)).toHaveLength(1)
  })

  it('is 409 when nothing is left to deliver', () => {
    for (const deliveries of [[], [delivery('a', 'succeeded')]])
      expect(refusal(given({ deliveries })).code).toBe('request.conflict')
  })

  it('is 409, and nothing is decided, when an endpoint is not active or unknown', () => {
    const disabled = [endpoint('b'), endpoint('c', 'disabled')]
    for (const rows of [disabled, [endpoint('b')]]) {
      const endpoints = new Map(rows.map((row) => [row.id, row]))
      expect(refusal(given({ endpoints }))).toMatchObject({
        code: 'request.conflict',
        message: expect.stringContaining(idOf('c')),
      })
    }
  })

  it('is 409 for an organization that is not active', () => {
    for (const status of ['suspended', 'deleted'] as const)
      expect(refusal(given({ organization: { ...organization, status } })).code).toBe(
        'request.conflict',
      )
  })

  it('is 409 for an approval, whose answer nobody waits for any more', () => {
    const approval = { ...event, type: 'gate.session.approved' } as const
    expect(refusal(given({ event: approval })).code).toBe('request.conflict')
  })
})
