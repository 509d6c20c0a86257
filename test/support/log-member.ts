// A consumer group's member in a process of its own, for tests that kill it: prints each record's value.
import { pino } from 'pino'
import { openPostgresLog } from '../../infra/log/postgres/log.ts'
import { createPool } from '../../infra/postgres/pool.ts'

const [url = '', group = '', topic = ''] = process.argv.slice(2)
const log = await openPostgresLog({ pool: createPool({ url }), url, logger: pino({ level: 'silent' }) })
await log.consume({
  group,
  topics: [topic],
  async handleBatch({ partition, records }) {
    for (const { value } of records) console.log(`${partition} ${value}`)
    return undefined
  },
})
console.log('ready')
