import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { createCodec } from '../../../infra/event-store/codec.ts'
import { createMemoryDataKeys } from '../../support/memory-data-keys.ts'
import { metaOf, sessionScored } from '../../support/session-scored.ts'
import { useReadback } from './support.ts'

const readback = await useReadback()

test('a session without its data key has its verdict, but no personal data', async () => {
  const data = sessionScored({ organization_id: readback.organizationId })
  const codec = createCodec(undefined, {
    sealing: { keys: createMemoryDataKeys(), random: randomBytes },
  })
  await codec.prepareKeys([{ type: 'SessionScored', data }])
  await readback.log.append([codec.toRecord({ type: 'SessionScored', data }, metaOf(data))])
  await readback.caughtUp()

  const { status, body } = await readback.send({ url: `/v1/sessions/${data.session_id}` })
  expect(status).toBe(200)
  expect(body.data).toMatchObject({
    decision: { event_id: data.event_id, risk_score: data.risk_score },
    request: { url: '', user_agent: '' },
    visitor_fingerprint: { id: data.visitor?.id },
  })
  for (const url of ['/v1/sessions', '/v1/fingerprints', `/v1/fingerprints/${data.visitor?.id}`])
    expect((await readback.send({ url })).status).toBe(200)
  expect(JSON.stringify(body)).not.toContain(data.request.ip_address)
})
