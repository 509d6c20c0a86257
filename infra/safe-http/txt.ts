import { Resolver } from 'node:dns/promises'

const maxRecords = 100

/** Resolves a name's TXT records, each joined to one string. Returns none if DNS fails or times out. Never rejects. */
export async function lookUpTxt(
  name: string,
  { timeoutMs = 5000, dnsServers }: { timeoutMs?: number; dnsServers?: string[] | undefined } = {},
): Promise<string[]> {
  const dns = new Resolver({ timeout: Math.ceil(timeoutMs / 4), tries: 2 })
  if (dnsServers) dns.setServers(dnsServers)
  const timer = setTimeout(() => dns.cancel(), timeoutMs)
  const records = await dns.resolveTxt(name).catch(() => [])
  clearTimeout(timer)
  return records.slice(0, maxRecords).map((pieces) => pieces.join(''))
}
