import { createAddressRules } from '../../../infra/safe-http/addresses.ts'
import { createWebhookClient } from '../../../infra/safe-http/client.ts'

// Run by a test with its own environment: posts to each URL, and fetches the first with Node's fetch.
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
  () => 'failed',
)
process.stdout.write(JSON.stringify({ fetched, outcomes }))
