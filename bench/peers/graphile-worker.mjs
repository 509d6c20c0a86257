import { setTimeout as delay } from 'node:timers/promises'
import { run, runMigrations } from 'graphile-worker'
import pg from 'pg'
import { serveRounds } from '../round-server.ts'
import { openSender } from './signed-post.ts'

// Settings of its own benchmark, with or without the local queue and batched completion.
const concurrentJobs = 24
const batching = {
  localQueue: { size: 500, refetchDelay: { durationMs: 10 } },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
}
const [, , mode] = process.argv
const schema = `graphile_${mode}`
const worker = { schema, concurrentJobs, ...(mode === 'batched' && batching) }
const pgPool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: concurrentJobs + 1 })
pgPool.on('error', () => {})
const options = { preset: { worker }, pgPool, noHandleSignals: true }
const sender = openSender()
await runMigrations(options)

async function enqueue(deliveries) {
  const jobs = deliveries.map((payload) => ({ identifier: 'deliver', payload }))
  const specs = `array(select json_populate_recordset(null::${schema}.job_spec, $1))`
  await pgPool.query(`select from ${schema}.add_jobs(${specs})`, [JSON.stringify(jobs)])
}

/** Runs a worker until it has done `count` jobs and completed them. */
async function work(count) {
  const { promise, resolve, reject } = Promise.withResolvers()
  let done = 0
  const deliver = async (payload) => {
    await sender.deliver(payload).catch(reject)
    if (++done === count) resolve()
  }
  const runner = await run({ ...options, taskList: { deliver } })
  await promise
  while ((await countJobs()) > 0) await delay(10)
  await runner.stop()
}

async function countJobs() {
  const { rows } = await pgPool.query(`select count(*)::int as jobs from ${schema}.jobs`)
  return rows[0].jobs
}

await serveRounds({
  name: 'graphile-worker',
  run: ({ enqueue: deliveries, work: count }) => (deliveries ? enqueue(deliveries) : work(count)),
  close: () => Promise.all([pgPool.end(), sender.close()]),
})
