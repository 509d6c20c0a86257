import { createPool } from '../../infra/postgres/pool.ts'
import type { Child } from '../child.ts'
import { compare } from '../compare.ts'
import type { Environment } from '../environment.ts'
import { type LoadRequest, runLoad } from '../load.ts'
import type { Measurement } from '../measurement.ts'
import { deal, fixedSequence } from '../prepare.ts'
import type { Scale } from '../scale.ts'

const connections = 32
const distinct = 200

/** Measures GET session detail against Fastify with a read of the same JSON by primary key. */
export async function measureReadback(
  { environment, child }: { environment: Environment; child: Child },
  scale: Scale,
): Promise<Measurement> {
  const { live } = await environment.credentials()
  const headers = { Authorization: `Bearer ${live.secret_key}` }
  const ids = await storeDetails(environment, { child, headers })
  const floor = await environment.startFloor()
  const requests = (path: string): LoadRequest[] =>
    Array.from({ length: scale.reads }, (_, i) => ({
      method: 'GET',
      path: path + ids[i % ids.length],
      headers,
    }))
  const send = (path: string) => async () => deal(requests(path), connections).map(fixedSequence)
  try {
    return await compare({
      name: 'GET session detail, throughput per core against the floor',
      aim: 0.75,
      environment,
      turns: scale.turns,
      ours: { child, prepare: send('/v1/sessions/') },
      floor: { child: floor, prepare: send('/read/') },
    })
  } finally {
    await floor.stop()
  }
}

/** Copies the responses about some sessions into the table that the floor reads. */
async function storeDetails(
  environment: Environment,
  { child, headers }: { child: Child; headers: Record<string, string> },
): Promise<string[]> {
  const pool = createPool({ url: environment.databaseUrl, max: 1 })
  try {
    await pool.query(
      'create schema bench; create table bench.details (id text primary key, body text not null)',
    )
    const { rows } = await pool.query<{ session_id: string }>(
      `select session_id from read.sessions limit ${distinct}`,
    )
    for (const { session_id } of rows) {
      const body = await readOne(child.url, {
        method: 'GET',
        path: `/v1/sessions/${session_id}`,
        headers,
      })
      await pool.query('insert into bench.details values ($1, $2)', [session_id, body])
    }
    return rows.map(({ session_id }) => session_id)
  } finally {
    await pool.end()
  }
}

async function readOne(url: string, request: LoadRequest): Promise<string> {
  let body = ''
  const requests = [request]
  await runLoad(url, [
    {
      next(previous) {
        if (previous) body = previous.body.toString()
        return requests.shift()
      },
    },
  ])
  return body
}
