import { expect } from 'vitest'
import { answersOf } from '../../../bench/recorded-answers.ts'
import { createCollectClient } from '../../../infra/wire/collect/client.ts'
import { headersOf } from '../../../services/cli/simulate/generate/headers.ts'
import { planSession } from '../../../services/cli/simulate/generate/plan.ts'
import type { Owner } from '../../support/cluster.ts'
import { eventually } from '../../support/eventually.ts'

/** A document that has posted nothing; `send` posts its first batch. */
export async function openDocument(baseUrl: string, { publishable }: Owner, seed: string) {
  const plan = planSession(seed, 0, {
    clients: { web: 1, ios: 0, android: 0 },
    bots: 0,
    returning: 0,
  })
  const headers = headersOf(plan)
  const client = createCollectClient({
    endpoint: baseUrl,
    publishableKey: publishable.key,
    fetch: (url, request) =>
      fetch(url, { ...request, headers: { ...request.headers, ...headers } }),
    sdk: plan.sdk,
    ...(plan.page && { page: plan.page }),
  })
  const opened = await client.open()
  const [first] = plan.batches
  if (!first?.snapshot) throw new Error('a plan begins with a snapshot')
  const proofs = answersOf(first.snapshot.navigator.user_agent ?? '', opened)
  const batch = { ...first, snapshot: { ...first.snapshot, proofs } }
  return { sessionId: opened.sessionId, send: () => client.sendBatch(batch) }
}

/** Waits until the query's first column is the text. */
export function shows(
  query: (text: string, values: string[]) => Promise<{ rows: Record<string, unknown>[] }>,
) {
  return async (text: string, values: string[], expected: string) =>
    void (await eventually(async () => {
      const { rows } = await query(text, values)
      expect(String(Object.values(rows[0] ?? {})[0])).toBe(expected)
    }))
}
