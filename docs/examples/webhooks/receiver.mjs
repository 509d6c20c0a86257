import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'

const secrets = process.env.WEBHOOK_SECRETS.split(',')
const maxBodyBytes = 1024 * 1024
const seen = new Map()

async function handle(event) {
  console.log('handled', event.id, event.type)
}

function isGenuine(headers, body) {
  const {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signatures,
  } = headers
  if (!id || !signatures || !/^\d+$/.test(timestamp ?? '')) return false
  if (Math.abs(Date.now() / 1000 - Number(timestamp)) > 300) return false
  return secrets.some((secret) => {
    const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
    const digest = createHmac('sha256', key)
      .update(`${id}.${timestamp}.`)
      .update(body)
      .digest('base64')
    const expected = Buffer.from(`v1,${digest}`)
    return signatures.split(' ').some((entry) => {
      const given = Buffer.from(entry)
      return given.length === expected.length && timingSafeEqual(given, expected)
    })
  })
}

const server = createServer(async (request, response) => {
  try {
    const length = Number(request.headers['content-length'])
    if (!(length <= maxBodyBytes)) return response.writeHead(413, { connection: 'close' }).end()
    const body = Buffer.concat(await request.toArray())
    if (!isGenuine(request.headers, body)) return response.writeHead(401).end()
    const event = JSON.parse(body.toString('utf8'))
    if (!seen.has(event.id)) seen.set(event.id, handle(event))
    await seen.get(event.id).catch((error) => {
      seen.delete(event.id)
      throw error
    })
    response.writeHead(204).end()
  } catch (error) {
    console.error(error)
    response.writeHead(500).end()
  }
})
server.listen(Number(process.env.PORT ?? 3000))
