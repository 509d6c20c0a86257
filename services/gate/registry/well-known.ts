import { envPrefixOf } from '../../../infra/wire/gate.ts'
import { containsWordsLike, looksLike, startsWithWordsLike } from './look-alikes.ts'

interface WellKnown {
  name: string
  /** Registrable domains of the owner of the name. */
  domains: readonly string[]
  /** True if the name is a common word, which other services can use anywhere but at the start of their names. */
  isCommonWord: boolean
}

const parseNames = (isCommonWord: boolean, lines: string): WellKnown[] =>
  lines
    .trim()
    .split('\n')
    .map((line) => {
      const [name = '', domains = ''] = line.split(':')
      return { name: name.trim(), domains: domains.trim().split(' '), isCommonWord }
    })

// Names that agents and people would trust with credentials. The list can't be complete, so the consent page also shows
// if a service is verified.
const wellKnown: readonly WellKnown[] = [
  ...parseNames(
    false,
    `
    Airtable: airtable.com
    Anthropic: anthropic.com claude.com
    Atlassian: atlassian.com
    Auth0: auth0.com
    Binance: binance.com
    Bitbucket: bitbucket.org atlassian.com
    ChatGPT: openai.com chatgpt.com
    Cloudflare: cloudflare.com
    Coinbase: coinbase.com
    Databricks: databricks.com
    Datadog: datadoghq.com
    DeepSeek: deepseek.com
    DigitalOcean: digitalocean.com
    Dropbox: dropbox.com
    ElevenLabs: elevenlabs.io
    Facebook: facebook.com meta.com
    GitHub: github.com
    GitLab: gitlab.com
    Google: google.com cloud.google
    Grafana: grafana.com
    Heroku: heroku.com
    HubSpot: hubspot.com
    Hugging Face: huggingface.co
    Instagram: instagram.com
    LinkedIn: linkedin.com
    Mailchimp: mailchimp.com
    Mailgun: mailgun.com
    Microsoft: microsoft.com azure.com
    MongoDB: mongodb.com
    Netlify: netlify.com
    OpenAI: openai.com
    OpenRouter: openrouter.ai
    PagerDuty: pagerduty.com
    PayPal: paypal.com
    Pinecone: pinecone.io
    PlanetScale: planetscale.com
    Salesforce: salesforce.com
    SendGrid: sendgrid.com twilio.com
    Shopify: shopify.com
    Supabase: supabase.com
    Twilio: twilio.com
    Vercel: vercel.com
    WhatsApp: whatsapp.com
    Zapier: zapier.com
    Zendesk: zendesk.com
    `,
  ),
  ...parseNames(
    true,
    `
    Amazon: amazon.com aws.dev
    Apple: apple.com
    AWS: amazon.com aws.dev
    Azure: azure.com microsoft.com
    Claude: anthropic.com claude.com
    Cohere: cohere.com
    Copilot: github.com microsoft.com
    Cursor: cursor.com
    Discord: discord.com
    Docker: docker.com
    Figma: figma.com
    Gemini: google.com
    Groq: groq.com
    Jira: atlassian.com
    Linear: linear.app
    Meta: meta.com
    Mistral: mistral.ai
    Neon: neon.tech neon.com
    Notion: notion.so notion.com
    npm: npmjs.com
    Okta: okta.com
    Perplexity: perplexity.ai
    Plaid: plaid.com
    PyPI: pypi.org
    Replicate: replicate.com
    Resend: resend.com
    Sentry: sentry.io
    Slack: slack.com
    Snowflake: snowflake.com
    Square: squareup.com
    Stripe: stripe.com
    Telegram: telegram.org
    Trello: trello.com atlassian.com
    Upstash: upstash.com
    Visa: visa.com
    Wise: wise.com
    xAI: x.ai
    Zoom: zoom.us zoom.com
    `,
  ),
]

/** Returns the well-known name that `name` resembles; undefined if the verified domain belongs to the name's owner. */
export function findImpersonatedName(
  name: string,
  verifiedDomain: string | null,
): string | undefined {
  const isSimilar = (entry: WellKnown) =>
    entry.isCommonWord ? startsWithWordsLike(name, entry.name) : containsWordsLike(name, entry.name)
  const isOwner = ({ domains }: WellKnown) =>
    verifiedDomain !== null && domains.includes(verifiedDomain)
  const similar = wellKnown.filter(isSimilar)
  return similar.some(isOwner) ? undefined : similar[0]?.name
}

// Variable prefixes that many programs share. No service can own them, whatever its domain.
const sharedPrefixes = new Set(
  `API APP ASTRO AUTH CI CLIENT CSRF DATABASE DB DEV EXPO FASTAPI FLASK DJANGO GATSBY GH GCP HF JWT KAFKA LOG MAIL MONGO
  MYSQL NEXT NUXT OAUTH OLLAMA OTEL PG PGSQL POSTGRES POSTGRESQL PRISMA PROD PUBLIC RABBITMQ RAILS REACT REDIS REMIX S3
  SECRET SERVER SESSION SMTP SQL STAGING SVELTE TEST USER VAULT VITE VUE WEB WEBHOOK`
    .split(/\s+/)
    .map(envPrefixOf),
)

/**
 * Returns the variable prefix for a domain's label, such as `MY_APP_` for `my-app` in `my-app.co.uk`. Returns null for
 * a prefix that many programs share, and for a well-known name under a domain that its owner doesn't have.
 */
export function ownableEnvPrefix(label: string, domain: string | null): string | null {
  const prefix = envPrefixOf(label)
  if (sharedPrefixes.has(prefix)) return null
  const similar = wellKnown.filter(({ name }) => looksLike(label, name))
  const isOwner = similar.some(({ domains }) => domain && domains.includes(domain))
  return similar.length > 0 && !isOwner ? null : prefix
}
