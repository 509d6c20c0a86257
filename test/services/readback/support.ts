import { afterAll, expect } from 'vitest'
import type { SessionScored } from '../../../schemas/events.ts'
import { startApi } from '../../support/api.ts'
import type { Send } from '../../support/send.ts'
import { sessionScored } from '../../support/session-scored.ts'

export { id } from '../../projections/world-events.ts'

/** Returns the numbers at the end of the ids in a response. */
export const numbersIn = ({ body }: { body: { data: { id: string }[] } }) =>
  body.data.map((row) => Number(row.id.slice(-26)))

export function expectError({ body }: { body: unknown }, code: string, field?: string): void {
  const fields = expect.arrayContaining([expect.objectContaining({ name: field })])
  const details = field === undefined ? {} : { details: { fields } }
  expect(body).toMatchObject({ error: { code, ...details } })
}

/** Expects a validation error that names the first parameter of the query. */
export const expectRefused = (response: { body: unknown }, query: string) =>
  expectError(response, 'request.validation_failed', query.split('=')[0])

/** Starts a server for the test file, with one organization. Requests and decisions belong to it by default. */
export async function useReadback() {
  const api = await startApi({ roles: ['api'] })
  afterAll(() => api.stop())
  api.now.ms = Date.parse('2025-11-01T00:00:00Z')
  const { organizationId, key } = await api.organization()
  const { revealedKey: testKey } = await api.issue({
    organizationId,
    environment: 'test',
    scopes: ['*'],
  })

  return {
    ...api,
    organizationId,
    testKey,
    send: (request: Send) => api.send({ key, ...request }),
    /** Resolves once the decisions can be read. */
    async score(...decisions: Partial<SessionScored>[]): Promise<void> {
      const all = decisions.map((decision) =>
        sessionScored({ organization_id: organizationId, ...decision }),
      )
      const tenants = Map.groupBy(all, (data) => `${data.organization_id} ${data.environment}`)
      for (const ofTenant of tenants.values()) {
        const events = ofTenant.map((data) => ({ type: 'SessionScored', data }) as const)
        const [{ organization_id, environment } = sessionScored()] = ofTenant
        await api.write({ organizationId: organization_id, environment }, ...events)
      }
      await api.caughtUp()
    },
    /** Returns the number of events about sessions. */
    async eventCount(): Promise<number> {
      const ends = await api.log.endPositions('tidegate.sessions.v1')
      return ends.reduce((sum, { offset }) => sum + offset, 0)
    },
  }
}
