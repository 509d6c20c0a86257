import { Resolver } from 'node:dns/promises'

const mostRecords = 100

/** The TXT records of a name, each in one piece; none where DNS does not answer in time. Never rejects. */
export async function txtRecords(
  name: string,
  { timeoutMs = 5000, dnsServers }: { timeoutMs?: number; dnsServers?: string[] | undefined } = {},
): Promise<string[]> {
  const dns = new Resolver({ timeout: Math.ceil(timeoutMs / 4), tries: 2 })
  if (dnsServers) dns.setServers(dnsServers)
  const timer = setTimeout(() => dns.cancel(), timeoutMs)
  const records = await dns.resolveTxt(name).catch(() => [])
  clearTimeout(timer)
  return records.slice(0, mostRecords).map((pieces) => pieces.join(''))
}
