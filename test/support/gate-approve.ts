import { z } from 'zod'
import { readSimulationKey } from '../../infra/local/development.ts'
import { consentProof } from './gate-proof.ts'

const consent = z.object({ data: z.object({ approve_token: z.string() }) })

/** What `tidegate dev` started, and where it keeps its files. */
interface DevelopmentServer {
  baseUrl: string
  dataDir: string
}

/** Approves a signup or login as a person does on its consent page. Resolves with the status of the answer. */
export async function approveAsPerson(
  { baseUrl, dataDir }: DevelopmentServer,
  gateSessionId: string,
): Promise<number> {
  const session = `${baseUrl}/v1/gate/sessions/${gateSessionId}`
  const opened = await fetch(`${session}/consent`, { headers: { origin: baseUrl } })
  const { approve_token } = consent.parse(await opened.json()).data
  const { sealedToken } = await consentProof({
    baseUrl,
    gateSessionId,
    approveToken: approve_token,
    simulationKey: readSimulationKey(dataDir),
  })
  const approved = await fetch(`${session}/approve`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: baseUrl },
    body: JSON.stringify({ approve_token, sealed_token: sealedToken }),
  })
  await approved.arrayBuffer()
  return approved.status
}
