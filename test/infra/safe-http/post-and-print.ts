import { createAddressRules } from '../../../infra/safe-http/addresses.ts'
import { createWebhookClient } from '../../../infra/safe-http/client.ts'

// Run by a test in an environment of its own: posts to each URL, and fetches the first as Node would.
const urls = process.argv.slice(2)
const client = createWebhookClient({ rules: createAddressRules(['127.0.0.0/8']) })
const outcomes: string[] = []
for (const url of urls) {
  const outcome = await client.post({ url, headers: {}, body: '{}' })
  outcomes.push(outcome.kind === 'response' ? `${outcome.status} ${outcome.body}` : outcome.reason)
}
await client.close()
const fetched = await fetch(urls[0] ?? '').then(
  (response) => response.text(),
  () => 'not at all',
)
process.stdout.write(JSON.stringify({ fetched, outcomes }))
