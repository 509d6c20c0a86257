import { pino } from 'pino'
import type { EventLog } from '../../infra/log/port.ts'
import { openPostgresLog } from '../../infra/log/postgres/log.ts'
import { createTestDatabase, type TestDatabase } from './postgres.ts'

export interface TestLog {
  name: 'postgres' | 'kafka'
  /** Opens the log anew, as another process would: what was appended before is still there. */
  open(): Promise<EventLog>
  /** Closes all logs opened and removes what they stored. */
  cleanup(): Promise<void>
}

const logger = pino({ level: 'silent' })

/** The adapters to test, each with storage of its own. */
export function openTestLogs(): TestLog[] {
  return [postgresTestLog()]
}

function postgresTestLog(): TestLog {
  const opened: EventLog[] = []
  let database: Promise<TestDatabase> | undefined
  return {
    name: 'postgres',
    async open() {
      database ??= createTestDatabase()
      const { pool, url } = await database
      const log = await openPostgresLog({ pool, url, logger })
      opened.push(log)
      return log
    },
    async cleanup() {
      await Promise.all(opened.splice(0).map((log) => log.close()))
      await (await database)?.drop()
      database = undefined
    },
  }
}
