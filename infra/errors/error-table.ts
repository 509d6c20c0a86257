export interface ErrorEntry {
  status: number
  /** True if the same request may succeed later. Default: false. */
  retryable?: boolean
  /** Replaces the sentence derived from `retryable`, for codes whose responses can override it. */
  retry?: string
  message: string
  meaning: string
  remedy: string
  /** Content of the response's `details`. */
  details?: string
  /** Status by operation id, if only these operations return the code. Default: any operation may, with `status`. */
  operations?: Readonly<Record<string, number>>
}

const requestFields = '`fields` lists each invalid member with `issue` and, if known, `expected`.'

// Codes never change their meaning; new ones may be added.
const entries = {
  'auth.missing_api_key': {
    status: 401,
    message: 'The Authorization header is missing. Send a bearer token.',
    meaning: 'The request has no `Authorization` header, or it is empty.',
    remedy: 'Send the API key as a bearer token: `Authorization: Bearer sk_live_...`.',
  },
  'auth.invalid_api_key': {
    status: 401,
    message: 'The API key is malformed, unknown, revoked or expired. Check the key.',
    meaning:
      'The header is not a bearer token, or the key is malformed, unknown, revoked, or was rotated more than 24 hours ago.',
    remedy:
      'Compare the key with the one shown when it was created. If the key is lost, rotate it.',
  },
  'auth.secret_key_required': {
    status: 403,
    message: 'This endpoint requires a secret key (sk_...).',
    meaning: 'A publishable key was sent to the REST API.',
    remedy: 'Call the endpoint from your server with a secret key (`sk_live_` or `sk_test_`).',
  },
  'auth.secret_key_not_allowed': {
    status: 403,
    message: 'Collect endpoints do not accept secret keys. Use a publishable key (pk_...).',
    meaning: 'A secret key was sent to the collect API.',
    remedy:
      'Use a publishable key (`pk_live_` or `pk_test_`). If the secret key reached a browser or an app, rotate it.',
  },
  'auth.native_key_not_allowed': {
    status: 403,
    message:
      'This key is for one mobile SDK only. Use a key whose client_target matches the client.',
    meaning:
      'A key for iOS or Android was used by a browser, by the SDK of the other platform, or for the REST API.',
    remedy: 'Create a key with the right `client_target` for each platform.',
  },
  'auth.insufficient_scope': {
    status: 403,
    message: 'The API key lacks the scope {scope}.',
    meaning:
      'The secret key is valid, but lacks the scope that the endpoint requires, or a scope that the request would grant to another key. The message names the scope.',
    remedy:
      'Add the scope to the key, or use a key that has it. Changes to a key take effect within 15 seconds.',
  },
  'auth.organization_access_denied': {
    status: 403,
    message: 'The API key belongs to another organization than the one in the path.',
    meaning:
      'The `organizationId` in the path is not the organization that owns the key, or does not exist.',
    remedy: "Use the id of the key's organization, or a key of the organization in the path.",
  },
  'auth.live_access_required': {
    status: 403,
    message: 'This setting applies to live and test. Use a live key.',
    meaning:
      'The endpoint changes a setting of both environments, but the key is a test key, or the console session has access only to `test`.',
    remedy: 'Use a live key, or log in to the console with a link that includes `live`.',
    operations: { addAgentDirectory: 403, removeAgentDirectory: 403 },
  },
  'auth.organization_inactive': {
    status: 403,
    message: 'The organization is suspended or deleted. Ask the operator of this server.',
    meaning: 'The key is valid, but its organization is suspended or deleted.',
    remedy: 'Ask the operator of this server. All keys of the organization are refused.',
  },
  'auth.origin_not_allowed': {
    status: 403,
    message: 'The request origin is not allowed for this key. Add it to allowed_origins.',
    meaning:
      'The publishable key has allowed origins, and the `Origin` header is missing or not one of them.',
    remedy:
      'Add the origin of the page to `allowed_origins` of the key. Changes to a key take effect within 15 seconds.',
  },
  'console.login_required': {
    status: 401,
    message: 'You are not logged in to the console.',
    meaning:
      'The console session is unknown, was ended, was idle for 12 hours or is 7 days old; its key or organization is no longer valid; or the login link is invalid, used or expired.',
    remedy: 'Log in with a new link from `tidegate console login`, or with a secret key.',
    operations: {},
  },
  'console.refused': {
    status: 403,
    message: 'The console refused this request.',
    meaning:
      'The request came over plain HTTP from another machine, from another origin, or without the token of the session, or it is for an environment that the session has no access to. The message says which.',
    remedy: 'Open the console at its own URL, over HTTPS or on loopback, and log in again.',
    operations: {},
  },
  'request.malformed': {
    status: 400,
    message: 'The request is not valid HTTP, or its URL is malformed.',
    meaning:
      "The request can't be parsed, its `Host` header is missing, or its URL has an invalid percent-encoding.",
    remedy: 'Use an HTTP library, and percent-encode values in the URL.',
  },
  'request.malformed_body': {
    status: 400,
    message: 'The request body is not valid JSON.',
    meaning:
      'The body is missing, is not JSON in UTF-8, or its length differs from `Content-Length`.',
    remedy: 'Send valid JSON in UTF-8.',
  },
  'request.not_found': {
    status: 404,
    message: 'Not found. Check the path, the id and the environment of the key.',
    meaning:
      "The path does not exist, or the resource does not exist in this organization and environment. Live keys can't see test data, and test keys can't see live data.",
    remedy:
      'Check the path and the id, and use a key of the environment in which the resource was created. A merged visitor is available under the id in `merged_into`; an erased one is gone.',
    details:
      '`merged_into` is the visitor that the one in the path was merged into, if it still exists. `erasure` has the id and time of the receipt if the visitor was erased.',
  },
  'request.method_not_allowed': {
    status: 405,
    message: 'This path only supports {methods}.',
    meaning:
      'The path exists, but does not support the method. The header `Allow` lists the supported methods.',
    remedy: 'Use a method listed in `Allow`.',
  },
  'request.timeout': {
    status: 408,
    retryable: true,
    message: 'The request was not received within 30 seconds. Send it again.',
    meaning: 'The headers and body of the request took longer than 30 seconds to arrive.',
    remedy: 'Send it again on a new connection.',
  },
  'request.conflict': {
    status: 409,
    retry: 'the same request fails again, unless `retryable` is true',
    message: 'The request conflicts with the current state.',
    meaning:
      'A slug is taken, a limit is reached, an object is not in the required state (a key that is being rotated, a disabled webhook endpoint), or another request with the same `Idempotency-Key` is in progress. The message says which.',
    remedy:
      'Resolve the conflict. If `retryable` is true, the first request is still in progress: send the same request again after `Retry-After`.',
    details:
      '`fields` names the conflicting member. `next_action` is `contact_support` if only the operator can help, or `retry` while the first request is in progress; then `header_name` is `Idempotency-Key`.',
  },
  'request.payload_too_large': {
    status: 413,
    message: 'The request body is too large.',
    meaning:
      'Limits: 256 KiB for most JSON bodies, 1 MiB for `POST /v1/requests/score`, 128 KiB (deflated) for observations, and 4 KiB for network checks.',
    remedy: 'Split the data over several requests.',
  },
  'request.invalid_content_type': {
    status: 415,
    message: 'The Content-Type must be {expected}.',
    meaning:
      'The `Content-Type` is missing or not supported by the endpoint, or the body is compressed (a `Content-Encoding` other than `identity`).',
    remedy: 'Set `Content-Type` to the value in `details.fields`, and send the body uncompressed.',
    details:
      '`fields` has the header (`Content-Type` or `Content-Encoding`) and the expected value; `header_name` is the same header.',
  },
  'request.validation_failed': {
    status: 422,
    message: '{problem}',
    meaning: 'A value in the path, query, headers or body is missing, unknown or malformed.',
    remedy: 'Correct every member listed in `details.fields`.',
    details: `${requestFields} \`allowed_values\` lists the valid values if there are only a few; \`parameter_set\` names the kind of body, \`header_name\` the header.`,
  },
  'request.headers_too_large': {
    status: 431,
    message: 'The request headers or URL are too large.',
    meaning: 'The request line and headers together exceed 16 KiB.',
    remedy: 'Send fewer or shorter headers, or a shorter URL.',
  },
  'session.sequence_mismatch': {
    status: 409,
    message: 'Unexpected batch sequence number. Start a new session.',
    meaning:
      'A different body was already accepted with this number, or `X-Batch-Seq` differs from the number in the nonce.',
    remedy: 'Start a new session. The SDK does this automatically.',
    details:
      '`fields` has `X-Batch-Seq` with the expected and received numbers; `next_action` is `new_session`.',
  },
  'session.invalid_or_expired': {
    status: 410,
    message: 'The collect session is invalid or expired. Start a new one.',
    meaning:
      'The session or document is unknown, older than 24 hours, or belongs to another key or organization.',
    remedy: 'Open a new session. The SDK does this automatically.',
    details: '`next_action` is `new_session`.',
  },
  'transport.session_reset_required': {
    status: 409,
    retryable: true,
    message: 'The body could not be decrypted. Start a new session.',
    meaning: 'The body was not encrypted for this document, or was modified in transit.',
    remedy:
      'Open a new session and send the remaining data there. The SDK does this automatically.',
    details: '`next_action` is `new_session`.',
  },
  'gate.session_not_found': {
    status: 404,
    message: 'No Gate session has this id. Check the id.',
    meaning: 'The id is malformed, or belongs to no signup or login of this server.',
    remedy: 'Use the `id` returned when the session was created, or create a new session.',
    operations: {
      pollGateSession: 404,
      getGateSessionConsent: 404,
      approveGateSession: 404,
      cancelGateSession: 404,
      acknowledgeGateSessionDelivery: 404,
      claimGateSession: 404,
      eraseGateSession: 404,
    },
  },
  'gate.session_expired': {
    status: 410,
    message: 'The Gate session or login code has expired. Start again.',
    meaning:
      'Nobody approved or declined within 15 minutes. Login codes return this too if they are unknown or older than 5 minutes.',
    remedy: 'Start the signup or login again.',
    operations: {
      pollGateSession: 410,
      getGateSessionConsent: 410,
      approveGateSession: 410,
      cancelGateSession: 410,
      acknowledgeGateSessionDelivery: 410,
      claimGateSession: 410,
      consumeGateLoginSessionCode: 410,
    },
  },
  'gate.session_already_resolved': {
    status: 409,
    message: 'The Gate session is already resolved, or the login code was used.',
    meaning:
      'The session was already approved or rejected. A used login code returns this with status 410.',
    remedy: 'Poll the session to get the result. To try again, start a new signup or login.',
    operations: {
      getGateSessionConsent: 409,
      approveGateSession: 409,
      cancelGateSession: 409,
      claimGateSession: 409,
      consumeGateLoginSessionCode: 410,
    },
  },
  'gate.approval_in_progress': {
    status: 409,
    retryable: true,
    message: 'The service is still creating the account. Send the request again after Retry-After.',
    meaning: 'A person approved the signup, but the service has not returned the credentials yet.',
    remedy:
      "Send the same request again after the number of seconds in `Retry-After`. This doesn't count as another attempt.",
    operations: { approveGateSession: 409, cancelGateSession: 409 },
  },
  'gate.bot_detected': {
    status: 403,
    message: 'The consent page was operated by a program. A person must approve.',
    meaning: 'The session of the consent page was scored as a bot. The Gate session stays pending.',
    remedy:
      'A person must approve in their own browser. Each IP address has three attempts per session.',
    operations: { approveGateSession: 403 },
  },
  'gate.approve_token_invalid': {
    status: 403,
    message: 'The approve token is missing or invalid. Fetch the consent data again.',
    meaning:
      'The request has no `approve_token`, or the token is not from the consent data of this session.',
    remedy: 'Fetch the consent data again and send its `approve_token`.',
    operations: { approveGateSession: 403 },
  },
  'gate.svc_proof_required': {
    status: 422,
    message: 'The sealed token is missing. Approve on the consent page.',
    meaning: 'The request has no `sealed_token`.',
    remedy: 'Approve on the consent page, which sends the sealed token of its own session.',
    operations: { approveGateSession: 422 },
  },
  'gate.svc_proof_invalid': {
    status: 403,
    message: 'The sealed token is invalid or expired. Reload the consent page.',
    meaning:
      "The token was not sealed by this server for its consent page, is older than two minutes, belongs to another Gate session, or its verdict is below the service's `minimum_verdict`.",
    remedy: 'Reload the consent page and approve there.',
    operations: { approveGateSession: 403 },
  },
  'gate.delivery_consumed': {
    status: 410,
    message: 'The credentials were already delivered or deleted.',
    meaning:
      "The delivery was acknowledged, was not acknowledged within 24 hours, or lost its key when the database was restored from a backup. It can't be recovered.",
    remedy: "If you don't have the credentials, sign up again.",
    operations: { pollGateSession: 410, acknowledgeGateSessionDelivery: 410 },
  },
  'gate.delivery_ack_invalid': {
    status: 403,
    message: 'The ack token is missing or wrong. Send the one in the gate envelope.',
    meaning: 'The request has no `ack_token`, or the token belongs to another delivery.',
    remedy: 'Decrypt the `gate` envelope of the delivery and send its `ack_token`.',
    operations: { acknowledgeGateSessionDelivery: 403 },
  },
  'gate.claim_code_invalid': {
    status: 403,
    message: 'The code does not match the one on the consent page.',
    meaning:
      'The code is wrong, or nobody has approved yet. The fifth wrong code rejects the signup.',
    remedy: 'Ask the person for the six digits that the consent page shows after the approval.',
    operations: { claimGateSession: 403 },
  },
  'gate.rate_limit': {
    status: 429,
    retryable: true,
    message: 'Too many requests. Retry after the delay in Retry-After.',
    meaning: 'The IP address or token reached the rate limit of this Gate endpoint.',
    remedy: 'Wait the number of seconds in `Retry-After`.',
    operations: {
      createGateSession: 429,
      pollGateSession: 429,
      getGateSessionConsent: 429,
      approveGateSession: 429,
      cancelGateSession: 429,
      acknowledgeGateSessionDelivery: 429,
      claimGateSession: 429,
      eraseGateSession: 429,
      createGateLoginSession: 429,
      verifyGateAgentToken: 429,
      revokeGateAgentToken: 429,
      consumeGateLoginSessionCode: 429,
      verifyManagedGateServiceDomain: 429,
    },
  },
  'gate.validation_failed': {
    status: 422,
    message: '{problem}',
    meaning: 'A member of the request body is missing, unknown or invalid.',
    remedy: 'Correct the members listed in `details.fields`.',
    details: requestFields,
    operations: {
      createManagedGateService: 422,
      updateManagedGateService: 422,
      disableManagedGateService: 422,
      verifyManagedGateServiceDomain: 422,
      createGateSession: 422,
      approveGateSession: 422,
      acknowledgeGateSessionDelivery: 422,
      claimGateSession: 422,
      eraseGateSession: 422,
      createGateLoginSession: 422,
      verifyGateAgentToken: 422,
      revokeGateAgentToken: 422,
      consumeGateLoginSessionCode: 422,
    },
  },
  'rate_limit.exceeded': {
    status: 429,
    retryable: true,
    message: 'Too many requests. Retry after the delay in Retry-After.',
    meaning:
      "The units that all keys of one type share in an organization are used up, a webhook endpoint was tested ten times within a minute, or one IP address sent too many unknown keys or requests with the consent page's key. The last two have no `X-RateLimit-*` headers.",
    remedy:
      'Wait the number of seconds in `Retry-After`. Refused requests cost units too, so retrying earlier extends the wait.',
  },
  'internal.error': {
    status: 500,
    retryable: true,
    message: 'Internal server error. Retry, and report the request_id if it persists.',
    meaning: 'An unexpected error occurred. The request may or may not have taken effect.',
    remedy:
      'Send the request again, with the same `Idempotency-Key` if it had one. If the error persists, report the `request_id`.',
  },
  'service.unavailable': {
    status: 503,
    retryable: true,
    retry: 'the same request may succeed later, unless `retryable` is false',
    message: 'Service temporarily unavailable. Retry after the delay in Retry-After.',
    meaning:
      'The event log, the database or another dependency is down or overloaded, or the server is shutting down. If `retryable` is false, the server has no data for this operation.',
    remedy:
      'Send the same request again after the number of seconds in `Retry-After`. If `retryable` is false, ask the operator of this server.',
    details: '`next_action` is `contact_support` if only the operator can help.',
  },
} as const satisfies Record<string, ErrorEntry>

export type ErrorCode = keyof typeof entries

export const errorTable: Readonly<Record<ErrorCode, ErrorEntry>> = entries

export const errorCodes = Object.keys(entries).filter((code): code is ErrorCode => code in entries)

type PlaceholdersIn<Text extends string> = Text extends `${string}{${infer Name}}${infer Rest}`
  ? Name | PlaceholdersIn<Rest>
  : never

export type Placeholders<Code extends ErrorCode> = PlaceholdersIn<(typeof entries)[Code]['message']>

/** Codes whose message has no placeholders. */
export type PlainCode = {
  [Code in ErrorCode]: [Placeholders<Code>] extends [never] ? Code : never
}[ErrorCode]

/** Returns the message of a code with its placeholders filled. */
export function messageOf<Code extends ErrorCode>(
  code: Code,
  values: Readonly<Record<Placeholders<Code>, string>>,
): string {
  const valueByName = new Map<string, string>(Object.entries(values))
  return errorTable[code].message.replace(
    /\{(\w+)\}/g,
    (placeholder, name: string) => valueByName.get(name) ?? placeholder,
  )
}
