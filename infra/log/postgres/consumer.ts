import { setTimeout as delay } from 'node:timers/promises'
import { backoffMs, type ConsumeOptions, type LogConsumer } from '../port.ts'
import { createAssignedPartitions, createWakeUpSignal, type WakeUpSignal } from './assigned-partitions.ts'
import { type GroupSession, openGroupSession } from './group-session.ts'
import type { TopicInfo } from './tables.ts'

export interface PostgresConsumerDeps {
  url: string
  schema: string
  topics: TopicInfo[]
  /** Tells the other members of the group, in all processes, to assign the partitions anew. */
  announce: () => Promise<void>
}

export interface RunningConsumer extends LogConsumer {
  wake(): void
  rebalance(): void
}

/** Bounds the delay after a lost notification, and until the partitions of a killed member are noticed. */
const pollMs = 1000

/** Rejects if it cannot connect now. Later failures are retried. */
export async function startPostgresConsumer(
  deps: PostgresConsumerDeps,
  options: ConsumeOptions,
): Promise<RunningConsumer> {
  const signal = createWakeUpSignal()
  const control = { stopping: false, rebalance: true }
  let failures = 0
  const first = await connect(deps, options, signal)
  await deps.announce()
  const finished = run(first)

  async function run(initial: Connection): Promise<void> {
    let connection: Connection | undefined = initial
    while (connection) {
      await work(connection)
      connection = control.stopping ? undefined : await reconnect()
    }
  }

  async function work({ session, state }: Connection): Promise<void> {
    const round = createAssignedPartitions({ session, options, signal: signal, announce: deps.announce })
    try {
      let nextPoll = 0
      while (!control.stopping && !state.lost) {
        if (control.rebalance || performance.now() >= nextPoll) {
          control.rebalance = false
          nextPoll = performance.now() + pollMs
          await round.rebalance()
        }
        await round.readAndHandle()
        failures = 0
        await signal.wait(Math.min(pollMs, round.msToNextDeadline()))
      }
      await round.leave()
      await session.close()
    } catch (error) {
      options.onError?.(error)
      // Another member may own the partitions now; it must not be joined by us while a handler still runs.
      await round.handlersDone()
      await session.abandon().catch(() => {})
    }
    if (control.stopping) await deps.announce().catch(() => {})
  }

  async function reconnect(): Promise<Connection | undefined> {
    while (!control.stopping) {
      failures += 1
      await delay(backoffMs(failures))
      control.rebalance = true
      try {
        return await connect(deps, options, signal)
      } catch (error) {
        options.onError?.(error)
      }
    }
    return undefined
  }

  return {
    wake: signal.notify,
    rebalance() {
      control.rebalance = true
      signal.notify()
    },
    async stop() {
      control.stopping = true
      signal.notify()
      await finished
    },
  }
}

interface Connection {
  session: GroupSession
  state: { lost: boolean }
}

async function connect(
  deps: PostgresConsumerDeps,
  options: ConsumeOptions,
  signal: WakeUpSignal,
): Promise<Connection> {
  const state = { lost: false }
  const onLost = () => {
    state.lost = true
    signal.notify()
  }
  const { url, schema, topics } = deps
  return { session: await openGroupSession({ url, schema, topics, group: options.group, onLost }), state }
}
