import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { unavailable } from '../../../infra/errors/errors.ts'
import { createCodec } from '../../../infra/event-store/codec.ts'
import { createMemoryDataKeys, type MemoryDataKeys } from '../../support/memory-data-keys.ts'
import { type CollectApp, clientOf, quiet, startCollectApp } from './collect-app.ts'

let app: CollectApp
let dataKeys: MemoryDataKeys
beforeEach(async () => {
  dataKeys = createMemoryDataKeys()
  const codec = createCodec(undefined, { sealing: { keys: dataKeys, random: randomBytes } })
  app = await startCollectApp({ dataKeys, codec })
})
afterEach(() => app.close())

test('an erased session has ended: no more of it is recorded, and the browser gets a new one', async () => {
  const key = app.publishable()
  const client = clientOf(app, key)
  const { sessionId, resumeToken } = await client.open()
  await client.sendBatch(quiet)
  dataKeys.erase(sessionId)
  const recorded = app.log.records.length
  const expectedError = {
    status: 410,
    code: 'session.invalid_or_expired',
    nextAction: 'new_session',
  }
  await expect(client.sendBatch(quiet)).rejects.toMatchObject(expectedError)
  await expect(client.requestResult(quiet)).rejects.toMatchObject(expectedError)
  expect(app.log.records.length).toBe(recorded)
  const next = await clientOf(app, key, { resumeToken }).open()
  expect(next.resumed).toBe(false)
  expect(next.sessionId).not.toBe(sessionId)
})

test('no session is opened while its key cannot be stored', async () => {
  await app.close()
  const newSession = () => Promise.reject(unavailable(new Error('the database is away')))
  app = await startCollectApp({ dataKeys: { ...dataKeys, newSession } })
  const opening = clientOf(app, app.publishable(), { retry: { attempts: 1 } }).open()
  await expect(opening).rejects.toMatchObject({ status: 503, retryable: true })
  expect(app.log.records).toEqual([])
})

test('addresses, page URLs and observations are not readable on the log', async () => {
  const page = { url: 'https://shop.example/my-own-page' }
  const client = clientOf(app, app.publishable(), { page })
  await client.open()
  await client.sendBatch({ ...quiet, binding: 'my-own-binding' })
  const bytes = Buffer.concat(app.log.records.map(({ value }) => value))
  for (const text of ['127.0.0.1', 'my-own-page', 'my-own-binding'])
    expect(bytes.includes(text)).toBe(false)
})
