import { json } from '../http.ts'
import type { World } from '../world.ts'

/** The audit log of an organization that little was done to. */
export async function auditLog({ record, organizations: { foreign }, live }: World): Promise<void> {
  const path = `/v1/organizations/${foreign.id}`
  await record('rename', `PATCH ${path}`, foreign.secret, { name: 'Audited' })
  const list = (what: string, query = '', by = foreign.secret) =>
    record(`audit log: ${what}`, `GET ${path}/audit-log${query}`, by)
  await list('all')
  const { next_cursor: cursor } = json(await list('one', '?limit=1')).pagination
  await list('the next two', `?limit=2&cursor=${cursor}`)
  await list('limit of 0', '?limit=0')
  await list('offset', '?offset=1')
  await list('cursor that is none', '?cursor=nonsense')
  await list('by another organization', '', live)
}
