/**
 * The path below which the server is, without a slash at its end: empty, or `/tg` behind a proxy that serves it under a
 * path. It follows from the address of this script, since a proxy that removes the path tells the server nothing of it.
 */
export const serverPath =
  /^(.*)\/console\/assets\//.exec(new URL(import.meta.url).pathname)?.[1] ?? ''
