import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { type AddressData, decodeAddresses } from './file.ts'
import { labelOf } from './labels.ts'
import { keyOfAddress, nameAt } from './ranges.ts'

/** The file that comes along; `head -1` of it tells its sources, licences and dates. */
export const shippedFile = path.join(import.meta.dirname, 'addresses.bin')

export async function readAddresses(file: string = shippedFile): Promise<AddressData> {
  return decodeAddresses(await readFile(file))
}

/** What the file says of an address, in the flat form that MMDB files of others have, too; null = it does not know. */
export interface AddressRecords {
  city: object | null
  asn: object | null
  anonymous: object | null
  /** The operator of a crawler whose published ranges have the address. */
  bot: string | null
}

/** `ip` is a valid address. */
export function recordsAt({ country, network, labels }: AddressData, ip: string): AddressRecords {
  const key = keyOfAddress(ip)
  const code = nameAt(country, key)
  const label = labelOf(nameAt(labels, key))
  const provider = label?.kind === 'vpn' || label?.kind === 'relay' ? label.operator : null
  return {
    city: code ? { country_code: code } : null,
    asn: networkRecord(nameAt(network, key)),
    anonymous: label
      ? {
          is_hosting_provider: label.kind === 'hosting',
          is_tor_exit_node: label.kind === 'tor',
          is_anonymous_vpn: label.kind === 'vpn',
          is_relay: label.kind === 'relay',
          kind: label.kind,
          provider_name: provider,
        }
      : null,
    bot: label?.kind === 'bot' ? label.operator : null,
  }
}

function networkRecord(name: string): object | null {
  const [, asn, holder] = /^(\d+) (.*)$/.exec(name) ?? []
  return asn === undefined
    ? null
    : { autonomous_system_number: Number(asn), autonomous_system_organization: holder }
}

const operators = new WeakMap<AddressData, Set<string>>()

/** Operators of VPNs, relays and crawlers whose addresses the lists have. */
export function listedOperators(data: AddressData): Set<string> {
  const known = operators.get(data) ?? operatorsIn(data)
  operators.set(data, known)
  return known
}

function operatorsIn({ labels }: AddressData): Set<string> {
  const found = labels.names.flatMap((name) => labelOf(name) ?? [])
  const named = found.filter(({ kind }) => kind === 'vpn' || kind === 'relay' || kind === 'bot')
  return new Set(named.map(({ operator }) => operator))
}
