import type { z } from 'zod'

export interface DescribedWebhook {
  /** Of its events; the name of its entry. */
  type: string
  operationId: string
  tag: string
  summary: string
  description: string
  /** Headers of the request, each in every one. */
  headers: Record<string, DescribedHeader>
  /** Must have an id, which is its name among the components. */
  body: z.ZodType
  /** What answers mean, by status (`200`, `2XX`, `default`). */
  answers: Record<string, DescribedAnswer>
}

export interface DescribedAnswer {
  description: string
  headers?: Record<string, DescribedHeader>
  /** What has to be in it, as `body` of the request. */
  body?: z.ZodType
}

export interface DescribedHeader {
  description: string
  /** JSON Schema. */
  schema: Record<string, unknown>
}

/** The `webhooks` of an OpenAPI 3.1 document. */
export function webhookItems(described: DescribedWebhook[]): Record<string, { post: object }> {
  return Object.fromEntries(described.map((webhook) => [webhook.type, { post: operationOf(webhook) }]))
}

function operationOf({ operationId, tag, summary, description, headers, body, answers }: DescribedWebhook) {
  return {
    operationId,
    tags: [tag],
    summary,
    description,
    parameters: Object.entries(headers).map(([name, header]) => ({
      name,
      in: 'header',
      required: true,
      ...header,
    })),
    requestBody: { required: true, content: contentOf(body) },
    responses: Object.fromEntries(
      Object.entries(answers).map(([status, { body: answer, ...described }]) => [
        status,
        { ...described, ...(answer && { content: contentOf(answer) }) },
      ]),
    ),
  }
}

const contentOf = (body: z.ZodType) => ({ 'application/json': { schema: componentOf(body) } })

function componentOf(body: z.ZodType): { $ref: string } {
  const id = body.meta()?.id
  if (!id) throw new Error('the body of a webhook must be a component')
  return { $ref: `#/components/schemas/${id}` }
}
