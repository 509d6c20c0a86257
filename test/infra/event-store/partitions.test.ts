import { expect, test } from 'vitest'
import {
  consumeWithReplay,
  createPartitions,
  type PartitionStatus,
} from '../../../infra/event-store/partitions.ts'
import type { Position } from '../../../infra/log/port.ts'
import { eventually } from '../../support/eventually.ts'
import { silent } from '../../support/projections.ts'

const topic = 't'
const at = (partition: number, offset: number): Position => ({ topic, partition, offset })

/** What is stored and believed, changed by hand, and a consumer that does what the log port promises of one. */
async function open({ owned = [0] }: { owned?: number[] } = {}) {
  const partitions = createPartitions({ who: 'test', logger: silent })
  const world = {
    partitions,
    stored: [at(0, 10), at(1, 10)] as Position[] | undefined,
    starts: 0,
    stops: 0,
    running: 0,
    looks: 0,
    starting: Promise.resolve(),
    failure: undefined as Error | undefined,
    errors: [] as unknown[],
    lost: [] as PartitionStatus[],
    /** Resolves after a look that began after the call has ended. */
    async looked() {
      const until = world.looks + 2
      await eventually(() => expect(world.looks).toBeGreaterThanOrEqual(until))
    },
    stop: async () => {},
  }
  for (const position of world.stored ?? []) partitions.of(position).nextOffset = position.offset
  const consumer = await consumeWithReplay({
    partitions,
    lookMs: 5,
    readStored: async () => {
      world.looks += 1
      return world.stored
    },
    consume: async () => {
      world.starts += 1
      await world.starting
      if (world.failure) throw world.failure
      world.running += 1
      for (const { partition, offset } of world.stored ?? []) {
        if (owned.includes(partition)) partitions.of(at(partition, 0)).nextOffset = offset
      }
      return {
        async stop() {
          world.running -= 1
          world.stops += 1
        },
      }
    },
    onError: (error) => world.errors.push(error),
    onRewind: (lost) => world.lost.push(...lost),
  })
  world.stop = () => consumer.stop()
  return world
}

test('nothing is read again while what is stored is what is believed or more, or cannot be compared', async () => {
  const world = await open()
  await world.looked()
  world.stored = [at(0, 10), at(1, 25)]
  await world.looked()
  world.stored = undefined
  await world.looked()
  world.stored = [at(0, 10), at(1, 25), at(2, 5)]
  await world.looked()
  await world.stop()
  expect(world).toMatchObject({ starts: 1, running: 0, lost: [], errors: [] })
})

test.each([
  ['is behind', [at(0, 10), at(1, 7)], 7],
  ['is not there', [at(0, 10)], 0],
])('a partition whose stored offset %s is read again, once, whoever has it now', async (_, stored, next) => {
  const world = await open({ owned: [0] })
  world.stored = stored
  await eventually(() => expect(world).toMatchObject({ starts: 2, running: 1 }))
  await world.looked()
  expect(world.lost).toEqual([{ topic, partition: 1, nextOffset: 10, halted: null }])
  expect(world.partitions.all().map(({ nextOffset }) => nextOffset)).toEqual([10, next])
  await world.stop()
  expect(world).toMatchObject({ starts: 2, running: 0 })
})

test('a consumer that cannot be started again is started by a later look', async () => {
  const world = await open()
  world.failure = new Error('the log is down')
  world.stored = [at(0, 3), at(1, 10)]
  await eventually(() => expect(world.errors.length).toBeGreaterThan(1))
  expect(world).toMatchObject({ running: 0 })
  world.failure = undefined
  await eventually(() => expect(world).toMatchObject({ running: 1 }))
  await world.stop()
  expect(world).toMatchObject({ running: 0 })
  expect(world.lost).toHaveLength(1)
})

test('no consumer is left when it is stopped while it starts again', async () => {
  const world = await open()
  const { promise, resolve } = Promise.withResolvers<void>()
  world.starting = promise
  world.stored = [at(0, 3), at(1, 10)]
  await eventually(() => expect(world).toMatchObject({ starts: 2, running: 0 }))
  const stopped = world.stop()
  resolve()
  await stopped
  expect(world).toMatchObject({ starts: 2, running: 0, stops: 2 })
})
