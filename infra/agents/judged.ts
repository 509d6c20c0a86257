import type { CatalogueEntry } from './catalogue.ts'

/** What the two lists do not say, or what would name people. Read by build.ts only. */

/** Names that say nothing of a bot to who does not know them. */
export const familiar: ReadonlySet<string> = new Set([
  ...['facebookexternalhit', 'Facebot', 'facebookcatalog/', 'meta-externalads/', 'Meta-ExternalHit/'],
  ...['meta-externalfetcher', 'Meta-ExternalAgent', 'meta-webindexer', 'ChatGPT-User', 'Claude-User'],
  ...['Claude-Web', 'anthropic-ai', 'cohere-ai', 'Perplexity-User', 'PerplexityUser', 'MistralAI-User'],
  ...['DuckAssistBot', 'Google-Extended', 'Google-NotebookLM', 'GoogleOther', 'Google-InspectionTool'],
  ...['Mediapartners-Google', 'Feedfetcher-Google', 'APIs-Google', 'AppEngine-Google', 'Google-Safety'],
  ...['Google-Agent', 'GoogleAgent-Mariner', 'Gemini-Deep-Research', 'Manus-User', 'Amzn-User'],
  ...['Slurp', 'bingpreview/', 'BingPreview/', 'MicrosoftPreview/', 'SkypeUriPreview', 'Google Web Preview'],
  ...['Qwantify', 'Diffbot/', 'omgili', 'webzio-extended', 'Teoma', 'proximic', 'BUbiNG', 'ltx71'],
  ...['Screaming Frog SEO Spider', 'heritrix', 'img2dataset'],
  ...['^WhatsApp/', 'Embedly', 'Iframely', 'vkShare', 'FlipboardProxy', 'Slack-ImgProxy', 'GoogleImageProxy'],
  ...['YahooMailProxy', 'bitlybot', 'Better Stack', 'NodePing', 'Site24x7', 'Catchpoint', 'Pingdom'],
  ...['StatusCake', 'Uptimia', 'updown.io', 'HetrixTools', 'jetmon/', 'Checkly/', 'GTmetrix', 'Detectify'],
  ...['RuxitSynthetic', 'Datadog Synthetics', 'BrandVerity', 'Dataprovider.com', 'CensysInspect/'],
  ...['yandex.com/bots', 'search.marginalia.nu', 'Wappalyzer', 'Sucuri', 'Expanse, a Palo Alto'],
])

/** Names of people's browsers and apps, words that are in their user agents, and names that mean several things. */
export const excluded: readonly RegExp[] = [
  /^(MetaIAB|Google-Read-Aloud|Chrome-Lighthouse|HeadlessChrome|Chrome Privacy)/i,
  /^(WhatsApp|Viber|Pinterest\/?|Snapchat|Tumblr|Slack\/?|Notion|Yeti|Silk|Steam)$/i,
  /^(bot|spider|crawler|mail\.ru|https:.*|Hello World|Test-?bot|MyBot\/)$/i,
  /^(Testcrawler|sitebot|feedbot|ICBot\/|arabot|BuddyBot|Freshbot|ResearchBot|ArchiveBot|ArtemisBot)$/i,
]

/** Apple's messages name three others, and come from people's phones. The first list has it, without the whole of its name. */
export const imessage: CatalogueEntry = {
  id: 'imessage-preview',
  provider: 'apple',
  product: 'iMessage',
  purpose: 'preview',
  names: ['facebookexternalhit/1.1 facebot twitterbot/1.0'],
}

/** It signs its requests, and its user agent is that of a browser. Seen in public captures; neither list has it. */
export const chatgptAgent: CatalogueEntry = {
  id: 'chatgpt-agent',
  provider: 'openai',
  product: 'ChatGPT agent',
  purpose: 'ai_assistant',
  names: [],
  domains: ['chatgpt.com'],
}

/** Patterns of several spellings. */
export const spelledOut: Record<string, string[]> = {
  WhatsApp: ['^WhatsApp/'],
  'AdsBot-Google([^-]|$)': ['AdsBot-Google'],
  'Mediapartners \\(Googlebot\\)': ['Mediapartners (Googlebot)'],
  'yandex\\.com\\/bots': ['YandexBot', 'yandex.com/bots'],
  'Face(book){0,1}[Bb]ot': ['FacebookBot', 'Facebot'],
  '[pP]ingdom': ['Pingdom'],
  'Pinterest(bot)?\\/': ['Pinterestbot'],
  '[Mm]eta-[Ee]xternal[Aa]gent': ['Meta-ExternalAgent'],
  '[cC]laude(?:[bB]ot|-[Ww]eb)': ['ClaudeBot', 'Claude-Web'],
  'Datadog\\/{0,1}Synthetics': ['Datadog Synthetics', 'DatadogSynthetics', 'Datadog/Synthetics'],
  'i[Tt][Mm][Ss]': ['^iTMS'],
  '(sistrix|SISTRIX) [cC]rawler': ['SISTRIX Crawler'],
  'AI2Bot\\s': ['AI2Bot'],
  'SentryUptimeBot\\/1\\.0': ['SentryUptimeBot/'],
}

export const providersByCategory: Record<string, string> = {
  google: 'google',
  microsoft: 'microsoft',
  yahoo: 'yahoo',
  amazon: 'amazon',
  meta: 'meta',
  apple: 'apple',
  slack: 'slack',
  vercel: 'vercel',
}

export const providersByName: readonly [start: string, provider: string][] = [
  ['google', 'google'],
  ['adsbot-google', 'google'],
  ['gemini-', 'google'],
  ['meta-', 'meta'],
  ['facebook', 'meta'],
  ['claude', 'anthropic'],
  ['anthropic', 'anthropic'],
  ['chatgpt', 'openai'],
  ['gptbot', 'openai'],
  ['oai-', 'openai'],
  ['perplexity', 'perplexity'],
  ['mistralai', 'mistral'],
  ['duckassist', 'duckduckgo'],
  ['amazon', 'amazon'],
  ['amzn-', 'amazon'],
  ['cloudflare', 'cloudflare'],
  ['baidu', 'baidu'],
  ['yandex', 'yandex'],
  ['seznam', 'seznam'],
  ['ahrefs', 'ahrefs'],
  ['semrush', 'semrush'],
  ['tiktokspider', 'bytedance'],
  ['ccbot', 'commoncrawl'],
  ['azureai', 'microsoft'],
  ['bluesky', 'bluesky'],
  ['discordbot', 'discord'],
  ['kagi', 'kagi'],
  ['uptimerobot', 'uptimerobot'],
]
