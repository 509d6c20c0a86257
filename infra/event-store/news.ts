import type { Position } from '../log/port.ts'

/** The channel on which runners tell every process how far they are. */
export const appliedChannel = 'tidegate_applied'

/** Ids of what has changed; undefined = anything may have. */
export type Subjects = readonly string[] | undefined

export interface News {
  projection: string
  /** A next offset. */
  next: Position
  subjects: Subjects
}

/** A notification of Postgres holds 8000 bytes. */
const maxSubjectsLength = 7000
const anything = '*'

/** The payload of a notification: `projection|topic|partition|next offset|subjects`, the last separated by commas. */
export function newsOf({ projection, next, subjects }: News): string {
  const ids = subjects?.join(',') ?? anything
  const last = ids.length > maxSubjectsLength ? anything : ids
  return [projection, next.topic, next.partition, next.offset, last].join('|')
}

export function readNews(payload: string): News {
  const [projection = '', topic = '', partition, offset, ids = anything] = payload.split('|')
  const next = { topic, partition: Number(partition), offset: Number(offset) }
  if (ids === anything) return { projection, next, subjects: undefined }
  return { projection, next, subjects: ids === '' ? [] : ids.split(',') }
}
