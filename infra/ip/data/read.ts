import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { type AddressData, decodeAddresses } from './file.ts'
import { labelOf } from './labels.ts'
import { keyOfAddress, nameAt } from './ranges.ts'

/** The bundled IP data file; `head -1` shows its sources, licenses and dates. */
export const bundledFile = path.join(import.meta.dirname, 'addresses.bin')

export async function readAddresses(file: string = bundledFile): Promise<AddressData> {
  return decodeAddresses(await readFile(file))
}

/** Records of the IP data file for an address, in the flat format of free MMDB files; null = unknown. */
export interface AddressRecords {
  city: object | null
  asn: object | null
  anonymous: object | null
  /** Operator of the crawler whose published ranges contain the address. */
  bot: string | null
}

/** Looks up a valid address. */
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

/** Returns the operators of VPNs, relays and crawlers whose addresses the lists contain. */
export function listedOperators(data: AddressData): Set<string> {
  const names = operators.get(data) ?? operatorsIn(data)
  operators.set(data, names)
  return names
}

function operatorsIn({ labels }: AddressData): Set<string> {
  const parsed = labels.names.flatMap((name) => labelOf(name) ?? [])
  const listed = parsed.filter(({ kind }) => kind === 'vpn' || kind === 'relay' || kind === 'bot')
  return new Set(listed.map(({ operator }) => operator))
}
