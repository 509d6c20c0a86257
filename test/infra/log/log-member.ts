// A member of a consumer group in a separate process, for tests that kill it. Prints each record's value.
import { pino } from 'pino'
import { openPostgresLog } from '../../../infra/log/postgres/log.ts'
import { createPool } from '../../../infra/postgres/pool.ts'
import { eachBatch } from '../../support/each-batch.ts'

const [url = '', group = '', topic = ''] = process.argv.slice(2)
const log = await openPostgresLog({
  pool: createPool({ url }),
  url,
  logger: pino({ level: 'silent' }),
})
await log.consume({
  group,
  topics: [topic],
  handle: eachBatch(({ partition, records }) => {
    for (const { value } of records) console.log(`${partition} ${value}`)
  }),
})
console.log('ready')
