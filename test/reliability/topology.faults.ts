import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { allRoles } from '../../services/server/roles.ts'
import { rebuildable, rebuildIsEqual } from '../support/roles.ts'
import { queryAt } from '../support/server-databases.ts'
import { isAlive } from '../support/sweep.ts'
import { openWorld, type World } from './world.ts'

const seed = process.env.SEED ?? randomBytes(4).toString('hex')
const kills = Number(process.env.KILLS ?? 10)
const awayMs = 20_000

describe(`three brokers, Debian's PostgreSQL, seed ${seed}`, () => {
  let world: World
  beforeAll(async () => {
    world = await openWorld({ seed })
  })
  afterAll(() => world?.stop())

  it.each(allRoles)('%s is killed', async (role) => {
    await world.under(`role \`${role}\` killed`, async () => {
      for (let n = 0; n < kills; n++) await world.roles.kill(role)
      return kills
    })
  })

  it('a broker is killed', async () => {
    await world.under('each broker killed, leaders among them, and back after 5 s', async () => {
      for (const broker of world.kafka.brokers) {
        await broker.kill()
        await delay(5000)
        await broker.restart()
      }
      return world.kafka.brokers.length
    })
  })

  it('two of three brokers are down', async () => {
    await world.under('two of three brokers down for 20 s', async () => {
      const [, ...others] = world.kafka.brokers
      await Promise.all(others.map((broker) => broker.kill()))
      await delay(awayMs)
      await Promise.all(others.map((broker) => broker.restart()))
      return 1
    })
  })

  it('a broker stands still', async () => {
    await world.under('each broker cut off from all others for 20 s (stopped)', async () => {
      for (const { pid } of world.kafka.brokers) await paused([pid])
      return world.kafka.brokers.length
    })
  })

  it('Postgres is killed', async () => {
    await world.under('Postgres killed and started again', async () => {
      for (let n = 0; n < 4; n++) {
        process.kill(await world.postgres.pid(), 'SIGKILL')
        await delay(2000)
        await world.postgres.restart()
        await delay(3000)
      }
      return 4
    })
  })

  it('Postgres stands still', async () => {
    await world.under('Postgres stopped for 20 s, all of its processes', async () => {
      await paused(await postgresProcesses(world))
      return 1
    })
  })

  it('the network to Postgres is cut', async () => {
    await world.under('network between roles and Postgres cut for 20 s', async () => {
      world.postgresProxy.cut()
      await delay(awayMs)
      world.postgresProxy.mend()
      return 1
    })
  })

  it('the network to Kafka is cut', async () => {
    const { proxies } = world.kafka
    await world.under(
      'network between roles and each broker cut for 20 s, then to all of them',
      async () => {
        for (const cut of [...proxies.map((proxy) => [proxy]), proxies]) {
          for (const proxy of cut) proxy.cut()
          await delay(awayMs)
          for (const proxy of cut) proxy.mend()
          await delay(2000)
        }
        return proxies.length + 1
      },
    )
  })

  it.each(rebuildable)('a rebuild of %s is equal after all that', (name) =>
    rebuildIsEqual(world.settings, name),
  )
})

async function paused(pids: number[]): Promise<void> {
  for (const pid of pids) process.kill(pid, 'SIGSTOP')
  await delay(awayMs)
  for (const pid of pids) process.kill(pid, 'SIGCONT')
}

async function postgresProcesses({ postgres }: World): Promise<number[]> {
  const rows = await queryAt<{ pid: number }>(postgres.url, ['select pid from pg_stat_activity'])
  const own = await postgres.pid()
  return [own, ...rows.map(({ pid }) => pid)].filter((pid) => isAlive(pid))
}
