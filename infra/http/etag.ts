/** Whether an If-None-Match header names the ETag: who sent it has what it stands for. */
export function matchesEtag(header: string | undefined, etag: string): boolean {
  return header?.split(',').some((tag) => tag.trim() === etag || tag.trim() === '*') ?? false
}
