import { expect, it, vi } from 'vitest'
import { createCodec } from '../../../infra/event-store/codec.ts'
import { skipRecord } from '../../../services/cli/log.ts'
import { createMemoryLog } from '../../support/memory-log.ts'

it('a record that does not exist yet cannot be skipped', async () => {
  const log = createMemoryLog()
  const position = { topic: 'tidegate.sessions.v1', partition: 0, offset: 0 }
  const skipping = skipRecord({ log, codec: createCodec() }, { position, reason: 'x', by: 'Ada' })
  await expect(skipping).rejects.toThrow('No such record')
  expect(log.records).toEqual([])
})

it('the event that skips a maximum-size record stores only its start', async () => {
  const [log, codec] = [createMemoryLog(), createCodec()]
  const value = Buffer.alloc(1024 * 1024, 'not ours')
  const [position] = await log.append([
    { topic: 'tidegate.sessions.v1', key: 'x', value, headers: {} },
  ])
  if (!position) throw new Error('nothing appended')
  const printed = vi.spyOn(console, 'log').mockImplementation(() => {})
  await skipRecord({ log, codec }, { position, reason: 'too large', by: 'Ada' })
  printed.mockRestore()
  const event = log.records.at(-1)
  if (!event) throw new Error('no event')
  expect(event.value.length).toBeLessThan(70 * 1024)
  const { data } = codec.fromRecord(event)
  expect(data).toMatchObject({ skipped_offset: 0, record_value: value.subarray(0, 64 * 1024) })
})
