import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmod, mkdtemp, open, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, it } from 'vitest'
import type { KafkaBroker } from '../support/kafka-broker.ts'
import { needs } from '../support/needs.ts'
import { rebuildable, rebuildIsEqual } from '../support/roles.ts'
import { isAlive } from '../support/sweep.ts'
import { openWorld, type World } from './world.ts'

const seed = process.env.SEED ?? randomBytes(4).toString('hex')
const fullMs = 20_000
const preload = '/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1'

needs('full-disks').describe(`small disks, seed ${seed}`, () => {
  let world: World
  let disks: Record<'postgres' | 'kafka', string>

  beforeAll(async () => {
    disks = { postgres: await mountDisk('600m'), kafka: await mountDisk('900m') }
    world = await openWorld({ seed, places: disks })
  })
  afterAll(async () => {
    await world?.stop()
    for (const folder of Object.values(disks ?? {})) {
      execFileSync('umount', [folder])
      await rm(folder, { recursive: true })
    }
  })

  it("Postgres's disk is full", async () => {
    await world.under(
      'disk of Postgres full for 20 s; started again where it gave up',
      async () => {
        await filled(disks.postgres)
        if (!isAlive(await world.postgres.pid().catch(() => 0))) await world.postgres.restart()
        return 1
      },
    )
  })

  it("Kafka's disk is full", async () => {
    await world.under(
      'disk of all brokers full for 20 s; started again where they gave up',
      async () => {
        await filled(disks.kafka)
        await Promise.all(
          world.kafka.brokers.map((broker) =>
            isAlive(broker.pid) ? undefined : restarted(broker),
          ),
        )
        return 1
      },
    )
  })

  it.each(rebuildable)('a rebuild of %s is equal', (name) => rebuildIsEqual(world.settings, name))
})

needs('faketime').describe(`clocks that jump, seed ${seed}`, () => {
  let world: World
  let folder: string
  const setClock = (offset: string) => writeFile(path.join(folder, 'clock'), `${offset}\n`)

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'tidegate-clock-'))
    await setClock('+0')
    const env = {
      LD_PRELOAD: preload,
      FAKETIME_TIMESTAMP_FILE: path.join(folder, 'clock'),
      FAKETIME_CACHE_DURATION: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    }
    world = await openWorld({ seed, env })
  })
  afterAll(async () => {
    await world?.stop()
    await rm(folder, { recursive: true, force: true })
  })

  it.each([
    ['forward', '+2h'],
    ['back', '-2h'],
  ])('the clock of every role jumps 2 hours %s', async (way, offset) => {
    await world.under(`clock of every role 2 hours ${way} for 20 s, and right again`, async () => {
      await delay(3000)
      await setClock(offset)
      await delay(fullMs)
      await setClock('+0')
      return 2
    })
  })

  it.each(rebuildable)('a rebuild of %s is equal', (name) => rebuildIsEqual(world.settings, name))
})

// A broker may fail to start with the state it wrote while the disk was full, so an operator tries again.
async function restarted(broker: KafkaBroker): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await broker.restart()
    } catch (error) {
      if (tries === 3) throw error
      await delay(2000)
    }
  }
}

async function mountDisk(size: string): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'tidegate-disk-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', folder])
  await chmod(folder, 0o777)
  return folder
}

/** Fills the disk to its last byte for a while. */
async function filled(folder: string): Promise<void> {
  const name = path.join(folder, 'filler')
  const file = await open(name, 'w')
  try {
    const end = Date.now() + fullMs
    while (Date.now() < end) await fill(file)
  } finally {
    await file.close()
    await rm(name)
  }
}

async function fill(file: Awaited<ReturnType<typeof open>>): Promise<void> {
  // The last bytes, too: what is freed meanwhile is taken again.
  for (const size of [1024 * 1024, 4096, 1]) {
    try {
      for (;;) await file.appendFile(Buffer.alloc(size))
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error
    }
  }
  await delay(100)
}
