import { readSimulationKey } from '../../infra/local/development.ts'
import { generateDeliveryKeys } from '../../infra/wire/delivery-envelope.ts'
import { eventually } from './eventually.ts'
import { consentProof, type ProofOptions } from './gate-proof.ts'

interface GateRequest {
  /** Default: POST with a body, otherwise GET. */
  method?: 'GET' | 'POST' | undefined
  token?: string | undefined
  body?: object | undefined
  headers?: Record<string, string>
}

/** Sends a request to a path below /v1/gate. */
export async function askGate(
  baseUrl: string,
  path: string,
  { token, body, method = body ? 'POST' : 'GET', headers = {} }: GateRequest = {},
) {
  const response = await fetch(`${baseUrl}/v1/gate/${path}`, {
    method,
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(body && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body && { body: JSON.stringify(body) }),
  })
  const { data, error } = JSON.parse(await response.text())
  return { status: response.status, data, code: error?.code }
}

interface Signup {
  /** Default: the server itself. */
  service_id?: string
  account_name?: string
  metadata?: object
  claim?: 'supported'
}

/** Opens a signup like an agent, with new delivery keys. */
export async function requestSignup(
  baseUrl: string,
  { service_id = 'tidegate', account_name = 'Robin', ...members }: Signup = {},
  headers: Record<string, string> = {},
) {
  const keys = generateDeliveryKeys()
  const body = { service_id, account_name, delivery: keys.delivery, ...members }
  const { status, data } = await askGate(baseUrl, 'sessions', { body, headers })
  if (status !== 201) throw new Error(`the signup was answered with ${status}`)
  return { id: String(data.id), pollToken: String(data.poll_token), keys }
}

interface Approval extends Pick<ProofOptions, 'baseUrl' | 'headers' | 'simulationKey'> {
  gateSessionId: string
  /** Required for approvals by a script. */
  account_name?: string
  /** Default: false, which retries while the service or the read models are busy. */
  asksOnce?: boolean
}

/** Approves a signup or login like its consent page. */
export async function approveOverHttp({ account_name, asksOnce = false, ...options }: Approval) {
  const { baseUrl, gateSessionId, headers = {} } = options
  const session = `sessions/${gateSessionId}`
  const consent = await askGate(baseUrl, `${session}/consent`, { headers })
  const { approve_token } = consent.data
  const proof = await consentProof({ ...options, approveToken: approve_token })
  const sealed_token = proof.sealedToken
  const body = { approve_token, sealed_token, ...(account_name && { account_name }) }
  const answer = await eventually(
    async () => {
      const answered = await askGate(baseUrl, `${session}/approve`, { body, headers })
      if (!asksOnce && (answered.status === 409 || answered.status === 503))
        throw new Error(answered.code)
      return answered
    },
    { timeoutMs: 60_000, intervalMs: 2000 },
  )
  return { ...answer, proofSession: proof.sessionId }
}

/** Approves a signup or login like a person on a server of `tidegate dev`. Resolves with the response status. */
export async function approveAsPerson(
  { baseUrl, dataDir }: { baseUrl: string; dataDir: string },
  gateSessionId: string,
): Promise<number> {
  const simulationKey = readSimulationKey(dataDir)
  return (await approveOverHttp({ baseUrl, gateSessionId, simulationKey, asksOnce: true })).status
}
