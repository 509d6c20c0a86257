import type { Tx } from '../../infra/postgres/pool.ts'
import type { RecordedEvent } from '../../schemas/codec.ts'

/** Applies one partition's events. */
export async function apply(_tx: Tx, _events: RecordedEvent[]): Promise<void> {}
