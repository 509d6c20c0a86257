import { expect, test } from 'vitest'
import { createKeyring } from '../../../infra/crypto/keyring.ts'
import { acceptBody } from '../../../services/collect/accept.ts'
import type { Claim } from '../../../services/collect/claims.ts'
import { createDocumentCache, createDocumentState } from '../../../services/collect/documents.ts'
import { openDocumentId } from '../../../services/collect/sealed-ids.ts'
import vectors from '../../fixtures/collect-protocol/vectors.json' with { type: 'json' }

/** The document of the vectors, as a node knows it before its first body. */
function knownDocument() {
  const { masterKey, documentId, sessionId, clientPublicKey } = vectors
  const tenant = { organizationId: 'org_01j00000000000000000000000', environment: 'test' } as const
  const scope = { ...tenant, sessionId, clientPublicKey }
  const opened = openDocumentId(documentId, scope, createKeyring(masterKey))
  if (!opened) throw new Error('the vectors are of another key')
  return createDocumentState({ documentId, scope, ...opened }, createDocumentCache(10))
}

test('of a body whose answer failed a node remembers what a repeat needs, and neither request nor payload', async () => {
  const state = knownDocument()
  const [body] = vectors.bodies
  const incoming = {
    kind: 'batches',
    body: Buffer.from(body?.body ?? '', 'hex'),
    headerSeq: 1,
  } as const
  const claim = async (mine: Claim) => mine
  const store = claim
  const late = { now: 5, claim, store, answer: () => Promise.reject(new Error('late')) }
  await expect(acceptBody(state, incoming, late)).rejects.toThrow('late')
  expect(state.last).toEqual({
    kind: 'batches',
    seq: 1,
    noBatchYet: true,
    bodyHash: expect.stringMatching(/^[0-9a-f]{64}$/),
    receivedAt: 5,
    answer: undefined,
  })
  const again = {
    now: 9,
    claim,
    store,
    answer: ({ receivedAt }: { receivedAt: number }) => `taken at ${receivedAt}`,
  }
  expect(await acceptBody(state, incoming, again)).toBe('taken at 5')
})
