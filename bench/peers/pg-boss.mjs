import { PgBoss } from 'pg-boss'
import { serveRounds } from '../round-server.ts'
import { openSender } from './signed-post.ts'

// pg-boss workers sleep at least half a second after a batch, so this fetches and completes batches directly.
const queue = 'deliveries'
const batchSize = 50
const fetchers = 4

const boss = new PgBoss({ connectionString: process.env.DATABASE_URL, max: fetchers })
boss.on('error', console.error)
await boss.start()
await boss.createQueue(queue)
const sender = openSender()

async function enqueue(deliveries) {
  await boss.insert(
    queue,
    deliveries.map((data) => ({ data })),
  )
}

async function drain() {
  let done = 0
  for (;;) {
    const jobs = await boss.fetch(queue, { batchSize })
    if (jobs.length === 0) return done
    await Promise.all(jobs.map(({ data }) => sender.deliver(data)))
    await boss.complete(
      queue,
      jobs.map(({ id }) => id),
    )
    done += jobs.length
  }
}

async function work(count) {
  const drained = await Promise.all(Array.from({ length: fetchers }, drain))
  const done = drained.reduce((sum, jobs) => sum + jobs, 0)
  if (done !== count) throw new Error(`${done} of ${count} jobs were done`)
}

await serveRounds({
  name: 'pg-boss',
  run: ({ enqueue: deliveries, work: count }) => (deliveries ? enqueue(deliveries) : work(count)),
  close: () => Promise.all([boss.stop(), sender.close()]),
})
