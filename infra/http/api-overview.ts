/** Body of a failed request, as the reference and the error page show it. */
export const errorExample = `{
  "error": {
    "code": "request.validation_failed",
    "message": "name is required",
    "status": 422,
    "retryable": false,
    "request_id": "req_0f5b1c7e9a3d4b2c8e6f7a1b2c3d4e5f",
    "docs_url": "https://tidegate.example/docs/errors#request.validation_failed",
    "details": { "fields": [{ "name": "name", "issue": "required", "expected": "string" }] }
  }
}`

/** Markdown of `info.description` in the OpenAPI document. */
export const apiOverview = `# API

Tidegate's REST API reads scored sessions and visitors, and manages keys, webhooks and Gate services. Requests and responses are JSON in UTF-8. Times are RFC 3339 in UTC, and ids start with the kind of object, such as \`sid_\` for a session. Responses gain members over time, so ignore members you don't know.

## Authentication

Send a secret key as a bearer token. Secret keys belong in your back end; a page only ever gets a publishable key.

\`\`\`sh
curl "$TIDEGATE_URL/v1/sessions?limit=5" -H "Authorization: Bearer $TIDEGATE_SECRET_KEY"
\`\`\`

Each key has scopes, and each operation names the scope it needs. Keys of the \`test\` environment (\`sk_test_\`) see only test data. A key reaches only its own organization: anything of another one is 404.

## Errors

A failed request returns the status and one JSON body. \`code\` is stable, so branch on it. \`message\` is for people and names the field that is wrong. Retry only when \`retryable\` is true.

\`\`\`json
${errorExample}
\`\`\`

## Rate limits

An organization's secret keys share units per minute: 600 unless the server sets another limit. Most requests cost one unit. \`X-RateLimit-Limit\`, \`X-RateLimit-Remaining\` and \`X-RateLimit-Cost\` are in every response. Beyond the limit a request gets 429, and \`Retry-After\` says how many seconds to wait.

## Pagination

Lists return up to \`limit\` items (50 by default, 200 at most), newest first. While there are more, \`pagination.next_cursor\` is set: pass it as \`cursor\`. A page can be short or empty and still have a next one.

## Idempotency

Send an \`Idempotency-Key\` with a POST that creates something, and you can repeat the request for 24 hours: the repetition returns the first response, with \`Idempotent-Replayed: true\`.
`

/** Tags of the OpenAPI document, in the order of the reference. */
export const apiTags = [
  { name: 'Sessions', description: 'Scored sessions with their verdict, reasons and network.' },
  {
    name: 'Visitor fingerprints',
    description: 'Visitors recognized over several sessions, and corrections to them.',
  },
  {
    name: 'Agents',
    description:
      'Score requests that run no JavaScript, and manage the directories of signed agents.',
  },
  { name: 'Webhooks', description: 'Endpoints that receive events, and the events they receive.' },
  { name: 'Events', description: 'Published events and their webhook deliveries.' },
  { name: 'Organizations', description: 'The organization of the key, and its audit log.' },
  { name: 'API keys', description: 'Create, rotate and revoke keys.' },
  { name: 'Erasure', description: 'Export or erase what is stored about a person.' },
  {
    name: 'Gate',
    description: 'Coding agents sign up for services, and a person approves each signup.',
  },
  { name: 'Collect', description: "The SDKs' protocol. Applications don't call it directly." },
  { name: 'Browser SDK', description: 'The script for pages.' },
  { name: 'Operations', description: 'Health, metrics and this description. No key needed.' },
] as const
