import { z } from 'zod'
import { iso } from '../../../infra/iso.ts'
import { consentUrl } from '../../../infra/wire/gate.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import { signupVariablesOf } from '../registry/ownership.ts'
import { type RegisteredService, registryEntryJson } from '../registry/registered-services.ts'
import type { RequesterNetwork } from '../requests.ts'
import { phaseOf } from '../sessions.ts'
import type { DeliveryBundle } from '../vault.ts'

const jsonObject = z.record(z.string(), z.unknown())

export function createdSignupJson(session: GateSessionRow, poll_token: string, publicUrl: string) {
  const { id, expires_at, confirmation_code } = session
  return {
    object: 'gate_session',
    id,
    status: 'pending',
    poll_token,
    consent_url: consentUrl(publicUrl, id),
    confirmation_code,
    expires_at: iso(expires_at),
  } as const
}

export function unapprovedSignupJson(row: GateSessionRow) {
  const { id, status, expires_at, rejection, problem } = row
  return {
    object: 'gate_session',
    id,
    status,
    expires_at: iso(expires_at),
    ...progress(row),
    ...(rejection !== null && { reason: rejection }),
    ...(problem !== null && { problem }),
  } as const
}

export function approvedSignupJson(
  { id, gate_account_id, account_name, accepted_env_vars }: GateSessionRow,
  { bundle, service }: { bundle: DeliveryBundle; service: RegisteredService },
) {
  return {
    object: 'gate_session',
    id,
    status: 'approved',
    gate_account_id,
    account_name,
    delivery_bundle: bundle,
    docs_url: registryEntryJson(service).docs_url,
    accepted_env_vars: accepted_env_vars ?? [],
  } as const
}

export function consentJson(
  session: GateSessionRow,
  context: { service: RegisteredService; approveToken: string; network: RequesterNetwork },
) {
  const { service, approveToken, network } = context
  const { dashboard_login_url } = session
  return {
    object: 'gate_consent',
    gate_session_id: session.id,
    kind: session.kind,
    status: 'pending',
    ...progress(session),
    account_name: session.account_name,
    ...(session.metadata !== null && { metadata: jsonObject.parse(JSON.parse(session.metadata)) }),
    // A login keeps the dashboard URL that the service had when it was requested.
    service: {
      ...registryEntryJson(service),
      ...(dashboard_login_url !== null && { dashboard_login_url }),
    },
    ...(session.kind === 'signup' && { variables: signupVariablesOf(service) }),
    approve_token: approveToken,
    confirmation_code: session.confirmation_code,
    requested_by: {
      ip_address: session.requested_ip,
      user_agent: session.requested_user_agent,
      at: iso(session.opened_at),
      network,
    },
    expires_at: iso(session.expires_at),
  } as const
}

export function cancelledSessionJson({ id, kind }: GateSessionRow, status: 'rejected' | 'pending') {
  return { object: kind === 'login' ? 'gate_login_session' : 'gate_session', id, status } as const
}

function progress(session: GateSessionRow) {
  const phase = phaseOf(session)
  return {
    ...(phase === 'claiming' && { claim: 'waiting' as const }),
    ...(phase === 'in_progress' && { approval: 'in_progress' as const }),
  }
}
