import { randomBytes } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { sealSecretHash, secretHashOf } from '../../../infra/crypto/api-keys.ts'
import { createKeyring } from '../../../infra/crypto/keyring.ts'
import { asId } from '../../../infra/ids.ts'
import { openToken, sealToken } from '../../../infra/wire/sealed-token.ts'
import type { FullDecisionRow } from '../../../projections/sessions/tables.ts'
import {
  createRecipientCache,
  createResultSealer,
  type ResultSealer,
  tokenPayload,
} from '../../../services/collect/hand-off.ts'
import golden from '../../fixtures/sealed-token/vector.v2.json' with { type: 'json' }
import { noAgent } from '../../support/session-scored.ts'

const secretHash = 'a'.repeat(64)
const tenant = { organizationId: 'org_1', environment: 'live' } as const

function decision(changes: Partial<FullDecisionRow> = {}): FullDecisionRow {
  return {
    event_id: 'evt_1',
    session_id: 'sid_1',
    organization_id: 'org_1',
    environment: 'live',
    verdict: 'human',
    risk_score: 7,
    phase: 'behavioral',
    is_provisional: false,
    manipulation: { score: 0, verdict: 'none' },
    evaluation_duration_ms: 123,
    evaluated_at: Date.parse('2026-03-24T20:00:00.000Z'),
    request: {
      url: 'https://example.com/signup',
      referrer: 'https://search.example/',
      user_agent: 'Mozilla/5.0',
      ip_address: '203.0.113.9',
      screen_size: '1440x900',
      is_touch_capable: false,
    },
    hand_off: null,
    platform: 'Windows',
    visitor: {
      id: 'vid_0123456789abcdefghjkmnpqrs',
      confidence: 94,
      identified_at: Date.parse('2026-03-24T19:59:59.000Z'),
      method: 'new',
      basis: null,
    },
    signals_fired: [
      {
        signal: 'E6',
        role: 'risk',
        category: 'environment',
        strength: 'strong',
        channel: 'e',
        signal_score: 20,
      },
    ],
    score_breakdown: { behavioral: 9, environment: 20 },
    attribution: null,
    agent: noAgent,
    ...changes,
  }
}

let resultSealer: ResultSealer | undefined
afterEach(() => resultSealer?.close())

/** A sealer on an in-memory read model; `advance` notifies it of decisions. */
function start({ recipients = [secretHash], timeoutMs = 5000, pollMs = 60_000 } = {}) {
  const readable = new Map<string, FullDecisionRow>()
  const queriedIds: string[][] = []
  let advance = (_decisionIds: readonly string[] | undefined) => {}
  const created = createResultSealer({
    findDecisions: async (ids) => {
      queriedIds.push(ids)
      return ids.flatMap((id) => readable.get(id) ?? [])
    },
    onDecided: (listener) => {
      advance = listener
      return () => {}
    },
    recipientHashes: async () => recipients,
    seal: (options) => sealToken({ ...options, random: randomBytes }),
    timeoutMs,
    pollMs,
  })
  resultSealer = created
  return {
    readable,
    queriedIds,
    seal: () => created.sealResult({ ...tenant, decisionId: 'evt_1', sessionId: 'sid_1' }),
    check: () => created.requireRecipients(tenant),
    advance: (decisionIds?: string[]) => advance(decisionIds),
  }
}

function sealedFor(recipients: string[]) {
  const { readable, seal, advance } = start({ recipients })
  readable.set('evt_1', decision())
  const token = seal()
  advance()
  return token
}

describe('the sealed token', () => {
  test('matches the golden token', () => {
    const { session_id, decision: golded } = golden.payload
    const row = decision({ session_id, event_id: golded.event_id })
    expect(tokenPayload(row)).toEqual({ ...golden.payload, agent: noAgent })
  })

  test('has the attribution of a bot, and none for a human', () => {
    const attribution = {
      labels: [{ kind: 'tool' as const, value: 'headless', label: 'Headless', confidence: 90 }],
      behaviors: [],
    }
    expect(tokenPayload(decision({ verdict: 'bot', attribution })).attribution).toEqual({
      bot: attribution,
    })
    expect(tokenPayload(decision({ attribution })).attribution).toEqual({ bot: null })
  })

  test('has risk signals only', () => {
    const common = { category: 'behavioral', strength: 'weak', channel: 'a', signal_score: 3 }
    const signals_fired = ['risk', 'trust', 'context'].map((role) => ({
      signal: `a_${role}`,
      role,
      ...common,
    }))
    expect(tokenPayload(decision({ signals_fired })).signals).toEqual([
      { id: 'a_risk', category: 'behavioral', confidence: 'weak', score: 3 },
    ])
  })

  test('has null without a visitor', () => {
    expect(tokenPayload(decision({ visitor: null })).visitor_fingerprint).toBeNull()
  })

  test('can be opened with every live secret key of the organization', async () => {
    const hashes = ['a'.repeat(64), 'b'.repeat(64)]
    const token = await sealedFor(hashes)
    for (const hash of hashes)
      expect(openToken(token, { secretHash: hash })).toEqual(tokenPayload(decision()))
  })

  test('has at most 256 recipients', async () => {
    const token = await sealedFor(Array.from({ length: 300 }, () => secretHash))
    expect(Buffer.from(token, 'base64').readUInt16BE(1)).toBe(256)
  })

  test('gets 409 without a secret key', async () => {
    const conflict = { code: 'request.conflict' }
    await expect(sealedFor([])).rejects.toMatchObject(conflict)
    await expect(start({ recipients: [] }).check()).rejects.toMatchObject(conflict)
    await expect(start().check()).resolves.toBeUndefined()
  })
})

describe('waiting for a decision', () => {
  test('does not query for other decisions, and resolves with the awaited one', async () => {
    const { readable, seal, advance, queriedIds } = start()
    readable.set('evt_1', decision())
    const token = seal()
    advance(['evt_2', 'evt_3'])
    expect(queriedIds).toEqual([])
    advance(['evt_1'])
    expect(await token).toEqual(expect.any(String))
    expect(queriedIds).toEqual([['evt_1']])
  })

  test('finds a decision whose notification was lost', async () => {
    const { readable, seal, queriedIds } = start({ pollMs: 5 })
    const token = seal()
    await expect.poll(() => queriedIds.length).toBeGreaterThan(0)
    readable.set('evt_1', decision())
    expect(await token).toEqual(expect.any(String))
  })

  test('rejects with 503 on timeout, and stops querying', async () => {
    const { seal, advance, queriedIds } = start({ timeoutMs: 20 })
    await expect(seal()).rejects.toMatchObject({
      code: 'service.unavailable',
      headers: { 'retry-after': '1' },
    })
    const before = queriedIds.length
    advance()
    expect(queriedIds.length).toBe(before)
  })
})

describe('the recipients of an organization', () => {
  function open() {
    const keyring = createKeyring(randomBytes(32).toString('base64'))
    const keyId = asId('key', `key_${'0'.repeat(26)}`)
    const now = { ms: 0 }
    const keys = { all: [] as string[], reads: 0 }
    const recipients = createRecipientCache({
      async findKeys() {
        keys.reads++
        return keys.all.map((key) => ({
          keyId,
          secretHashSealed: sealSecretHash({ keyring, key, keyId, random: randomBytes }),
        }))
      },
      keyring,
      clock: () => now.ms,
    })
    return { keys, now, ...recipients }
  }

  test('are cached until their keys change', async () => {
    const { keys, secretHashesOf, forget } = open()
    expect(await secretHashesOf(tenant)).toEqual([])
    keys.all = ['sk_live_a']
    forget(['org_2'])
    expect(await secretHashesOf(tenant)).toEqual([])
    expect(keys.reads).toBe(1)
    forget(['org_2', 'org_1'])
    expect(await secretHashesOf(tenant)).toEqual([secretHashOf('sk_live_a')])
    keys.all = []
    forget(undefined)
    expect(await secretHashesOf(tenant)).toEqual([])
  })

  test('are read again after 5 seconds without a notification', async () => {
    const { keys, now, secretHashesOf } = open()
    await secretHashesOf(tenant)
    keys.all = ['sk_live_a']
    now.ms = 4999
    expect(await secretHashesOf(tenant)).toEqual([])
    now.ms = 5000
    expect(await secretHashesOf(tenant)).toEqual([secretHashOf('sk_live_a')])
  })
})
