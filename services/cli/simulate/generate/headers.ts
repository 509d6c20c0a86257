import type { Snapshot } from '../../../../schemas/observations.ts'
import type { SessionPlan } from './plan.ts'

export function headersOf({
  client,
  page,
  batches: [{ snapshot }],
}: SessionPlan): Record<string, string> {
  const userAgent = { 'User-Agent': snapshot?.navigator.user_agent ?? 'unknown' }
  if (client !== 'web' || !snapshot) return userAgent
  return {
    ...userAgent,
    Origin: new URL(page.url).origin,
    Referer: page.url,
    'Accept-Language': acceptLanguage(snapshot.navigator.languages),
    ...clientHints(snapshot.navigator),
  }
}

function acceptLanguage(languages: string[]): string {
  return languages
    .map((language, i) => (i === 0 ? language : `${language};q=${1 - i / 10}`))
    .join(',')
}

export function clientHints({
  brands,
  ua_data_mobile,
  ua_data_platform,
}: Snapshot['navigator']): Record<string, string> {
  if (brands.length === 0) return {}
  return {
    'Sec-CH-UA': brands.map(({ brand, version }) => `"${brand}";v="${version}"`).join(', '),
    'Sec-CH-UA-Mobile': ua_data_mobile ? '?1' : '?0',
    'Sec-CH-UA-Platform': `"${ua_data_platform}"`,
  }
}
