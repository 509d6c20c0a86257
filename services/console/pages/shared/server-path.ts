/**
 * Path prefix of the server, without a trailing slash: empty, or `/tg` behind a proxy that adds one. Read from this
 * script's URL, because a proxy that strips the prefix does not tell the server.
 */
export const serverPath =
  /^(.*)\/console\/assets\//.exec(new URL(import.meta.url).pathname)?.[1] ?? ''
