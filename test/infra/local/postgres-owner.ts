// Starts an embedded Postgres in a process of its own, for a test that kills it.
import { pino } from 'pino'
import { startEmbeddedPostgres } from '../../../infra/local/embedded-postgres.ts'

const { url } = await startEmbeddedPostgres({
  dataDir: process.argv[2] ?? '',
  logger: pino({ level: 'silent' }),
})
console.log(url)
setInterval(() => {}, 60_000)
