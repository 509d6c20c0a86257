import type { Db } from '../../infra/postgres/pool.ts'
import { tokenFields } from './records.ts'
import type { AgentTokenRow } from './rows.ts'

/** The agent token stored under one of the look-up hashes; the caller decides what its status and owner mean. */
export async function findAgentToken(db: Db, hashes: string[]): Promise<AgentTokenRow | undefined> {
  const { rows } = await db.query<AgentTokenRow>({
    name: 'find-agent-token',
    text: `select ${tokenFields('t')} from read.gate_agent_tokens t where t.token_hash = any($1)`,
    values: [hashes],
  })
  return rows[0]
}

/** The agent token that the account's signup issued. */
export async function findTokenOfAccount(db: Db, gateAccountId: string): Promise<AgentTokenRow | undefined> {
  const { rows } = await db.query<AgentTokenRow>(
    `select ${tokenFields('t')} from read.gate_agent_tokens t where t.gate_account_id = $1`,
    [gateAccountId],
  )
  return rows[0]
}
