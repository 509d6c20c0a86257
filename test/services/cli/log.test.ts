import { expect, it, vi } from 'vitest'
import { createCodec } from '../../../infra/event-store/codec.ts'
import { skip } from '../../../services/cli/log.ts'
import { createMemoryLog } from '../../support/memory-log.ts'

it('a record that is not there yet is not skipped', async () => {
  const log = createMemoryLog()
  const place = { topic: 'tidegate.sessions.v1', partition: 0, offset: 0 }
  const skipping = skip({ log, codec: createCodec() }, { place, reason: 'x', by: 'Ada' })
  await expect(skipping).rejects.toThrow('No such record')
  expect(log.records).toEqual([])
})

it('a record that is as large as the log takes is skipped by a smaller one', async () => {
  const [log, codec] = [createMemoryLog(), createCodec()]
  const value = Buffer.alloc(1024 * 1024, 'not ours')
  const [place] = await log.append([
    { topic: 'tidegate.sessions.v1', key: 'x', value, headers: {} },
  ])
  if (!place) throw new Error('nothing appended')
  const printed = vi.spyOn(console, 'log').mockImplementation(() => {})
  await skip({ log, codec }, { place, reason: 'too large', by: 'Ada' })
  printed.mockRestore()
  const fact = log.records.at(-1)
  if (!fact) throw new Error('no fact')
  expect(fact.value.length).toBeLessThan(70 * 1024)
  const { data } = codec.fromRecord(fact)
  expect(data).toMatchObject({ skipped_offset: 0, record_value: value.subarray(0, 64 * 1024) })
})
