import { createHmac } from 'node:crypto'
import type { Keyring, MasterKey } from '../../infra/crypto/keyring.ts'
import { keyIdBytes, open, seal } from '../../infra/crypto/sealing.ts'
import { isId, type Random, type SessionId } from '../../infra/ids.ts'
import { decodeBase64url } from '../../infra/text.ts'
import type { ClientPlatform } from '../../infra/wire/collect/protocol.ts'
import type { Environment } from '../../schemas/events.ts'

/*
 * Sealed ids: state that the client stores for the server, encrypted and authenticated (AEAD), so any node can serve
 * any request. Organization, environment, session and the client's public key are authenticated with a document id
 * (AAD) but not stored in it, so decryption fails for any other scope and the id is short enough for a path segment.
 */

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
  /** Start of the session, epoch milliseconds. */
  createdAt: number
  /** Time when this document was opened, epoch milliseconds. */
  openedAt: number
  platform: ClientPlatform
  /** Number of the document in its session, from 1. */
  number: number
  /** Part of the question bank, see `bankPartOf`. */
  bankPart: number
  /** 16 bytes, hex. */
  continuityId: string
}

export interface ResumeFacts extends Omit<DocumentFacts, 'openedAt' | 'bankPart'> {
  sessionId: SessionId
}

const platforms: ClientPlatform[] = ['web', 'ios', 'android']
const continuityBytes = 16
// created u48 | opened u48 | number u16 | platform u8 | bank part u16 | continuity id 16
const factsBytes = 6 + 6 + 2 + 1 + 2 + continuityBytes

/** Purpose and owner of a sealed text. Decryption fails if either differs. */
interface Sealing {
  purpose: string
  context: string
}

const forTenant = (purpose: string, { organizationId, environment }: Tenant): Sealing => ({
  purpose,
  context: `${organizationId}|${environment}`,
})
const forDocument = (scope: DocumentScope): Sealing => ({
  purpose: 'collect-document',
  context: `${scope.organizationId}|${scope.environment}|${scope.sessionId}|${scope.clientPublicKey}`,
})

type Sealer = { keyring: Keyring; random: Random }

function sealText(bytes: Buffer, sealing: Sealing, { keyring, random }: Sealer): string {
  return seal(bytes, { keyring, random, ...sealing }).toString('base64url')
}

function openText(text: string, sealing: Sealing, keyring: Keyring): Buffer | undefined {
  const sealed = decodeBase64url(text)
  return (sealed && open(sealed, { keyring, ...sealing })) ?? undefined
}

export function sealDocumentId(facts: DocumentFacts, scope: DocumentScope, sealer: Sealer): string {
  return sealText(packFacts(facts), forDocument(scope), sealer)
}

export function openDocumentId(
  documentId: string,
  scope: DocumentScope,
  keyring: Keyring,
): { facts: DocumentFacts; master: MasterKey } | undefined {
  const packed = openText(documentId, forDocument(scope), keyring)
  if (packed?.length !== factsBytes) return undefined
  const master = keyring.byId(Buffer.from(documentId, 'base64url').toString('hex', 0, keyIdBytes))
  return master && { facts: unpackFacts(packed), master }
}

export function sealResumeToken(facts: ResumeFacts, tenant: Tenant, sealer: Sealer): string {
  const packed = Buffer.concat([
    packFacts({ ...facts, openedAt: 0, bankPart: 0 }),
    Buffer.from(facts.sessionId),
  ])
  return sealText(packed, forTenant('collect-resume', tenant), sealer)
}

export function openResumeToken(
  token: string,
  tenant: Tenant,
  keyring: Keyring,
): ResumeFacts | undefined {
  const packed = openText(token, forTenant('collect-resume', tenant), keyring)
  if (!packed || packed.length < factsBytes) return undefined
  const sessionId = packed.toString('utf8', factsBytes)
  return isId('sid', sessionId) ? { ...unpackFacts(packed), sessionId } : undefined
}

export function sealContinuityId(continuityId: string, tenant: Tenant, sealer: Sealer): string {
  return sealText(Buffer.from(continuityId, 'hex'), forTenant('collect-continuity', tenant), sealer)
}

export function openContinuityId(
  token: string,
  tenant: Tenant,
  keyring: Keyring,
): string | undefined {
  const id = openText(token, forTenant('collect-continuity', tenant), keyring)
  return id?.length === continuityBytes ? id.toString('hex') : undefined
}

/** Derives the continuity id of a session that presented none, identically on every node. */
export function firstContinuityId(master: MasterKey, sessionId: string): string {
  const digest = createHmac('sha256', master.secretKey('collect-first-continuity'))
    .update(sessionId)
    .digest()
  return digest.toString('hex', 0, continuityBytes)
}

function packFacts({
  createdAt,
  openedAt,
  platform,
  number,
  bankPart,
  continuityId,
}: DocumentFacts): Buffer {
  const packed = Buffer.alloc(factsBytes)
  packed.writeUIntBE(createdAt, 0, 6)
  packed.writeUIntBE(openedAt, 6, 6)
  packed.writeUInt16BE(Math.min(number, 0xffff), 12)
  packed.writeUInt8(platforms.indexOf(platform), 14)
  packed.writeUInt16BE(bankPart, 15)
  packed.write(continuityId, 17, 'hex')
  return packed
}

function unpackFacts(packed: Buffer): DocumentFacts {
  return {
    createdAt: packed.readUIntBE(0, 6),
    openedAt: packed.readUIntBE(6, 6),
    number: packed.readUInt16BE(12),
    platform: platforms[packed.readUInt8(14)] ?? 'web',
    bankPart: packed.readUInt16BE(15),
    continuityId: packed.toString('hex', 17, 17 + continuityBytes),
  }
}
