export interface NginxParts {
  /** Where it may write. */
  folder: string
  /** What stands in `http { }`. */
  http: string
  /** Lines outside of it. */
  main?: string
}

/** A configuration of an nginx of its own, which writes nowhere else. */
export function nginxText({ folder, http, main = '' }: NginxParts): string {
  const files = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (one) => `${one}_temp_path ${folder}/${one};`,
  )
  const start = `${main}\ndaemon off; user root; worker_processes 1; pid ${folder}/nginx.pid; events {}`
  return `${start}\nhttp { access_log off; ${files.join(' ')}\n${http} }`
}
