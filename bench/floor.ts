import { readConfig } from '../infra/config.ts'
import { addAppend, openFloor } from './floor-app.ts'

// The floor: a Fastify server that only appends through the same adapter, or reads by primary key. Runs as a separate
// process.
const { app, log, pool, serve } = await openFloor(readConfig(process.env))

addAppend(app, { path: '/append', log })

app.get<{ Params: { id: string } }>('/read/:id', async ({ params }, reply) => {
  const query = {
    name: 'read',
    text: 'select body from bench.details where id = $1',
    values: [params.id],
  }
  const { rows } = await pool.query<{ body: string }>(query)
  return reply.type('application/json').send(rows[0]?.body ?? '{}')
})

await serve()
