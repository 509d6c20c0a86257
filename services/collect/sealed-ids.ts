import { createHmac } from 'node:crypto'
import type { Keyring, MasterKey } from '../../infra/crypto/keyring.ts'
import { open, seal } from '../../infra/crypto/sealing.ts'
import { isId, type Random, type SessionId } from '../../infra/ids.ts'
import { base64urlBytes } from '../../infra/text.ts'
import type { ClientPlatform } from '../../infra/wire/collect/protocol.ts'
import type { Environment } from '../../schemas/events.ts'

// What a node must remember about a client travels with the client. Organization, environment, session and the
// client's public key are not stored in a document id but bound to it: opening needs the same ones, so a
// document of anyone else does not open, and the id stays short enough for a path segment.

export interface Tenant {
  organizationId: string
  environment: Environment
}

export interface DocumentScope extends Tenant {
  sessionId: string
  /** base64url, as sent. */
  clientPublicKey: string
}

export interface DocumentFacts {
  createdAt: number
  openedAt: number
  platform: ClientPlatform
  number: number
  continuityId: string
}

export interface ResumeFacts extends Omit<DocumentFacts, 'openedAt'> {
  sessionId: SessionId
}

interface Sealer {
  keyring: Keyring
  random: Random
}

const platforms: ClientPlatform[] = ['web', 'ios', 'android']
const continuityBytes = 16
// created u48 | opened u48 | number u16 | platform u8 | continuity id 16
const factsBytes = 6 + 6 + 2 + 1 + continuityBytes

export function sealDocumentId(facts: DocumentFacts, scope: DocumentScope, sealer: Sealer): string {
  const options = { ...sealer, purpose: 'collect-document', context: documentContext(scope) }
  return seal(packFacts(facts), options).toString('base64url')
}

export function openDocumentId(
  documentId: string,
  scope: DocumentScope,
  keyring: Keyring,
): { facts: DocumentFacts; master: MasterKey } | undefined {
  const sealed = base64urlBytes(documentId)
  const packed =
    sealed && open(sealed, { keyring, purpose: 'collect-document', context: documentContext(scope) })
  const master = sealed && keyring.byId(sealed.toString('hex', 0, 4))
  if (!packed || !master || packed.length !== factsBytes) return undefined
  return { facts: unpackFacts(packed), master }
}

export function sealResumeToken(facts: ResumeFacts, tenant: Tenant, sealer: Sealer): string {
  const packed = Buffer.concat([packFacts({ ...facts, openedAt: 0 }), Buffer.from(facts.sessionId)])
  return seal(packed, { ...sealer, purpose: 'collect-resume', context: tenantContext(tenant) }).toString(
    'base64url',
  )
}

export function openResumeToken(token: string, tenant: Tenant, keyring: Keyring): ResumeFacts | undefined {
  const sealed = base64urlBytes(token)
  const packed =
    sealed && open(sealed, { keyring, purpose: 'collect-resume', context: tenantContext(tenant) })
  if (!packed || packed.length < factsBytes) return undefined
  const sessionId = packed.toString('utf8', factsBytes)
  return isId('sid', sessionId) ? { ...unpackFacts(packed), sessionId } : undefined
}

export function sealContinuity(continuityId: string, tenant: Tenant, sealer: Sealer): string {
  const options = { ...sealer, purpose: 'collect-continuity', context: tenantContext(tenant) }
  return seal(Buffer.from(continuityId, 'hex'), options).toString('base64url')
}

export function openContinuity(token: string, tenant: Tenant, keyring: Keyring): string | undefined {
  const sealed = base64urlBytes(token)
  const id =
    sealed && open(sealed, { keyring, purpose: 'collect-continuity', context: tenantContext(tenant) })
  return id?.length === continuityBytes ? id.toString('hex') : undefined
}

export function firstContinuityId(master: MasterKey, sessionId: string): string {
  const digest = createHmac('sha256', master.secretKey('collect-first-continuity')).update(sessionId).digest()
  return digest.toString('hex', 0, continuityBytes)
}

function tenantContext({ organizationId, environment }: Tenant): string {
  return `${organizationId}|${environment}`
}

function documentContext(scope: DocumentScope): string {
  return `${tenantContext(scope)}|${scope.sessionId}|${scope.clientPublicKey}`
}

function packFacts({ createdAt, openedAt, platform, number, continuityId }: DocumentFacts): Buffer {
  const packed = Buffer.alloc(factsBytes)
  packed.writeUIntBE(createdAt, 0, 6)
  packed.writeUIntBE(openedAt, 6, 6)
  packed.writeUInt16BE(Math.min(number, 0xffff), 12)
  packed.writeUInt8(platforms.indexOf(platform), 14)
  packed.write(continuityId, 15, 'hex')
  return packed
}

function unpackFacts(packed: Buffer): DocumentFacts {
  return {
    createdAt: packed.readUIntBE(0, 6),
    openedAt: packed.readUIntBE(6, 6),
    number: packed.readUInt16BE(12),
    platform: platforms[packed.readUInt8(14)] ?? 'web',
    continuityId: packed.toString('hex', 15, 15 + continuityBytes),
  }
}
